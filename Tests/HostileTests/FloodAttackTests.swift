import Foundation
import Signaling
import Testing
import Wire

/// What one attacking connection sent and received.
struct Flooding: Sendable {
    var sent = 0
    /// The number of refusals with a retry time.
    var refusals = 0
    /// The number of all other answers.
    var answers = 0
    var close: UInt16?
}

/// A connection that sends as fast as the server reads, or at a given rate, until it is closed.
final class Flooder {
    let line: RawWebSocket
    private(set) var flooding = Flooding()

    init(_ line: RawWebSocket) { self.line = line }

    /// Encodes a message as a frame with a zero mask, so the attacker spends no time on masking.
    static func frame(_ payload: [UInt8], opcode: UInt8 = 1, final: Bool = true) -> [UInt8] {
        var head = RawFrame(opcode: opcode, final: final, claimedLength: UInt64(payload.count))
        head.mask = [0, 0, 0, 0]
        return head.bytes + payload
    }

    /// Repeats the same messages with increasing numbers. Each message is encoded only once, because only its number
    /// changes.
    static func frames(_ cycle: [ClientMessage], numbers: some Sequence<UInt64>) -> [[UInt8]] {
        let mark: UInt64 = 1_234_567_890
        let texts = cycle.map { message in
            let bytes = Envelope(seq: message.isUnnumbered ? nil : mark, message: message).encode()
            let number = bytes.firstRange(of: Array("\(mark)".utf8))
            return number.map { (bytes[..<$0.lowerBound], bytes[$0.upperBound...]) } ?? (bytes[...], nil)
        }
        return numbers.enumerated().map { index, number in
            let (head, tail) = texts[index % texts.count]
            return frame(tail.map { head + Array("\(number)".utf8) + $0 } ?? Array(head))
        }
    }

    /// - Parameter pace: messages every ten milliseconds; 100 send ten thousand per second.
    func flood(_ frames: [[UInt8]], pace: Int) throws {
        var next = ContinuousClock.now
        for start in stride(from: 0, to: frames.count, by: pace) where flooding.close == nil {
            let chunk = frames[start..<min(start + pace, frames.count)]
            line.socket.sendWhatGoes(Array(chunk.joined()), within: .seconds(5))
            flooding.sent += chunk.count
            next += .milliseconds(10)
            repeat {
                while line.socket.isReadable(until: .now), try read() {}
            } while ContinuousClock.now < next && wait(next)
        }
        while flooding.close == nil, try read() {}
    }

    private func wait(_ next: ContinuousClock.Instant) -> Bool {
        flooding.close == nil && line.socket.isReadable(until: next)
    }

    /// Reads one frame. Returns false at the end of the connection.
    private func read() throws -> Bool {
        guard flooding.close == nil, let frame = try line.read(within: .seconds(30)) else {
            flooding.close = flooding.close ?? line.closeCode
            return false
        }
        flooding.close = frame.closeCode
        guard frame.opcode == 1 else { return true }
        let text = frame.text
        let isRefusal = text.contains(#""code":"rate_limited""#) && text.contains(#""retryAfterMs":"#)
        if isRefusal { flooding.refusals += 1 } else { flooding.answers += 1 }
        return true
    }
}

/// A separate session for the attacker and a victim, apart from the pair.
struct FloodedSession {
    /// The attackers' address on Linux, where it differs from the pair's.
    #if os(Linux)
    static let elsewhere: String? = "127.0.0.2"
    #else
    static let elsewhere: String? = nil
    #endif

    let session: SessionID
    let token: String
    let victim: Person
    let connection: ConnectionID
    let stream: StreamID
    private let port: Int

    init(_ server: ServerProcess) async throws {
        let forging = try await Forging(server)
        session = try await server.makeSession()
        token = forging.token(forging.sessionClaims(session.text, ["role": "\"moderator\""]))
        port = server.port
        victim = try Person.arrive(port: server.port, from: Self.elsewhere)
        connection = try victim.join(Admission(session: session, token: token)).connection.id
        var publish = SessionVerb.Publish()
        publish.session = session
        let seq = try victim.say(.session(.publish(publish)))
        stream = try victim.hear("published") {
            if case .session(.published(let own)) = $0, own.re == seq { own.stream.id } else { nil }
        }
    }

    /// Returns a new connection that has joined the session and subscribed to the stream. It has sent two numbered
    /// messages.
    func attacker() throws -> Flooder {
        let person = try Person.arrive(port: port, from: Self.elsewhere)
        _ = try person.join(Admission(session: session, token: token))
        guard
            try person.hearAnswer(to: person.say(.session(.subscribe(.init(session: session, stream: stream))))) == nil
        else {
            throw TimedOut("the attacker may not subscribe")
        }
        return Flooder(person.line)
    }

    /// Reads the victim's messages until `isOver` returns true, and returns their number.
    func listen(until isOver: @escaping @Sendable () -> Bool) -> Background<Int> {
        Background { [victim] in
            var count = 0
            while !isOver() {
                guard victim.line.socket.isReadable(until: .now + .milliseconds(20)) else { continue }
                guard try victim.next(until: .now + .seconds(5)) != nil else {
                    throw TimedOut("the victim was closed with \(victim.closeCode ?? 1006)")
                }
                victim.forget()
                count += 1
                // Messages are kept for a resume until acknowledged. A client acknowledges every 32 messages.
                if count % 32 == 0 { try victim.say(.ack) }
            }
            return count
        }
    }
}

extension Hostile {
    @Suite("Case 11: floods") struct FloodAttacks {
        /// Budgets large enough for the pair's chat. The attackers have the same budgets.
        private static let settings = [
            "CONFAB_LIMITS_REQUESTS_PER_SECOND": "40", "CONFAB_LIMITS_REQUEST_BURST": "200",
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000",
        ]
        private static let attack: Duration = .milliseconds(800)

        /// Kinds of floods on an established connection.
        enum Flood: String, CaseIterable {
            case signals = "10,000 signals a second"
            case negotiations = "offers of 16 KiB and candidates"
            case churn = "join and leave"
            case skipping = "start, next, stop, count"
            case empty = "acks, pings, repetitions"
            case frames = "control frames, empty fragments"

            /// Whether the server answers each refused message. It only counts messages that are not requests.
            var isAnswered: Bool { self != .empty && self != .frames }

            /// The number of attackers. Skipping needs two, who are paired with each other.
            var attackers: Int { self == .skipping ? 2 : 1 }
        }

        @Test("a flood is throttled, then closed with 4429, while others keep chatting", arguments: Flood.allCases)
        func floods(_ flood: Flood) async throws {
            try await ServerProcess.run(Self.settings) { server in
                let before = try UndisturbedPair.start(server)
                try eventually("the pair said only \(before.messages) lines") { before.messages >= 50 }
                let measure = try before.finish()
                let place = try await FloodedSession(server)
                let attack = try UnderAttack(server, case: 11, flood.rawValue)
                let frames = Self.frames(flood, place)
                let end = ContinuousClock.now + Self.attack
                let victim = place.listen { ContinuousClock.now > end }
                let attackers = (0..<flood.attackers).map { _ in
                    Background {
                        var all: [Flooding] = []
                        // Measure at least once, even if a busy machine starts the attack late.
                        repeat {
                            let flooder = try place.attacker()
                            try flooder.flood(frames, pace: 100 / flood.attackers)
                            all.append(flooder.flooding)
                        } while ContinuousClock.now < end
                        return all
                    }
                }
                let floodings = try attackers.flatMap { try $0.join(within: .seconds(120)) }
                let heard = try victim.join()
                // What is still on its way when the server closes makes TCP reset, which can take the close frame with it.
                let isClosed = floodings.allSatisfy { $0.close == 4429 || $0.close == 1006 && $0.refusals > 0 }
                #expect(!floodings.isEmpty && isClosed, "\(floodings.map(\.close))")
                if flood.isAnswered {
                    #expect(floodings.allSatisfy { $0.refusals > 0 }, "\(floodings.map(\.refusals))")
                }
                let report = try attack.finish(
                    sent: "\(floodings.reduce(0) { $0 + $1.sent }) messages on \(floodings.count) connections",
                    cameBack:
                        "4429 ×\(floodings.count) after \(floodings.reduce(0) { $0 + $1.refusals }) × rate_limited"
                )
                let ratio = report.p99.inSeconds / measure.p99.inSeconds
                print(
                    "           | p99 of the pair without the attack \(measure.p99.text), with it \(report.p99.text): ",
                    String(format: "× %.1f", ratio), "; the flooded session's other member heard \(heard)",
                    separator: ""
                )
            }
        }

        /// The number of frames in a flood. They exhaust a budget despite the refill, even if the server handles only a
        /// hundred messages per second.
        private static let frameCount: UInt64 = 4000

        private static func frames(_ flood: Flood, _ place: FloodedSession) -> [[UInt8]] {
            // Numbers 1 and 2 were used for joining and subscribing.
            func frames(_ cycle: [ClientMessage]) -> [[UInt8]] { Flooder.frames(cycle, numbers: 3..<(3 + frameCount)) }
            switch flood {
            case .signals:
                return frames([
                    .session(.signal(.init(session: place.session, type: "chat", data: "spam spam spam spam")))
                ])
            case .negotiations:
                var offer = SessionVerb.Negotiate()
                (offer.session, offer.to) = (place.session, place.connection)
                offer.description = SessionDescription(type: .offer, sdp: String(repeating: "a=x\r\n", count: 3200))
                var candidate = offer
                (candidate.description, candidate.candidate) = (nil, .object(JSONObject()))
                return frames([
                    .session(.negotiate(offer)), .session(.negotiate(candidate)), .session(.negotiate(candidate)),
                    .session(.negotiate(candidate)),
                ])
            case .churn:
                let join = SessionVerb.Join(session: place.session, token: place.token)
                return frames([.session(.leave(.init(session: place.session))), .session(.join(join))])
            case .skipping:
                return frames([
                    .roulette(.start(.init(mode: .text))), .roulette(.next(.init())), .roulette(.count),
                    .roulette(.next(.init())), .roulette(.stop), .iceServers,
                ])
            case .empty:
                // All requests have the number 1, which was already used.
                return Flooder.frames(
                    [.ack, .ping, .roulette(.count)], numbers: repeatElement(1, count: Int(frameCount)))
            case .frames:
                let cycle: [UInt8] = [9, 10, 0]
                let begun = Flooder.frame([], final: false)
                return [begun]
                    + (0..<Int(frameCount)).map { index in
                        Flooder.frame([], opcode: cycle[index % 3], final: index % 3 != 2)
                    }
            }
        }
    }
}
