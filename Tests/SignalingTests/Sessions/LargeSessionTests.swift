import Signaling
import TestSupport
import Testing
import Wire

/// Two thousand members with the longest connection data, most of whom never acknowledge anything.
@Suite("A session of 2,000 members") struct LargeSessionTests {
    /// A hub whose messages are only counted, except those to clients that acknowledge.
    private struct Crowd {
        static let queueLimit = 1 << 20

        var hub: Hub
        var now = Timestamp(milliseconds: 1_790_000_000_000)
        var generator = SeededGenerator(seed: 1)
        let session: SessionID
        var joined: Set<SocketID> = []
        var bytes: [SocketID: Int] = [:]
        var messages = 0
        var closed = 0
        /// The clients that acknowledge each message: the highest number received, and what they know.
        var attentive: [SocketID: (received: UInt64, view: RosterView?)] = [:]
        let data = String(repeating: "é", count: Limits.connectionData)

        init() {
            hub = Hub(
                hubSettings: HubSettings(rules: Rules(), project: Stage.project), generator: SeededGenerator(seed: 2))
            session = Stage.project.makeSessionID(mediaMode: .relayed, now: now, using: &generator)
        }

        mutating func join(_ number: UInt64, isAttentive: Bool = false) {
            let socket = SocketID(rawValue: number)
            if isAttentive { attentive[socket] = (0, nil) }
            let identity = IdentityID.random(using: &generator)
            handle(.arrived(Arrival(socket: socket, identity: Identity(id: identity), address: "")))
            let token = Stage.project.makeSessionToken(
                SessionTokenClaims(session: session, role: .publisher, data: data, lifetime: .seconds(3600)), now: now,
                using: &generator)
            handle(.message(socket, Envelope(seq: 1, message: .session(.join(.init(session: session, token: token))))))
        }

        mutating func leave(_ number: UInt64) {
            attentive[SocketID(rawValue: number)] = nil
            handle(.closed(SocketID(rawValue: number), leaving: true))
        }

        private mutating func handle(_ input: Input) {
            carryOut(hub.handle(input, now: now))
            now = now + .milliseconds(10)
        }

        private mutating func carryOut(_ effects: [Effect]) {
            for effect in effects {
                switch effect {
                case .transmit(let socket, let message):
                    messages += 1
                    if attentive[socket] == nil {
                        bytes[socket, default: 0] += message.count
                        if message.starts(with: #"{"type":"session.joined""#.utf8) { joined.insert(socket) }
                    } else {
                        receive(message, on: socket)
                    }
                case .close: closed += 1
                default: break
                }
            }
        }

        private mutating func receive(_ message: [UInt8], on socket: SocketID) {
            guard let envelope = try? Envelope<ServerMessage>.decode(message), let seq = envelope.seq else { return }
            #expect(message.count <= Limits.message)
            attentive[socket]?.received = seq
            if case .session(.joined(let answer)) = envelope.message {
                attentive[socket]?.view = RosterView(answer)
            } else {
                attentive[socket]?.view?.apply([envelope.message])
            }
            carryOut(hub.handle(.message(socket, Envelope(ack: seq, message: .ack)), now: now))
        }
    }

    @Test("joins and leaves; no member is sent more than it can take, and who acknowledges knows everyone")
    func joinAndLeave() throws {
        var crowd = Crowd()
        crowd.join(1, isAttentive: true)
        for number in 2...1999 { crowd.join(UInt64(number)) }
        let before = crowd.messages
        crowd.join(2000, isAttentive: true)
        #expect(crowd.joined.count == 1998)
        #expect(crowd.closed == 0)
        for socket in [1, 2000] {
            let view = try #require(crowd.attentive[SocketID(rawValue: UInt64(socket))]?.view)
            #expect(view.isComplete)
            #expect(view.connections.count == 1999)
        }
        print("the last of 2,000 joins caused \(crowd.messages - before) messages")
        let most = try #require(crowd.bytes.values.max())
        #expect(most < Crowd.queueLimit, "\(most) bytes wait for a client that reads nothing")
        for number in 2...1000 { crowd.leave(UInt64(number)) }
        for socket in [1, 2000] {
            #expect(crowd.attentive[SocketID(rawValue: UInt64(socket))]?.view?.connections.count == 1000)
        }
        for number in 1001...2000 { crowd.leave(UInt64(number)) }
        crowd.leave(1)
        #expect(crowd.hub.sessionCount == 0)
        #expect(crowd.closed == 0)
        #expect(try #require(crowd.bytes.values.max()) < Crowd.queueLimit)
    }
}
