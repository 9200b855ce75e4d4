import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Sending less over a relay that loses packets")
struct RelayThinningTests {
    /// Adds a report of 100 packets each second, some of which are lost. Returns each second in which the level changed, and
    /// the new level.
    private func changes(
        _ losses: [(seconds: Int, lost: Int64)], sent: Int64 = 100, drops: (Int) -> Bool = { _ in true }
    ) -> [String] {
        var thinning = RelayThinning()
        var changes: [String] = []
        let seconds = losses.flatMap { part in [Int64](repeating: part.lost, count: part.seconds) }
        for (index, lost) in seconds.enumerated() {
            let now = MediaTime(nanoseconds: Int64(index + 1) * 1_000_000_000)
            thinning.add(sent: sent, lost: lost, now: now)
            let level = thinning.level
            let isChanged = thinning.update(now: now, drops: drops)
            #expect(isChanged == (level != thinning.level))
            if level != thinning.level { changes.append("\(index + 1): \(thinning.level)") }
        }
        return changes
    }

    @Test("layers are dropped one by one while losses continue, and offered again one by one after calm times")
    func script() {
        let storm = changes([(19, 10), (39, 0)])
        #expect(storm == ["5: 1", "12: 2", "19: 3", "32: 2", "45: 1", "58: 0"])
        #expect(changes([(60, 10)]) == ["5: 1", "12: 2", "19: 3"])
    }

    @Test("after losses that follow a layer that was offered again, the calm time doubles")
    func backOff() {
        #expect(changes([(5, 10), (13, 0), (7, 10), (25, 0)]) == ["5: 1", "18: 0", "25: 1", "48: 0"])
        // The losses count as one return, however many layers are dropped.
        let storm = changes([(5, 10), (13, 0), (21, 10), (90, 0)])
        #expect(storm == ["5: 1", "18: 0", "25: 1", "32: 2", "39: 3", "62: 2", "85: 1", "108: 0"])
        // A minute later, the losses have another cause.
        #expect(changes([(5, 10), (60, 0), (5, 10), (14, 0)]).map { $0.suffix(3) } == [": 1", ": 0", ": 1", ": 0"])
    }

    @Test("a burst, or losses of five percent, drop nothing, and between two and five percent nothing is offered again")
    func hysteresis() {
        #expect(changes([(60, 5)]) == [])
        #expect(changes([(2, 0), (1, 90), (60, 0)]) == [])
        let bursts: [(seconds: Int, lost: Int64)] = [(1, 30), (7, 0)]
        #expect(changes((0..<20).flatMap { _ in bursts }) == [])
        #expect(changes([(5, 10), (60, 3)]) == ["5: 1"])
        #expect(changes([(5, 10), (60, 2)]) == ["5: 1", "18: 0"])
    }

    @Test("a level that drops nothing is skipped")
    func levels() {
        #expect(changes([(60, 10)]) { _ in false } == [])
        #expect(changes([(60, 10)]) { $0 >= 2 } == ["5: 2", "12: 3"])
    }

    @Test("losses among a few packets drop nothing")
    func fewPackets() {
        #expect(changes([(60, 5)], sent: 5) == [])
    }

    // MARK: What counts as lost

    /// Returns what a channel counts as sent and as lost when a report arrives.
    /// - Parameters:
    ///   - newest: the newest number that has arrived.
    ///   - lost: how many up to it have not.
    private func measure(_ channel: RelayChannel, newest: UInt32, lost: Int32) -> [Int64]? {
        let block = RTCP.ReportBlock(
            ssrc: channel.ssrc, fractionLost: 0, lost: lost, highestSequenceNumber: newest, jitter: 0,
            lastSenderReport: 0, delaySinceLastSenderReport: 0)
        return channel.measure(block).map { [$0.sent, $0.lost] }
    }

    @Test("losses of an interruption of the relay do not count, even if the first report afterwards is older")
    func interruption() {
        let (channel, track) = (RelayChannel(3), FeedTrack(mid: "v", kind: .video))
        #expect(channel.begin(track.addFeed(rid: nil)) == true)
        var sequence: Int64 = 500
        func send(_ count: Int) {
            for _ in 0..<count {
                sequence += 1
                let number = channel.numbers.number(sequence)
                #expect(number != nil)
                channel.noteSent()
            }
        }
        send(100)
        #expect(measure(channel, newest: 100, lost: 0) == nil, "the first report")
        send(100)
        #expect(measure(channel, newest: 200, lost: 10) == [100, 10])
        // None of these arrive.
        send(150)
        channel.resume()
        sequence += 75  // Not sent during the interruption.
        send(50)
        #expect(measure(channel, newest: 200, lost: 10) == nil, "nothing new has arrived")
        #expect(measure(channel, newest: 400, lost: 160) == nil, "the first report of what was sent since")
        send(100)
        #expect(measure(channel, newest: 500, lost: 165) == [100, 5])
    }

    // MARK: Between two nodes

    private func levels(_ server: SimulatedServer) -> [Int] {
        server.relayChanges.compactMap { if case .thinned(_, let layers) = $0 { layers } else { nil } }
    }

    @Test("subscribers get smaller layers while the relay loses an eighth of its packets, and larger ones afterwards")
    func layers() throws {
        let call = try SimulatedLayers(nodes: 2)
        call.prefer(0, 1280, 720)
        call.room.run(3000)
        let slot = try call.slot()
        #expect(slot.labels.last == 10)
        let nodes = Set(call.room.servers.map(\.address))
        var random = SeededGenerator(seed: 4)
        call.room.network.filter = { _, from, to in
            !(nodes.contains(from) && nodes.contains(to)) || Int.random(in: 0..<8, using: &random) > 0
        }
        call.room.run(30_000)
        #expect(levels(call.room.server) == [1, 2] && slot.labels.last == 12, "\(slot.labels)")
        // In the other direction no video crosses.
        #expect(levels(call.room.servers[1]).isEmpty)
        call.room.network.filter = nil
        call.room.run(45_000)
        #expect(levels(call.room.server) == [1, 2, 1, 0] && slot.labels.last == 10, "\(slot.labels)")
    }

    @Test("a relay that is interrupted for some seconds offers all layers afterwards")
    func interruptedRelay() throws {
        let call = try SimulatedLayers(nodes: 2)
        call.prefer(0, 1280, 720)
        // Publishers that begin at different times report at different times, so their losses fall into several windows.
        for _ in 0..<3 {
            call.room.run(300)
            let pair = try call.room.clients(2)
            pair[1].subscribe(to: pair[0])
        }
        call.room.run(3000)
        let nodes = Set(call.room.servers.map(\.address))
        call.room.network.filter = { _, from, to in !(nodes.contains(from) && nodes.contains(to)) }
        call.room.run(3000)
        call.room.network.filter = nil
        call.room.run(15_000)
        let connected = call.room.server.relayChanges.compactMap { event -> Bool? in
            if case .connected(_, let isConnected) = event { isConnected } else { nil }
        }
        #expect(connected == [true, false, true], "the relay was interrupted, and did not begin again")
        #expect(levels(call.room.server).isEmpty)
        #expect(try call.slot().labels.last == 10)
    }

    @Test("a relay that is interrupted while layers are not offered reports all layers only when it is connected again")
    func lostRelay() throws {
        let call = try SimulatedLayers(nodes: 2)
        call.prefer(0, 1280, 720)
        call.room.run(3000)
        let nodes = Set(call.room.servers.map(\.address))
        var random = SeededGenerator(seed: 4)
        var share = 8
        call.room.network.filter = { _, from, to in
            !(nodes.contains(from) && nodes.contains(to)) || Int.random(in: 0..<share, using: &random) > 0
        }
        let isThinned = call.room.network.run(for: .seconds(30)) { levels(call.room.server) == [1] }
        #expect(isThinned)
        // Nothing crosses until both ends have begun again.
        share = 1
        call.room.run(8000)
        call.room.network.filter = nil
        call.room.run(6000)
        let relay = call.room.relay(to: 1)
        #expect(
            call.room.server.relayChanges == [
                .connected(relay, true), .thinned(relay, layers: 1), .connected(relay, false),
                .connected(relay, false), .connected(relay, true), .thinned(relay, layers: 0),
            ])
    }

    @Test("packets lost by the publisher's connection do not count")
    func uplink() throws {
        let call = try SimulatedLayers(nodes: 2)
        call.prefer(0, 1280, 720)
        call.room.run(3000)
        let (node, sender) = (call.room.server.address, try #require(call.publisher.send).address)
        var random = SeededGenerator(seed: 4)
        call.room.network.filter = { _, from, to in
            from != sender || to != node || Int.random(in: 0..<8, using: &random) > 0
        }
        call.room.run(20_000)
        #expect(call.room.servers[1].router.counters.packetsRecovered > 10)
        #expect(levels(call.room.server).isEmpty)
        #expect(try call.slot().labels.last == 10)
    }
}
