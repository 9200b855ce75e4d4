import Wire

/// Calls that were not answered, or were declined or canceled, counted per callee. After too many, the caller must
/// wait before calling the same person again.
struct UnansweredCalls: Equatable, Sendable {
    /// The calls to one person that count as unanswered.
    private struct Attempts: Equatable, Sendable {
        /// The times of the unanswered calls, newest last.
        var times: [Timestamp] = []
        /// When further calls are allowed again; nil unless there were too many unanswered calls.
        var until: Timestamp?
    }

    /// Maximum number of callees to keep track of. The call budget allows about sixty calls in ten minutes.
    private static let maxPeople = 100

    private var byPerson: [IdentityID: Attempts] = [:]

    var isEmpty: Bool { byPerson.isEmpty }

    /// Returns the end of the wait before this person may be called again.
    ///
    /// - Returns: when calls to this person are allowed again, or nil if they are allowed now.
    func waitEnd(for other: IdentityID, _ now: Timestamp) -> Timestamp? {
        guard let until = byPerson[other]?.until, now < until else { return nil }
        return until
    }

    mutating func forget(_ other: IdentityID) { byPerson[other] = nil }

    mutating func count(_ record: CallRecord, _ context: Context) {
        switch record.outcome {
        case .unanswered, .declined, .cancelled: break
        default: return
        }
        let (now, period) = (context.now, context.rules.unsuccessfulCallPeriod)
        byPerson = byPerson.filter { _, attempts in
            attempts.until.map { now < $0 } ?? false || attempts.times.contains { now - $0 < period }
        }
        guard byPerson.count < Self.maxPeople || byPerson[record.other] != nil else { return }
        var attempts = byPerson[record.other, default: Attempts()]
        attempts.times = attempts.times.filter { now - $0 < period } + [now]
        if attempts.times.count >= context.rules.unsuccessfulCallLimit { attempts = Attempts(until: now + period) }
        byPerson[record.other] = attempts
    }
}
