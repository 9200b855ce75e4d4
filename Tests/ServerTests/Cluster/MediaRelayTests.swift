import Cluster
import Logging
import NIOCore
import NIOPosix
import RTC
import SFU
import Signaling
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Relays between the media planes of two nodes", .ownThreads, .timeLimit(.minutes(3)))
struct MediaRelayTests {
    private static let ssrc: UInt32 = 77
    private static let tags = [NodeTag(node: 1, life: 1)!, NodeTag(node: 2, life: 2)!]

    private func plane(loops: Int, tag: NodeTag? = nil, _ heard: HeardEvents = HeardEvents()) throws -> MediaPlane {
        var settings = MediaPlane.Settings(port: 0, address: IPAddress("127.0.0.1"))
        (settings.loops, settings.tag) = (loops, tag)
        return try MediaPlane(settings, logger: Logger(label: "media") { _ in SwiftLogNoOpLogHandler() }) { event in
            heard.add(event)
        }
    }

    /// Opens the relays between two nodes, and waits until they are connected. What a node posts is there at once.
    private func connect(_ planes: [MediaPlane]) async throws -> NIOLoopBound<RelayingNodes> {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
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
        let count = planes.map(\.udpPorts.count).max() ?? 0
        try await until("all relays are connected") {
            try await loop.submit { nodes.value.all.allSatisfy { $0.counts == [.connected: count] } }.get()
        }
        return nodes
    }

    /// Negotiates a peer connection with one audio section. Returns the address of the server's end.
    private func negotiate(
        _ line: MediaLine, _ client: ConnectionID, _ side: MediaSide, _ plane: MediaPlane, _ heard: HeardEvents
    ) async throws -> TransportAddress {
        let source = LocalSource(ssrc: Self.ssrc, rtxSSRC: nil, msid: MediaStreamID(stream: "s", track: "t"))
        let section = OfferedMedia.audio(
            mid: "a", side == .send ? .sendonly : .recvonly, source: side == .send ? source : nil)
        let local = LocalParameters(
            ufrag: line.local.ufrag, pwd: line.local.password, fingerprint: line.transport.localFingerprint,
            candidates: [], sessionID: 1, cname: "c")
        let offer = RTC.offer([section], local: local)
        plane.perform(.offer(client, in: nil, re: 1, side, sdp: offer.text))
        var text: String?
        try await until("the offer is answered") {
            for case .answered(client, _, _, let sdp) in heard.all { text = sdp }
            return text != nil
        }
        let answer = try RTC.SessionDescription(parsing: #require(text))
        let remote = try RTC.accept(answer, to: offer).remote
        let server = try #require(answer.sections.first?.transport.candidates.first).address
        line.transport.setRemote(
            try #require(ICECredentials(ufrag: remote.ufrag, password: remote.pwd)), fingerprint: remote.fingerprint)
        line.transport.add(Path(socket: 0, remote: server), priority: 1)
        return server
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
                        let back = RelayID(Self.tags[index], Int(id.index))
                        other.receiveRelayCredentials(back, attempt: attempt, credentials)
                    case .connected(let id, let isConnected):
                        connected.withLock { $0[[index, Int(id.index)]] = isConnected ? true : nil }
                    case .full, .thinned: Issue.record("\(event)")
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
                planes[0].closeRelay(RelayID(Self.tags[1], index))
            }
            try await until("both nodes know that the relays are closed") { connected.withLock { $0.isEmpty } }
        }
    }

    @Test("are opened and closed by what nodes know of each other's lives")
    func lives() async throws {
        let planes = [try plane(loops: 1), try plane(loops: 2)]
        defer { for plane in planes { plane.stop() } }
        let nodes = try await connect(planes)
        let loop = nodes.eventLoop
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

    @Test("carry audio from a client of one node to a subscriber on the other one", arguments: [[1, 1], [2, 3]])
    func audio(loops: [Int]) async throws {
        let heard = [HeardEvents(), HeardEvents()]
        let planes = try (0...1).map { try plane(loops: loops[$0], tag: Self.tags[$0], heard[$0]) }
        defer { for plane in planes { plane.stop() } }
        let nodes = try await connect(planes)
        let certificate = try #require(DTLSCertificate.make())
        let lines = [try MediaLine(certificate), try MediaLine(certificate)]
        let clients = Self.tags.map { ConnectionID(high: $0.rawValue << 24, low: 1) }
        var servers: [TransportAddress] = []
        for (index, side) in [MediaSide.send, .receive].enumerated() {
            servers.append(try await negotiate(lines[index], clients[index], side, planes[index], heard[index]))
        }
        // What the session's node lets both do.
        let (stream, mids) = (StreamID(high: 1, low: 1), MediaMids(audio: "a"))
        let publish = MediaCommand.publish(stream, .unset, by: clients[0], mids, audio: true, video: false)
        for plane in planes { plane.perform(publish) }
        try await nodes.eventLoop.submit { for relays in nodes.value.all { relays.note(publish) } }.get()
        planes[1].perform(.subscribe(stream, .unset, by: clients[1], mids, audio: true, video: false))
        var sequence: UInt16 = 0
        try await until("the subscriber has heard 100 packets") {
            for (line, server) in zip(lines, servers) { line.turn(server) }
            sequence &+= 1
            lines[0].speak(sequence, ssrc: Self.ssrc)
            return lines[1].packets >= 100
        }
        try await until("the packets are counted") { planes[0].counters.router.packetsRelayed > 0 }
        for line in lines { line.transport.close(sink: line) }
        try await nodes.eventLoop.submit { for relays in nodes.value.all { relays.stop() } }.get()
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

/// The events that a media plane has reported.
private final class HeardEvents: Sendable {
    private let events = Mutex<[MediaEvent]>([])

    var all: [MediaEvent] { events.withLock { $0 } }
    func add(_ event: MediaEvent) { events.withLock { $0.append(event) } }
}
