import Wire

/// Calls that came to nothing, by whom they were for: after too many, the next has to wait.
struct VainCalls: Equatable, Sendable {
    private struct Vain: Equatable, Sendable {
        /// The newest last.
        var times: [Timestamp] = []
        /// There were too many: until then there may be no more.
        var until: Timestamp?
    }

    /// People counted. Of those a person may place in ten minutes there are some sixty.
    private static let maxPeople = 100

    private var byPerson: [IdentityID: Vain] = [:]

    var isEmpty: Bool { byPerson.isEmpty }

    /// - Returns: until when there may be no call to this person.
    func waitEnd(for other: IdentityID, _ now: Timestamp) -> Timestamp? {
        guard let until = byPerson[other]?.until, now < until else { return nil }
        return until
    }

    mutating func forget(_ other: IdentityID) { byPerson[other] = nil }

    mutating func count(_ record: CallRecord, _ turn: Turn) {
        switch record.outcome {
        case .unanswered, .declined, .cancelled: break
        default: return
        }
        let (now, period) = (turn.now, turn.rules.callsInVainPeriod)
        byPerson = byPerson.filter { _, vain in
            vain.until.map { now < $0 } ?? false || vain.times.contains { now - $0 < period }
        }
        guard byPerson.count < Self.maxPeople || byPerson[record.other] != nil else { return }
        var vain = byPerson[record.other, default: Vain()]
        vain.times = vain.times.filter { now - $0 < period } + [now]
        if vain.times.count >= turn.rules.callsInVain { vain = Vain(until: now + period) }
        byPerson[record.other] = vain
    }
}
