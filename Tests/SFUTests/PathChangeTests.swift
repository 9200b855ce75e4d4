import RTC
import TestSupport
import Testing

@testable import SFU

/// Clients whose address changes in the middle.
@Suite("A changed address")
struct PathChangeTests {
    @Test("a publisher whose address changes is seen again within 3 s, long before its own next check")
    func seenAgain() throws {
        for round in 0..<5 {
            let room = try SimulatedRoom(seed: UInt64(round), weather: NetworkConditions(delay: 50...50))
            let clients = try room.clients(2)
            clients[0].subscribe(to: clients[1])
            // At different times since the publisher's latest check.
            room.run(5000 + Int64(round) * 900)
            let send = try #require(clients[1].send)
            let slot = try clients[0].video()
            send.host.addresses = [TransportAddress(v4: 0xc0a9_0001, port: 7000)]
            let movedAt = room.network.now
            // A keyframe on the way was sent before the change.
            room.run(130)
            slot.forgetArrivals()
            let isBack = room.network.run(for: .seconds(3)) { slot.frames.contains { $0.isKeyframe && $0.isComplete } }
            print("round \(round): pictures again after \((room.network.now - movedAt).milliseconds) ms")
            #expect(isBack && room.network.now - movedAt < .milliseconds(700))
            // Until nothing from before the change is sent again.
            room.run(2000)
            slot.forgetArrivals()
            try clients[0].audio().forgetArrivals()
            room.run(20_000)
            #expect(slot.arrivals.count > 1000 && slot.faults(clock: .milliseconds(130)) == [])
            #expect(try clients[0].audio().arrivals.count > 950)
            #expect(room.router.peers.unvalidated.isEmpty)
        }
    }

    @Test("a subscriber whose address changes gets media again after its next report, long before its own next check")
    func hearsAgain() throws {
        for round in 0..<5 {
            let room = try SimulatedRoom(seed: UInt64(round), weather: NetworkConditions(delay: 50...50))
            let clients = try room.clients(6)
            for client in clients.dropFirst(2) { client.subscribe(to: clients[1]) }
            clients[0].subscribe(to: clients[1])
            // At different times since the subscriber's latest check.
            room.run(5000 + Int64(round) * 900)
            let receive = try #require(clients[0].receive)
            let (video, audio) = (try clients[0].video(), try clients[0].audio())
            receive.host.addresses = [TransportAddress(v4: 0xc0a9_0001, port: 7000)]
            let movedAt = room.network.now
            // What was on the way went to the former address.
            room.run(130)
            video.forgetArrivals()
            audio.forgetArrivals()
            let isBack = room.network.run(for: .seconds(3)) { !audio.arrivals.isEmpty && !video.arrivals.isEmpty }
            print("round \(round): media again after \((room.network.now - movedAt).milliseconds) ms")
            // A report in the first 0.2 s does not count yet, and the next one comes a second later. The check takes a round trip.
            #expect(isBack && room.network.now - movedAt < .milliseconds(1600))
            room.run(2000)
            video.forgetArrivals()
            room.run(10_000)
            #expect(video.arrivals.count > 500 && video.faults(clock: .milliseconds(130)) == [])
            #expect(room.router.peers.unvalidated.isEmpty)
        }
    }

    @Test("reports from an unknown address are checked only if they are authentic and new, and get nothing else")
    func unvalidatedPathsReport() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        let receive = try #require(clients[0].receive)
        let other = TransportAddress(v4: 0x0909_0909, port: 9)
        func reports(_ milliseconds: Int64, areLost: Bool) -> [[UInt8]] {
            var copies: [[UInt8]] = []
            room.network.filter = { bytes, from, _ in
                guard from == receive.address, (128...191).contains(bytes[0]) else { return true }
                copies.append(bytes)
                return !areLost
            }
            room.run(milliseconds)
            room.network.filter = nil
            return copies
        }
        let old = reports(1500, areLost: false)
        try #require(old.count > 10)
        receive.isMute = true
        receive.reportsArrivals = false
        room.run(300)
        for copy in old.suffix(10) {
            var forged = copy
            forged[forged.count - 1] ^= 1
            for bytes in [copy, forged, Array(copy.prefix(13))] {
                room.network.inject(bytes, from: other, to: SimulatedServer.address)
                room.run(25)
            }
        }
        #expect(room.server.sink.sentBytes[other] == nil)
        // An attacker on the path takes reports and sends them on from elsewhere: only checks go there, and nobody answers them.
        let taken = reports(3000, areLost: true)
        try #require(taken.count >= 2)
        for copy in taken {
            room.network.inject(copy, from: other, to: SimulatedServer.address)
            room.run(250)
        }
        let sent = try #require(room.server.sink.sentBytes[other])
        #expect(sent > 0 && sent <= 150 * taken.count, "\(sent) for \(taken.map(\.count))")
        #expect(room.router.peers.byPath.keys.allSatisfy { $0.remote != other })
        let slot = try clients[0].audio()
        slot.forgetArrivals()
        room.run(2000)
        #expect(slot.arrivals.count > 60)
    }

    @Test("media from an unknown address is checked only if it is authentic and new, and is never sent anything else")
    func unvalidatedPaths() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(2)
        clients[0].subscribe(to: clients[1])
        room.run(1000)
        let send = try #require(clients[1].send)
        let other = TransportAddress(v4: 0x0909_0909, port: 9)
        // Copies of packets that arrived, and packets with the publisher's SSRC that an attacker made.
        var copies: [[UInt8]] = []
        room.network.filter = { bytes, from, _ in
            if from == send.address, (128...191).contains(bytes[0]) { copies.append(bytes) }
            return true
        }
        room.run(200)
        room.network.filter = nil
        try #require(copies.count > 10)
        for copy in copies {
            var forged = copy
            forged[forged.count - 1] ^= 1
            for bytes in [copy, forged, Array(copy.prefix(11))] {
                room.network.inject(bytes, from: other, to: SimulatedServer.address)
                room.run(25)
            }
        }
        #expect(room.server.sink.sentBytes[other] == nil)
        // An attacker on the path takes packets and sends them on from elsewhere: only checks go there, and nobody answers them.
        room.network.filter = { bytes, from, to in
            guard from == send.address, (128...191).contains(bytes[0]), bytes[1] < 192 || bytes[1] > 223 else {
                return true
            }
            copies.append(bytes)
            return false
        }
        copies.removeAll()
        room.run(200)
        room.network.filter = nil
        for copy in copies {
            room.network.inject(copy, from: other, to: SimulatedServer.address)
            room.run(25)
        }
        let sent = try #require(room.server.sink.sentBytes[other])
        #expect(sent > 0 && sent < copies.map(\.count).reduce(0, +) / 2)
        #expect(room.router.peers.byPath.keys.allSatisfy { $0.remote != other })
        let slots = [try clients[0].audio(), try clients[0].video()]
        for slot in slots { slot.forgetArrivals() }
        room.run(2000)
        for slot in slots { #expect(slot.arrivals.count > 60) }
        clients[1].router.leave(clients[1].key)
        #expect(room.router.peers.unvalidated.isEmpty)
    }
}
