/// A limit on concurrent requests, in total and per service, so that a slow service does not block the others.
///
/// Waiting requests get slots in order of arrival, except those whose service has used up its share.
actor PushSlots {
    /// One service may use at most 1/`share` of all slots, or one slot if this share is less than one.
    static let share = 2

    private let total: Int
    private let perService: Int
    private var used = 0
    private var usedByService: [String: Int] = [:]
    private var waiting: [(service: String, turn: Once<Bool>)] = []

    init(total: Int) {
        self.total = max(total, 1)
        perService = max(total / Self.share, 1)
    }

    /// Waits for a slot. Returns false if the task is canceled first; the caller then must not release a slot.
    func take(_ service: String) async -> Bool {
        if hasFreeSlot(service) {
            occupy(service)
            return true
        }
        let turn = Once<Bool>()
        waiting.append((service, turn))
        if await turn.value() == true, !Task.isCancelled { return true }
        // The task was canceled. Leave the queue, or release the slot if it was assigned in the meantime.
        if waiting.contains(where: { $0.turn === turn }) {
            waiting.removeAll { $0.turn === turn }
        } else {
            release(service)
        }
        return false
    }

    func release(_ service: String) {
        used -= 1
        let left = (usedByService[service] ?? 1) - 1
        usedByService[service] = left > 0 ? left : nil
        while let index = waiting.firstIndex(where: { hasFreeSlot($0.service) }) {
            let next = waiting.remove(at: index)
            occupy(next.service)
            next.turn.settle(true)
        }
    }

    private func hasFreeSlot(_ service: String) -> Bool { used < total && (usedByService[service] ?? 0) < perService }

    private func occupy(_ service: String) {
        used += 1
        usedByService[service, default: 0] += 1
    }
}
