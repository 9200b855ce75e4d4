import Cluster
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("The placement of clients on media loops") struct LoopPlacementTests {
    /// A placement as a reference, because `#expect` cannot mutate values.
    private final class Stage {
        private(set) var placement: LoopPlacement

        init(_ loops: Int, tag: NodeTag? = nil) { placement = LoopPlacement(loops: loops, tag: tag) }

        @discardableResult
        func place(_ command: MediaCommand) -> LoopPlacement.Destination { placement.place(command) }

        @discardableResult
        func offer(_ client: UInt64, in session: SessionID? = nil) -> LoopPlacement.Destination {
            place(.offer(Self.client(client), in: session, re: 1, .send, sdp: "v"))
        }

        @discardableResult
        func publish(_ stream: UInt64, _ session: SessionID, by client: UInt64) -> LoopPlacement.Destination {
            let mids = MediaMids(audio: "a", video: "v")
            return place(
                .publish(Self.stream(stream), session, by: Self.client(client), mids, audio: true, video: true))
        }

        @discardableResult
        func subscribe(_ stream: UInt64, _ session: SessionID, by client: UInt64) -> LoopPlacement.Destination {
            place(
                .subscribe(
                    Self.stream(stream), session, by: Self.client(client), MediaMids(audio: "a"), audio: true,
                    video: false))
        }

        @discardableResult
        func unsubscribe(_ stream: UInt64, by client: UInt64) -> LoopPlacement.Destination {
            place(.unsubscribe(Self.stream(stream), by: Self.client(client)))
        }

        @discardableResult
        func unpublish(_ stream: UInt64) -> LoopPlacement.Destination {
            place(.unpublish(Self.stream(stream), by: Self.client(0)))
        }

        @discardableResult
        func leave(_ client: UInt64) -> LoopPlacement.Destination { place(.leave(Self.client(client))) }

        func loop(_ client: UInt64) -> Int? { placement.loop(of: Self.client(client)) }

        /// A client that joins a session, publishes one stream with its own number and subscribes to all earlier ones,
        /// and whose stream those clients subscribe to.
        func enter(_ client: UInt64, _ session: SessionID, others: some Sequence<UInt64>) {
            offer(client, in: session)
            publish(client, session, by: client)
            for other in others {
                subscribe(other, session, by: client)
                subscribe(client, session, by: other)
            }
        }

        /// Whether nothing is stored about any client.
        var isEmpty: Bool { placement == LoopPlacement(loops: placement.loads.count) }

        static func client(_ number: UInt64) -> ConnectionID { ConnectionID(high: 1, low: number) }
        static func stream(_ number: UInt64) -> StreamID { StreamID(high: 2, low: number) }
    }

    private let red = SessionID("1_MX4xfn4xfn5yZWR-fg") ?? .unset
    private let green = SessionID("1_MX4xfn4xfn5ncmVlbn4") ?? .unset

    @Test("clients without a session go to the loop with the least load, of equal ones to the first")
    func spreading() {
        let stage = Stage(3)
        #expect((1...7).map { stage.offer($0) } == [0, 1, 2, 0, 1, 2, 0].map { .loop($0) })
        #expect(stage.placement.loads == [27, 18, 18])
        stage.leave(1)
        stage.leave(4)
        #expect(stage.placement.loads == [9, 18, 18])
        #expect([stage.offer(8), stage.offer(9)] == [.loop(0), .loop(0)])
    }

    @Test("a client of a session goes to the loop where most of its clients are")
    func together() {
        let stage = Stage(3)
        // Three clients that have no session yet are on three loops.
        for client: UInt64 in 1...3 { stage.offer(client) }
        stage.offer(4, in: green)
        #expect(stage.loop(4) == 0)
        stage.publish(2, red, by: 2)
        stage.publish(3, red, by: 3)
        #expect(stage.offer(5, in: red) == .loop(1), "of equal ones the first")
        stage.offer(6, in: red)
        stage.place(.leave(Stage.client(5)))
        stage.leave(6)
        stage.subscribe(3, red, by: 1)
        stage.leave(2)
        stage.publish(7, red, by: 3)
        stage.leave(1)
        #expect(stage.offer(8, in: red) == .loop(2), "the others have left")
        #expect(stage.offer(9, in: green) == .loop(0))
    }

    @Test("both peer connections of a client, and its later sessions, stay on its loop")
    func staying() {
        let stage = Stage(2)
        stage.offer(1, in: red)
        stage.offer(2, in: green)
        #expect([stage.loop(1), stage.loop(2)] == [0, 1])
        #expect(stage.place(.offer(Stage.client(2), in: red, re: 2, .receive, sdp: "v")) == .loop(1))
        #expect(stage.place(.close(Stage.client(2), .send)) == .loop(1))
        #expect(stage.offer(2, in: red) == .loop(1))
        #expect(stage.place(.estimate(Stage.client(2), re: 3)) == .loop(1))
        stage.publish(1, red, by: 1)
        #expect(stage.subscribe(1, red, by: 2) == .loop(1))
        #expect(stage.unsubscribe(1, by: 2) == .loop(1))
        #expect(stage.loop(2) == 1)
        stage.leave(2)
        #expect(stage.loop(2) == nil)
        #expect(stage.offer(2, in: red) == .loop(0), "it is a new client")
    }

    @Test("a client of another node has no loop, and its streams have subscribers here")
    func elsewhere() throws {
        let stage = Stage(2, tag: try #require(NodeTag(node: 1, life: 1)))
        let distant = ConnectionID(high: 2 << 48 | 5 << 24, low: 1)
        let publish = MediaCommand.publish(
            Stage.stream(1), red, by: distant, MediaMids(audio: "a", video: "v"), audio: true, video: true)
        #expect(stage.place(publish) == .all)
        #expect(stage.placement.loop(of: distant) == nil && stage.placement.loads == [0, 0])
        stage.offer(2)
        stage.offer(3, in: red)
        #expect(stage.subscribe(1, red, by: 3) == .loop(1))
        #expect(stage.place(.unpublish(Stage.stream(1), by: distant)) == .all)
        for client: UInt64 in 2...3 { stage.leave(client) }
        #expect(stage.placement.loads == [0, 0])
    }

    @Test("streams and subscriptions before the first offer place a client")
    func beforeOffer() {
        let stage = Stage(2)
        stage.offer(1)
        #expect(stage.publish(2, red, by: 2) == .all)
        #expect(stage.loop(2) == 1)
        #expect(stage.subscribe(2, red, by: 3) == .loop(1))
        #expect(stage.offer(3) == .loop(1) && stage.offer(2) == .loop(1))
    }

    @Test("what every router must know goes to all loops")
    func all() {
        let stage = Stage(2)
        stage.offer(1)
        let update = MediaCommand.update(Stage.stream(1), by: Stage.client(1), audio: true, video: false)
        #expect(
            [stage.publish(1, red, by: 1), stage.place(update), stage.unpublish(1), stage.leave(1)] == [
                .all, .all, .all, .all,
            ])
    }

    @Test("commands about what does not exist change nothing, and go to the first loop")
    func unknown() {
        let stage = Stage(2)
        #expect(stage.place(.estimate(Stage.client(1), re: 1)) == .loop(0))
        #expect(stage.place(.close(Stage.client(1), .send)) == .loop(0))
        #expect(stage.subscribe(1, red, by: 1) == .loop(0))
        #expect(stage.unsubscribe(1, by: 1) == .loop(0))
        stage.unpublish(1)
        stage.leave(1)
        #expect(stage.isEmpty)
    }

    @Test(
        "a load is one for a client, one for each stream, and one for each of eight subscriptions, also expected ones")
    func loads() {
        let stage = Stage(2)
        stage.offer(1)
        for stream: UInt64 in 1...20 { stage.publish(stream, red, by: 2) }
        #expect(stage.placement.loads == [9, 29])
        for stream: UInt64 in 1...20 { stage.subscribe(stream, red, by: 1) }
        stage.subscribe(1, red, by: 1)
        #expect(stage.placement.loads == [9, 29])
        for stream: UInt64 in 1...12 { stage.unsubscribe(stream, by: 1) }
        #expect(stage.placement.loads == [9, 29])
        stage.unsubscribe(13, by: 1)
        #expect(stage.placement.loads == [8, 29])
        stage.unpublish(14)
        #expect(stage.placement.loads == [7, 28])
        stage.leave(2)
        #expect(stage.placement.loads == [1, 0])
    }

    @Test("a room of 25 with screens stays together, whatever the other loops have")
    func room() {
        let stage = Stage(4)
        for client: UInt64 in 100..<140 { stage.offer(client) }
        for client: UInt64 in 1...25 {
            stage.enter(client, red, others: 1..<client)
            stage.publish(client + 50, red, by: client)
            for other in 1..<client { stage.subscribe(client + 50, red, by: other) }
        }
        #expect(Set((1...25).map { stage.loop($0) }).count == 1)
        for client: UInt64 in 1...25 { stage.leave(client) }
        #expect(stage.placement.loads == [90, 90, 90, 90])
    }

    @Test("a webinar of 500 is spread evenly", arguments: [2, 4, 8])
    func webinar(loops: Int) {
        let stage = Stage(loops)
        stage.enter(0, red, others: [])
        for client: UInt64 in 1...500 {
            stage.offer(client, in: red)
            stage.subscribe(0, red, by: client)
        }
        let loads = stage.placement.loads
        #expect(loads.allSatisfy { $0 > 0 })
        // The first loop has the clients that arrived while the session was small.
        #expect((loads.max() ?? 0) <= max(LoopPlacement.maxLoadTogether + 4, (loads.min() ?? 0) + 4), "\(loads)")
    }

    @Test("500 clients that connect before any of them subscribes are spread evenly", arguments: [2, 4, 8], [1, 8])
    func burst(loops: Int, streams: UInt64) {
        let stage = Stage(loops)
        for client: UInt64 in 1...500 { stage.offer(client, in: red) }
        for stream in 1...streams { stage.publish(stream, red, by: stream) }
        for client: UInt64 in 1...500 { for stream in 1...streams { stage.subscribe(stream, red, by: client) } }
        let loads = stage.placement.loads
        #expect((loads.max() ?? 0) <= (loads.min() ?? 0) + 2 * Int(streams + 1), "\(loads)")
    }

    @Test("sessions whose clients connect before they subscribe do not all go to the loop with the least load")
    func bursts() {
        let stage = Stage(2)
        stage.enter(0, green, others: [])
        for client: UInt64 in 1...120 { stage.subscribe(0, green, by: client) }
        // The sessions s0 to s9.
        let sessions = ["MH", "MX", "Mn", "M3", "NH", "NX", "Nn", "N3", "OH", "OX"].compactMap {
            SessionID("1_MX4xfn4xfn5z\($0)5-")
        }
        #expect(sessions.count == 10)
        for (index, session) in sessions.enumerated() {
            for client in 0..<UInt64(25) { stage.offer(1000 + 25 * UInt64(index) + client, in: session) }
        }
        let rooms = (0..<10).map { stage.loop(1000 + 25 * UInt64($0)) }
        #expect((4...6).contains(rooms.count { $0 == 1 }), "\(rooms)")
    }

    @Test("a client that has gone through many sessions leaves nothing behind in them")
    func next() {
        let stage = Stage(2)
        stage.offer(1, in: red)
        for number: UInt64 in 0..<100 {
            let session = number.isMultiple(of: 2) ? green : red
            stage.offer(1, in: session)
            stage.publish(number, session, by: 1)
            stage.unpublish(number)
        }
        #expect(stage.offer(2, in: red) == .loop(0), "the client's latest offer was made in this session")
        #expect(stage.offer(3, in: green) == .loop(1))
        for client: UInt64 in 1...3 { stage.leave(client) }
        #expect(stage.isEmpty)
    }

    @Test("a client without an offer is forgotten with its last stream or subscription")
    func forgotten() {
        let stage = Stage(2)
        stage.publish(1, red, by: 1)
        stage.subscribe(1, red, by: 2)
        stage.subscribe(1, red, by: 3)
        stage.unsubscribe(1, by: 2)
        #expect(stage.loop(2) == nil)
        stage.unpublish(1)
        #expect(stage.isEmpty)
    }

    @Test("a stream belongs to the client that published it first")
    func foreign() {
        let stage = Stage(2)
        stage.offer(1)
        stage.publish(1, red, by: 1)
        stage.publish(1, red, by: 2)
        #expect(stage.loop(2) == nil && stage.placement.loads == [10, 0])
    }

    @Test("with one loop, nothing is stored")
    func alone() {
        let stage = Stage(1)
        #expect(
            [stage.offer(1, in: red), stage.publish(1, red, by: 1), stage.leave(2)] == [.loop(0), .loop(0), .loop(0)])
        #expect(stage.isEmpty)
    }

    @Test("random commands: nobody moves, the loads are right, and in the end nothing is left")
    func model() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        let stage = Stage(3)
        var loops: [UInt64: Int] = [:]
        for _ in 0..<5000 {
            let (client, stream) = (
                UInt64.random(in: 0..<20, using: &random), UInt64.random(in: 0..<30, using: &random)
            )
            let session = stream.isMultiple(of: 2) ? red : green
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<3: stage.offer(client, in: [nil, red, green].randomElement(using: &random) ?? nil)
            case 3..<5: stage.publish(stream, session, by: client)
            case 5..<8: stage.subscribe(stream, session, by: client)
            case 8..<10: stage.unsubscribe(stream, by: client)
            case 10: stage.unpublish(stream)
            default: stage.leave(client)
            }
            for number: UInt64 in 0..<20 {
                let (before, now) = (loops[number], stage.loop(number))
                #expect(before == nil || now == nil || before == now, "seed \(seed)")
                loops[number] = now
            }
            #expect(stage.placement.loads.allSatisfy { $0 >= 0 }, "seed \(seed)")
            let used = Set(loops.values)
            #expect(stage.placement.loads.indices.allSatisfy { (stage.placement.loads[$0] > 0) == used.contains($0) })
        }
        for client: UInt64 in 0..<20 { stage.leave(client) }
        #expect(stage.isEmpty, "seed \(seed)")
    }
}
