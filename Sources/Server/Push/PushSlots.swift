/// How many requests may be under way: in all, and to one service, so that one that is slow keeps nobody from the
/// others. Whoever waits gets a place in order of arrival, but for the service's share.
actor PushSlots {
    /// Of all places, this part may be at one service.
    static let share = 2

    private let total: Int
    private let perService: Int
    private var used = 0
    private var usedBy: [String: Int] = [:]
    private var waiting: [(service: String, turn: Once<Bool>)] = []

    init(total: Int) {
        self.total = max(total, 1)
        perService = max(total / Self.share, 1)
    }

    /// False when the task is cancelled before its turn; then there is nothing to give back.
    func take(_ service: String) async -> Bool {
        if hasRoom(service) {
            occupy(service)
            return true
        }
        let turn = Once<Bool>()
        waiting.append((service, turn))
        if await turn.value() == true, !Task.isCancelled { return true }
        // Its turn came all the same, or it is still in the line.
        if waiting.contains(where: { $0.turn === turn }) {
            waiting.removeAll { $0.turn === turn }
        } else {
            giveBack(service)
        }
        return false
    }

    func giveBack(_ service: String) {
        used -= 1
        let left = (usedBy[service] ?? 1) - 1
        usedBy[service] = left > 0 ? left : nil
        while let index = waiting.firstIndex(where: { hasRoom($0.service) }) {
            let next = waiting.remove(at: index)
            occupy(next.service)
            next.turn.settle(true)
        }
    }

    private func hasRoom(_ service: String) -> Bool { used < total && (usedBy[service] ?? 0) < perService }

    private func occupy(_ service: String) {
        used += 1
        usedBy[service, default: 0] += 1
    }
}
