import Cluster
import Logging
import NIOCore
import NIOPosix
import RTC
import Signaling
import SFU
import Synchronization
import TestSupport
import Testing

@testable import Server

@Suite("Relays between the media planes of two nodes", .timeLimit(.minutes(2)))
struct MediaRelayTests {
    private static let tags = [NodeTag(node: 1, life: 1)!, NodeTag(node: 2, life: 2)!]

    private func plane(loops: Int) throws -> MediaPlane {
        var settings = MediaPlane.Settings(port: 0, address: IPAddress("127.0.0.1"))
        settings.loops = loops
        return try MediaPlane(settings, logger: Logger(label: "media") { _ in SwiftLogNoOpLogHandler() }) { _ in }
    }

    @Test("connect by what the nodes' records say, and a node notices that the other one has closed them")
    func connecting() async throws {
        for loops in [(1, 1), (1, 2), (3, 1)] {
            let planes = [try plane(loops: loops.0), try plane(loops: loops.1)]
            defer { for plane in planes { plane.stop() } }
            /// The relays that are connected, with the index of the plane.
            let connected = Mutex<[[Int]: Bool]>([:])
            for (index, plane) in planes.enumerated() {
                let other = planes[1 - index]
                plane.deliverRelayEvents { event in
                    switch event {
                    case .credentials(let id, let attempt, let credentials):
                        let back = RelayID(node: UInt16(index + 1), index: id.index)
                        other.receiveRelayCredentials(back, attempt: attempt, credentials)
                    case .connected(let id, let isConnected):
                        connected.withLock { $0[[index, Int(id.index)]] = isConnected ? true : nil }
                    }
                }
            }
            let records = planes.map { NodeRelays($0) }
            for index in 0...1 {
                let plan = records[index].plan(
                    from: Self.tags[index], to: Self.tags[1 - index], records[1 - index])
                #expect(plan.count == max(loops.0, loops.1))
                for relay in plan { #expect(planes[index].open(relay, to: Self.tags[1 - index], records[1 - index])) }
            }
            let count = 2 * max(loops.0, loops.1)
            try await until("all relays are connected") { connected.withLock { $0.count } == count }
            for index in 0..<max(loops.0, loops.1) {
                planes[0].closeRelay(RelayID(node: 2, index: UInt8(index)))
            }
            try await until("both nodes know that the relays are closed") { connected.withLock { $0.isEmpty } }
        }
    }

    @Test("are opened and closed by what nodes know of each other's lives")
    func lives() async throws {
        let planes = [try plane(loops: 1), try plane(loops: 2)]
        defer { for plane in planes { plane.stop() } }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        /// What each node has posted to the other one, which is there at once.
        let nodes = try await loop.submit {
            let nodes = RelayingNodes()
            for (index, plane) in planes.enumerated() {
                let relays = ClusterRelays(
                    of: Self.tags[index], NodeRelays(plane), plane,
                    logger: Logger(label: "relays") { _ in SwiftLogNoOpLogHandler() }
                ) { [unowned nodes] input in
                    switch input {
                    case .relay(let event, Self.tags[1 - index]):
                        nodes.all[1 - index].receive(event, from: Self.tags[index])
                    case .mediaCrosses(let others): nodes.crossing[index] = others
                    default: Issue.record("\(input)")
                    }
                }
                nodes.all.append(relays)
                relays.start(on: loop)
            }
            return NIOLoopBound(nodes, eventLoop: loop)
        }.get()
        let records = planes.enumerated().map { index, plane in
            var record = NodeRecord(
                tag: Self.tags[index], url: "", socketAddress: "", region: "", version: "1",
                letters: .init(speaks: 1, reads: 1...1))
            record.relays = NodeRelays(plane)
            return record
        }
        // The second node reads later, and has the credentials of the first one until then.
        for index in 0...1 {
            try await loop.submit { nodes.value.all[index].read([Self.tags[1 - index]: records[1 - index]]) }.get()
        }
        try await until("all relays are connected") {
            try await loop.submit { nodes.value.all.allSatisfy { $0.counts == [.connected: 2] } }.get()
        }
        let crossing = try await loop.submit { nodes.value.crossing }.get()
        #expect(crossing == [0: [Self.tags[1]], 1: [Self.tags[0]]])
        try await loop.submit { nodes.value.all[0].ended(Self.tags[1]) }.get()
        try await until("the other node notices it") {
            try await loop.submit {
                nodes.value.all[0].counts == [:] && nodes.value.all[1].counts == [.connecting: 2]
            }.get()
        }
        try await loop.submit { for relays in nodes.value.all { relays.stop() } }.get()
        #expect(try await loop.submit { nodes.value.all.allSatisfy { $0.counts == [:] } }.get())
    }

    @Test("are not opened by a record that says nothing usable")
    func records() throws {
        let plane = try plane(loops: 1)
        defer { plane.stop() }
        let good = NodeRelays(
            fingerprint: String(repeating: "0A", count: 32), loops: [["127.0.0.1:9"]], versions: 1...1)
        func opens(_ theirs: NodeRelays) throws -> Bool {
            let plan = NodeRelays(plane).plan(from: Self.tags[0], to: Self.tags[1], theirs)
            return plane.open(try #require(plan.first), to: Self.tags[1], theirs)
        }
        #expect(try opens(good))
        for fingerprint in ["", "0a", String(repeating: "0x", count: 32), String(repeating: "0a", count: 33)] {
            var bad = good
            bad.fingerprint = fingerprint
            #expect(try !opens(bad), "\(fingerprint)")
        }
        // The last one is usable, but this plane has no IPv6 socket.
        for address in [
            "", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "a:1", "[127.0.0.1]:1", "::1:1",
            "[::1]:1",
        ] {
            var bad = good
            bad.loops = [[address]]
            #expect(try !opens(bad), "\(address)")
        }
        #expect(TransportAddress.parsing("[::1]:1") == TransportAddress(high: 0, low: 1, port: 1))
        #expect(TransportAddress.parsing("127.0.0.1:9") == TransportAddress(v4: 0x7f00_0001, port: 9))
    }
}

/// Both nodes of a test. Used on one event loop.
private final class RelayingNodes {
    var all: [ClusterRelays] = []
    /// To which nodes media can cross, as the relays of each node said last.
    var crossing: [Int: Set<NodeTag>] = [:]
}
