import Cluster
import Signaling
import Testing
import Wire

@testable import Server

@Suite("What waits while the rules of a node must not act") struct FreezeTests {
    private let start = Timestamp(milliseconds: 1_000_000)
    private let session = SessionID("1_tea")!

    @Test("clients without media are disconnected after 30 s, and those that come later every 5 s")
    func longestStay() {
        var freeze = Freeze()
        #expect(!freeze.isFrozen && !freeze.handleTimeout(at: start))
        freeze.begin(at: start)
        let closings = [0, 29_999, 30_000, 34_999, 35_000, 40_000].filter {
            freeze.handleTimeout(at: start + .milliseconds($0))
        }
        #expect(closings == [30_000, 35_000, 40_000])
    }

    @Test("noticing it again does not prolong the wait, and after the end nobody is disconnected")
    func again() {
        var freeze = Freeze()
        freeze.begin(at: start)
        freeze.begin(at: start + .seconds(29))
        #expect(freeze.nextTimeout == start + .seconds(30))
        freeze.end()
        #expect(!freeze.isFrozen && freeze.nextTimeout == nil && !freeze.handleTimeout(at: start + .seconds(60)))
        freeze.begin(at: start + .seconds(60))
        #expect(freeze.nextTimeout == start + .seconds(90))
    }

    @Test("the latest news of a stream, a session or a connection replaces what waits, and nothing else does")
    func news() {
        var freeze = Freeze()
        freeze.begin(at: start)
        let (alice, bob) = (ConnectionID(high: 1, low: 1), ConnectionID(high: 1, low: 2))
        let other = SessionID("1_coffee")!
        let inputs: [(MediaEvent, Freeze.Verdict)] = [
            (.speaking(session, nil), .append), (.connected(alice, .send, true), .append),
            (.connected(bob, .send, true), .append), (.connected(alice, .receive, true), .append),
            (.speaking(session, StreamID(high: 0, low: 7)), .replace(10)), (.speaking(other, nil), .append),
            (.connected(alice, .send, false), .replace(11)), (.full(session, true), .append),
            (.full(session, false), .replace(17)),
            (.closed(alice, .send, WireError.internalError), .append),
            (.closed(alice, .send, WireError.internalError), .append),
        ]
        for (index, (event, verdict)) in inputs.enumerated() {
            #expect(freeze.admit(.media(event), waiting: 10 + index) == verdict, "\(index)")
        }
        freeze.end()
        freeze.begin(at: start)
        #expect(freeze.admit(.media(.speaking(session, nil)), waiting: 0) == .append)
    }

    @Test("the latest credentials of a relay replace those that wait")
    func relays() throws {
        var freeze = Freeze()
        freeze.begin(at: start)
        let lives = [try #require(NodeTag(node: 2, life: 2)), try #require(NodeTag(node: 3, life: 3))]
        func admit(_ index: UInt8, _ attempt: UInt32, to life: NodeTag, waiting: Int) -> Freeze.Verdict {
            let credentials = RelayCredentials(index: index, attempt: attempt, ufrag: "", password: "")
            return freeze.admit(.relay(.credentials(credentials), to: life), waiting: waiting)
        }
        #expect(admit(0, 1, to: lives[0], waiting: 5) == .append)
        #expect(admit(1, 1, to: lives[0], waiting: 6) == .append)
        #expect(admit(0, 1, to: lives[1], waiting: 7) == .append)
        #expect(admit(0, 2, to: lives[0], waiting: 8) == .replace(5))
    }

    @Test("beyond the limit new requests are refused, and what happens to those who are there waits")
    func limit() {
        var freeze = Freeze()
        freeze.begin(at: start)
        let socket = SocketID(rawValue: 9)
        let message = Input.message(socket, Envelope(seq: 1, message: .roulette(.count)))
        let request = Input.operated(OperatorRequest(socket: socket, .list(after: nil, limit: 1)))
        for input in [message, request] {
            #expect(freeze.admit(input, waiting: Freeze.maxInputs - 1) == .append)
            #expect(freeze.admit(input, waiting: Freeze.maxInputs) == .refuse(socket))
        }
        for input in [
            Input.closed(SocketID(rawValue: 8), leaving: true), .unreachable(IdentityID(high: 1, low: 1)),
            .storageFailed([]),
        ] {
            #expect(freeze.admit(input, waiting: Freeze.maxInputs) == .append)
        }
    }

    @Test("sockets that come and are refused leave nothing behind")
    func refusedArrivals() {
        var freeze = Freeze()
        freeze.begin(at: start)
        for number in UInt64(1)...3 {
            let socket = SocketID(rawValue: number)
            let arrival = Input.arrived(
                Arrival(
                    socket: socket, identity: Identity(id: IdentityID(high: 1, low: number)), address: "203.0.113.1"))
            #expect(freeze.admit(arrival, waiting: Freeze.maxInputs) == .refuse(socket))
            #expect(freeze.admit(.closed(socket, leaving: false), waiting: Freeze.maxInputs) == .drop)
            // Only once: numbers are not used again, so nothing else may be dropped.
            #expect(freeze.admit(.closed(socket, leaving: false), waiting: Freeze.maxInputs) == .append)
        }
    }

    @Test("the end of a socket whose arrival waits is kept, even if its later messages are refused")
    func admittedArrival() {
        var freeze = Freeze()
        freeze.begin(at: start)
        let socket = SocketID(rawValue: 1)
        let arrival = Input.arrived(
            Arrival(socket: socket, identity: Identity(id: IdentityID(high: 1, low: 1)), address: "203.0.113.1"))
        #expect(freeze.admit(arrival, waiting: Freeze.maxInputs - 1) == .append)
        let message = Input.message(socket, Envelope(seq: 1, message: .roulette(.count)))
        #expect(freeze.admit(message, waiting: Freeze.maxInputs) == .refuse(socket))
        #expect(freeze.admit(.closed(socket, leaving: false), waiting: Freeze.maxInputs) == .append)
    }
}
