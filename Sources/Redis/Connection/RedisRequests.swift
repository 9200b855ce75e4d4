import DequeModule
import Wire

/// The requests of a connection that wait: those that were sent, in the order in which Redis answers them, and those that
/// wait for a connection.
///
/// Invariants: each request is in exactly one queue until it is taken out to be completed. While a script waits to be sent
/// again, nothing else is sent.
struct RedisRequests: Sendable {
    struct Pending: Sendable {
        /// The request's number; nil for the connection's own `PING`.
        let id: UInt64?
        let request: RedisRequest
        let deadline: Timestamp
        let onlyOn: RedisConnection.Attempt?
        let bytes: Int
        /// Whether a script's text is sent instead of its SHA-1.
        var sendsText = false
    }

    /// More scripts than Confab has. The set is cleared when it is full, because sending a text again does no harm.
    private static let maxKnownScripts = 256

    private(set) var sent: Deque<Pending> = []
    private var waiting: Deque<Pending> = []
    /// Scripts that the server did not have. They are sent again in their order, before later requests, when all that was
    /// sent has been answered.
    private var unknownScripts: Deque<Pending> = []
    /// The SHA-1 of each script whose text was sent on this connection.
    private var knownScripts: Set<String> = []
    /// The bytes of all requests.
    private(set) var bytes = 0
    /// No deadline of a request is earlier.
    private(set) var earliestDeadline: Timestamp?

    /// The number of requests, without the connection's own.
    var count: Int {
        // `PING` is sent only while nothing else is.
        let own = sent.first.map { $0.id == nil } == true ? 1 : 0
        return sent.count + waiting.count + unknownScripts.count - own
    }

    mutating func add(_ pending: Pending) {
        bytes += pending.bytes
        earliestDeadline = min(earliestDeadline ?? pending.deadline, pending.deadline)
        waiting.append(pending)
    }

    /// Marks what waits as sent. Returns its bytes; nil if nothing can be sent now.
    mutating func send() -> [UInt8]? {
        guard unknownScripts.isEmpty, !waiting.isEmpty else { return nil }
        var output: [UInt8] = []
        for var pending in waiting {
            pending.sendsText = isNew(pending.request) || pending.sendsText
            pending.request.command(withText: pending.sendsText).encode(into: &output)
            sent.append(pending)
        }
        waiting.removeAll()
        return output
    }

    /// Whether a script is sent on this connection for the first time. Then its text is sent, so that scripts are executed in
    /// their order: another script, which the server already has, cannot overtake it.
    private mutating func isNew(_ request: RedisRequest) -> Bool {
        guard case .script(let script, _, _) = request else { return false }
        if knownScripts.count >= Self.maxKnownScripts { knownScripts = [] }
        return knownScripts.insert(script.sha1).inserted
    }

    /// Takes out the request to which the next answer belongs.
    mutating func takeAnswered() -> Pending? {
        guard let pending = sent.popFirst() else { return nil }
        remove(pending)
        return pending
    }

    /// Sends a script again with its text, instead of completing it.
    mutating func sendAgain(_ pending: Pending) {
        var pending = pending
        pending.sendsText = true
        bytes += pending.bytes
        earliestDeadline = min(earliestDeadline ?? pending.deadline, pending.deadline)
        unknownScripts.append(pending)
    }

    /// Queues the unknown scripts to be sent, if everything before them is answered.
    mutating func resume() {
        guard sent.isEmpty, !unknownScripts.isEmpty else { return }
        waiting = unknownScripts + waiting
        unknownScripts = []
    }

    // MARK: Failures

    /// Whether an answer is late. For after `takeExpired`.
    func isAnswerLate(at now: Timestamp) -> Bool { earliestDeadline.map { $0 <= now } ?? false }

    /// Takes out what was not sent before its deadline.
    mutating func takeExpired(at now: Timestamp) -> [Pending] {
        guard let earliestDeadline, earliestDeadline <= now else { return [] }
        func take(from queue: inout Deque<Pending>) -> [Pending] {
            let late = queue.filter { $0.deadline <= now }
            if !late.isEmpty { queue.removeAll { $0.deadline <= now } }
            return Array(late)
        }
        let late = take(from: &unknownScripts) + take(from: &waiting)
        for pending in late { remove(pending) }
        self.earliestDeadline = [sent, waiting, unknownScripts].joined().map(\.deadline).min()
        return late
    }

    /// Takes out what cannot be completed after a loss: what was sent, and what may be sent only on this connection.
    mutating func takeLost() -> (sent: [Pending], bound: [Pending]) {
        waiting = unknownScripts + waiting
        (unknownScripts, knownScripts) = ([], [])
        let bound = waiting.filter { $0.onlyOn != nil }
        waiting.removeAll { $0.onlyOn != nil }
        let lost = sent
        sent = []
        for pending in lost + bound { remove(pending) }
        return (Array(lost), Array(bound))
    }

    /// Takes out what waits for a connection.
    mutating func takeWaiting() -> [Pending] {
        let rest = waiting
        waiting = []
        for pending in rest { remove(pending) }
        return Array(rest)
    }

    private mutating func remove(_ pending: Pending) {
        bytes -= pending.bytes
        if sent.isEmpty, waiting.isEmpty, unknownScripts.isEmpty { earliestDeadline = nil }
    }
}
