import Foundation
import Wire

/// Measurements of a chat between two people during an attack.
struct PairReport: Sendable {
    /// The number of messages that both people received.
    var messages: Int
    /// Percentiles and the maximum of the time from sending a message to receiving it.
    var p50: Duration
    var p99: Duration
    var longest: Duration

    var text: String {
        "pair \(messages) messages, p50 \(p50.text), p99 \(p99.text), longest \(longest.text)"
    }
}

/// Two people who chat in the roulette while their server is attacked. Messages are numbered, and each person waits for
/// the answer to a message before sending the next, so a stall of the server appears as one long wait.
final class UndisturbedPair: Sendable {
    /// Settings that let each of them send a hundred messages per second.
    static let settings = ["CONFAB_LIMITS_REQUESTS_PER_SECOND": "500", "CONFAB_LIMITS_REQUEST_BURST": "1000"]
    private static let fastest: Double = 100
    /// The fraction of the message budget that the pair uses. It is less than 1, because the refill is counted in whole
    /// milliseconds.
    private static let shareOfBudget = 0.8
    /// The time after which a message without an answer counts as lost.
    private static let replyTimeout: Duration = .seconds(30)

    private let first: Background<Side>
    private let second: Background<Side>
    private let isEnding: Flag
    private let answered: Counter

    /// The messages that one of the two people has sent and received.
    fileprivate struct Side: Sendable {
        var said = 0
        var heard = 0
        var latencies: [Duration] = []
    }

    private init(_ first: Chatter, _ second: Chatter, _ isEnding: Flag) {
        let answered = Counter()
        (self.isEnding, self.answered) = (isEnding, answered)
        self.first = Background { try first.chat(counting: answered) { isEnding.isSet } }
        self.second = Background { try second.chat(counting: answered) { isEnding.isSet } }
    }

    /// Connects two people, waits until they are paired, and starts their chat.
    ///
    /// - Parameter connect: how each person connects to the server, if not over plain TCP.
    static func start(
        _ server: ServerProcess, connect: (ServerProcess) throws -> RawSocket = { try RawSocket(port: $0.port) }
    ) throws -> UndisturbedPair {
        let allowed = Double(server.settings["CONFAB_LIMITS_REQUESTS_PER_SECOND"] ?? "20") ?? 20
        let interval = Duration.seconds(1 / min(fastest, allowed * shareOfBudget))
        let ann = try Person.connect(on: connect(server))
        try ann.greet()
        let bob = try Person.connect(on: connect(server))
        try bob.greet()
        try ann.say(.roulette(.start(.init())))
        try bob.say(.roulette(.start(.init())))
        let matches = try [ann, bob].map { person in
            try person.hear("match") { if case .roulette(.matched(let matched)) = $0 { matched } else { nil } }
        }
        guard matches[0].match == matches[1].match else { throw TimedOut("the two were not paired with each other") }
        let joined = try zip([ann, bob], matches).map { try $0.join($1.publish) }
        return UndisturbedPair(
            Chatter(ann, joined[0].session, interval, partner: joined[1].connection.id),
            Chatter(bob, joined[1].session, interval, partner: joined[0].connection.id), Flag()
        )
    }

    /// The number of messages that were sent and answered so far.
    var messages: Int { answered.count }

    /// Whether both people are still chatting. Long attacks check this.
    var isChatting: Bool { !first.isFinished && !second.isFinished }

    /// Ends the chat. Fails if a message was lost, duplicated or reordered, or if one of the two was disconnected.
    func finish() throws -> PairReport {
        isEnding.set()
        let sides = try [first.join(), second.join()]
        guard sides[0].said == sides[1].heard, sides[1].said == sides[0].heard else {
            throw TimedOut("of \(sides.map(\.said)) lines said, \(sides.reversed().map(\.heard)) were heard")
        }
        let latencies = sides.flatMap(\.latencies).sorted()
        guard let longest = latencies.last else { throw TimedOut("the pair exchanged no messages") }
        return PairReport(
            messages: latencies.count, p50: latencies[latencies.count / 2],
            p99: latencies[latencies.count * 99 / 100], longest: longest
        )
    }

    /// One of the two people, on a separate thread.
    private final class Chatter: Sendable {
        private let person: Person
        private let session: SessionID
        private let interval: Duration
        private let partner: ConnectionID
        private static let goodbye = "goodbye"

        init(_ person: Person, _ session: SessionID, _ interval: Duration, partner: ConnectionID) {
            (self.person, self.session, self.interval, self.partner) = (person, session, interval, partner)
        }

        /// Sends a message per interval until asked to end, and then a goodbye. Receives messages until the partner's
        /// goodbye.
        func chat(counting answered: Counter, until isEnding: () -> Bool) throws -> Side {
            var side = Side()
            var unanswered: UInt64?
            var hasSaidGoodbye = false
            var partnerIsDone = false
            var due = ContinuousClock.now
            while !(hasSaidGoodbye && partnerIsDone && unanswered == nil) {
                if unanswered == nil, !hasSaidGoodbye, ContinuousClock.now >= due {
                    hasSaidGoodbye = isEnding()
                    if !hasSaidGoodbye { side.said += 1 }
                    unanswered = try say(hasSaidGoodbye ? Self.goodbye : "\(side.said)")
                    due = .now + interval
                }
                let isWaiting = unanswered != nil || hasSaidGoodbye
                let deadline = isWaiting ? .now + UndisturbedPair.replyTimeout : due
                guard person.line.socket.isReadable(until: deadline) else {
                    if isWaiting { throw TimedOut("line \(side.said) is unanswered, \(side.heard) were heard") }
                    continue
                }
                guard let message = try person.nextUnlessPing(within: UndisturbedPair.replyTimeout) else {
                    guard let code = person.closeCode else { continue }
                    throw TimedOut("the pair was disconnected with \(code): \(person.errors)")
                }
                person.forget()
                switch message {
                case .ok(let answer) where answer.re == unanswered:
                    unanswered = nil
                    answered.add()
                case .session(.signal(let signal)) where signal.from == partner:
                    if try hear(signal.data, &side) { partnerIsDone = true }
                case .ack, .session(.connectionCreated): break
                default: throw TimedOut("the pair was disturbed by \(message)")
                }
            }
            return side
        }

        private func say(_ text: String) throws -> UInt64 {
            let now = "\(Self.nanoseconds)"
            return try person.say(
                .session(.signal(.init(session: session, type: "chat", data: "\(text) \(now)", to: partner)))
            )
        }

        /// Handles the partner's next message. Returns true if it is the goodbye.
        private func hear(_ data: String?, _ side: inout Side) throws -> Bool {
            let parts = (data ?? "").split(separator: " ")
            guard parts.count == 2, let said = Int64(parts[1]) else {
                throw TimedOut("a line was changed: \(data ?? "")")
            }
            if parts[0] == Self.goodbye { return true }
            guard Int(parts[0]) == side.heard + 1 else {
                throw TimedOut("line \(parts[0]) came after \(side.heard): lost, repeated or out of order")
            }
            side.heard += 1
            side.latencies.append(.nanoseconds(Self.nanoseconds - said))
            return false
        }

        /// The current time of the clock that both threads use.
        private static let origin = ContinuousClock.now
        private static var nanoseconds: Int64 {
            let (seconds, attoseconds) = (ContinuousClock.now - origin).components
            return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
        }
    }
}
