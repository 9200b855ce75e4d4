import CAllocations
import Signaling
import TestSupport
import Testing
import Wire

/// Counts the allocations of one event in the hub. The work around the hub is not included in the measurement.
@Suite("Allocations of an event")
struct AllocationTests {
    private static let events: UInt64 = 1000

    /// A hub with connections in one relayed session.
    private struct Room {
        var hub: Hub
        var now = Timestamp(milliseconds: 1_790_000_000_000)
        let session: SessionID
        private var received: [UInt64]
        private var sent: [UInt64]

        init(members: Int) {
            var rules = Rules()
            rules.verbs = Budget.Rate(perSecond: 1000, burst: 100_000)
            var generator = SeededGenerator(seed: 1)
            let project = Stage.project
            session = project.makeSessionID(mediaMode: .relayed, now: now, using: &generator)
            hub = Hub(hubSettings: HubSettings(rules: rules, project: project), generator: generator)
            (received, sent) = (Array(repeating: 0, count: members), Array(repeating: 0, count: members))
            for member in 0..<members {
                let identity = Identity(id: .random(using: &generator))
                take(hub.handle(.arrived(Arrival(socket: socket(member), identity: identity, address: "")), now: now))
                let token = project.makeSessionToken(
                    SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: now,
                    using: &generator)
                take(hub.handle(next(member, .session(.join(.init(session: session, token: token)))), now: now))
            }
        }

        func socket(_ member: Int) -> SocketID { SocketID(rawValue: UInt64(member) + 1) }

        mutating func next(_ member: Int, _ message: ClientMessage) -> Input {
            sent[member] += 1
            return .message(socket(member), Envelope(seq: sent[member], ack: received[member], message: message))
        }

        mutating func take(_ effects: [Effect]) {
            for effect in effects {
                guard case .transmit(let socket, let bytes) = effect,
                    let envelope = try? Envelope<ServerMessage>.decode(bytes), let seq = envelope.seq
                else { continue }
                received[Int(socket.rawValue) - 1] = seq
            }
        }

        /// Acknowledges all messages on every connection. Otherwise the hub would keep all messages.
        mutating func acknowledge() {
            for member in received.indices {
                take(hub.handle(.message(socket(member), Envelope(ack: received[member], message: .ack)), now: now))
            }
        }
    }

    /// - Returns: the average number of allocations per event.
    private func count(members: Int, _ message: (SessionID) -> ClientMessage) -> Double {
        var room = Room(members: members)
        var total: UInt64 = 0
        for event in 0..<Self.events + 100 {
            room.now = room.now + .milliseconds(50)
            let input = room.next(0, message(room.session))
            confab_allocations_begin()
            let effects = room.hub.handle(input, now: room.now)
            let allocations = confab_allocations_end()
            // Let tables and buffers grow to their final size first.
            if event >= 100 { total += allocations }
            room.take(effects)
            room.acknowledge()
        }
        return Double(total) / Double(Self.events)
    }

    @Test(
        "a signal allocates about five times per receiving connection, plus a dozen times",
        .enabled(if: confab_counts_allocations() != 0, "a sanitizer, or another C library, has its own allocator"),
        arguments: [(2, 24.0), (10, 72.0)]
    )
    func signal(members: Int, most: Double) {
        let text = String(repeating: "x", count: 200)
        let counted = count(members: members) { session in
            var signal = SessionVerb.Signal()
            (signal.session, signal.type, signal.data) = (session, "chat", text)
            return .session(.signal(signal))
        }
        print("a signal to \(members) connections: \(counted) allocations")
        #expect(counted <= most)
    }

    @Test(
        "starting and stopping a search allocates about twenty times",
        .enabled(if: confab_counts_allocations() != 0, "a sanitizer, or another C library, has its own allocator")
    )
    func search() {
        var starts = true
        let counted = count(members: 2) { _ in
            defer { starts.toggle() }
            return starts ? .roulette(.start(.init())) : .roulette(.stop)
        }
        print("a verb of the roulette: \(counted) allocations")
        #expect(counted <= 25)
    }
}
