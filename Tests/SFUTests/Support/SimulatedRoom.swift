import RTC
import TestSupport
import Testing

@testable import SFU

/// A client with its two connections.
final class SimulatedClient {
    let number: UInt32
    let key: Key
    let stream: Key
    let room: SimulatedRoom
    /// The event loop that has both connections.
    let server: SimulatedServer
    private(set) var send: SimulatedConnection?
    private(set) var receive: SimulatedConnection?
    /// The session in which the client publishes.
    var session = "s"
    private var connections: UInt16 = 0

    init(_ number: UInt32, _ room: SimulatedRoom) {
        (self.number, self.room) = (number, room)
        server = room.servers[Int(number - 1) % room.servers.count]
        key = Key(high: 1, low: UInt64(number))
        stream = Key(high: 2, low: UInt64(number))
    }

    var router: Router { server.router }
    var microphone: SimulatedSource? { send?.sources.last { $0.kind == .audio } }
    var camera: SimulatedSource? { send?.sources.last { $0.kind == .video } }
    var isConnected: Bool { send?.isReady ?? true && receive?.isReady ?? true }

    private func freshAddress() -> TransportAddress {
        connections += 1
        return TransportAddress(v4: 0xc0a8_0000 | number, port: 5000 + connections)
    }

    /// Returns random extension IDs, because each client chooses its own.
    private func extensions() -> [HeaderExtension: UInt8] {
        let ids = (1...14).shuffled(using: &room.random)
        return Dictionary(uniqueKeysWithValues: zip(HeaderExtension.allCases, ids.map { UInt8($0) }))
    }

    /// Connects in order to send, and publishes. A second call replaces the connection with a new one.
    func publish(
        audio: Codec? = Codec(.opus, payloadType: 111),
        video: Codec? = Codec(.vp8, payloadType: 96, rtxPayloadType: 97),
        others: [MediaKind: [Codec]] = [:]
    ) throws {
        send?.vanish()
        let ids = extensions()
        let connection = try SimulatedConnection(key, .send, of: server, at: freshAddress(), [])
        for (mid, codec, kind) in [("a", audio, MediaKind.audio), ("v", video, .video)] {
            guard let codec else { continue }
            let source = SimulatedSource(mid: mid, kind: kind, label: number, codec: codec, random: &room.random)
            connection.add(source)
            var section = connection.section(source, ids)
            section.codecs += others[kind] ?? []
            connection.offered.append(section)
        }
        send = connection
        try connection.negotiate()
        room.publish(self, Mids(audio: audio.map { _ in "a" }, video: video.map { _ in "v" }))
    }

    /// Connects in order to receive, with `slots` pairs of transceivers: "a0" and "v0", "a1" and "v1" … The `others` are codecs
    /// for audio, the `otherVideos` for video. `numbersAudio` is whether audio may carry transport-wide numbers.
    func watch(
        slots: Int = 2, audio: Codec = Codec(.opus, payloadType: 109),
        video: Codec = Codec(.vp8, payloadType: 120, rtxPayloadType: 121), others: [Codec] = [],
        otherVideos: [Codec] = [], numbersAudio: Bool = true
    ) throws {
        receive?.vanish()
        let ids = extensions()
        let audioIDs = numbersAudio ? ids : ids.filter { $0.key != .transportWideCC }
        let media = (0..<slots).flatMap { slot in
            [
                OfferedMedia(
                    mid: "a\(slot)", kind: .audio, direction: .recvonly, codecs: [audio] + others,
                    extensions: audioIDs),
                OfferedMedia(
                    mid: "v\(slot)", kind: .video, direction: .recvonly, codecs: [video] + otherVideos,
                    extensions: ids),
            ]
        }
        let connection = try SimulatedConnection(key, .receive, of: server, at: freshAddress(), media)
        receive = connection
        try connection.negotiate()
    }

    /// Connects with the offer of a browser, whose sections are "0" (audio) and "1" (video), and publishes what the answer
    /// prefers.
    func publish(as template: SessionDescription) throws {
        var template = template
        let connection = try SimulatedConnection(key, .send, of: server, at: freshAddress(), [])
        send = connection
        let rids = template.sections[1].rids.map { Optional($0.id) }
        let negotiated = try answer(
            to: template, role: .receive,
            local: LocalParameters(
                ufrag: "serv", pwd: "ThePasswordOfTheServer24", fingerprint: connection.transport.localFingerprint,
                candidates: [], sessionID: 1, cname: "c"))
        for (index, media) in negotiated.media.enumerated() {
            let codec = try #require(media.codecs.first)
            for rid in index == 1 && !rids.isEmpty ? rids : [nil] {
                let source = SimulatedSource(
                    mid: media.mid, kind: media.kind, label: number, codec: codec, random: &room.random)
                source.rid = rid
                source.isRedundant = codec.kind == .red
                connection.add(source)
                guard rid == nil else { continue }
                let ssrcs = index == 1 ? [source.ssrc, source.repairSSRC] : [source.ssrc]
                template.sections[index].sources = ssrcs.map { SourceDescription(ssrc: $0, cname: "c") }
                guard index == 1 else { continue }
                template.sections[index].sourceGroups = [SourceGroup(semantics: .retransmission, ssrcs: ssrcs)]
            }
        }
        connection.template = template
        try connection.negotiate()
        room.publish(self, Mids(audio: "0", video: "1"))
    }

    /// Connects with the offer of a browser in order to receive.
    func watch(as template: SessionDescription) throws {
        let connection = try SimulatedConnection(key, .receive, of: server, at: freshAddress(), [])
        receive = connection
        connection.template = template
        try connection.negotiate()
    }

    func subscribe(to other: SimulatedClient, slot: Int = 0, audio: Bool = true, video: Bool = true) {
        router.subscribe(
            other.stream, client: key, mids: Mids(audio: "a\(slot)", video: "v\(slot)"), audio: audio, video: video
        )
    }

    /// Sets or changes the preference that selects a layer.
    func prefer(_ preference: VideoPreference, of other: SimulatedClient, slot: Int = 0) {
        router.subscribe(
            other.stream, client: key, mids: Mids(audio: "a\(slot)", video: "v\(slot)"), audio: true, video: true,
            preferring: preference
        )
    }

    func unsubscribe(from other: SimulatedClient) { router.unsubscribe(other.stream, client: key) }

    func audio(_ slot: Int = 0) throws -> SimulatedSlot { try #require(receive).slot("a\(slot)") }
    func video(_ slot: Int = 0) throws -> SimulatedSlot { try #require(receive).slot("v\(slot)") }
}

extension SimulatedConnection {
    func section(_ source: SimulatedSource, _ ids: [HeaderExtension: UInt8]) -> OfferedMedia {
        var media = OfferedMedia(
            mid: source.mid, kind: source.kind, direction: .sendonly, codecs: [source.codec], extensions: ids
        )
        if source.rid == nil {
            media.source = LocalSource(
                ssrc: source.ssrc, rtxSSRC: source.kind == .video ? source.repairSSRC : nil,
                msid: MediaStreamID(stream: "s", track: source.mid)
            )
        }
        return media
    }
}

/// Several clients and their server on one network. The server can have several event loops, or be a cluster of several nodes with
/// one loop each. Clients are assigned to them in turn.
final class SimulatedRoom {
    let network: SimulatedMediaNetwork
    let servers: [SimulatedServer]
    /// The number of nodes. If there are several, each of the servers is one.
    let nodes: Int
    /// The node that chooses the active speaker; nil if that was not decided.
    var home: SimulatedServer?
    var random: SeededGenerator
    private(set) var clients: [SimulatedClient] = []

    init(
        seed: UInt64 = 1, weather: NetworkConditions = NetworkConditions(), longestFlush: Int? = nil,
        loops: Int = 1, nodes: Int = 1, adjust: (inout RouterSettings) -> Void = { _ in }
    ) throws {
        random = SeededGenerator(seed: seed)
        let network = SimulatedMediaNetwork(seed: seed &+ 1, weather: weather)
        self.network = network
        // Only what is needed, because a weak reference slows down all others.
        let bells = (0..<(loops > 1 ? loops : 0)).map { _ in SimulatedBell() }
        let rings = loops > 1 ? PipeRings(bells: bells.map { bell in { bell.ring() } }) : nil
        self.nodes = nodes
        servers = try (0..<max(loops, nodes)).map { index in
            let (loop, node) = nodes > 1 ? (0, index) : (index, 0)
            return try SimulatedServer(
                network, seed: seed &+ 2, longestFlush: longestFlush, pipes: rings, loop: loop, node: node,
                adjust: adjust)
        }
        for (bell, server) in zip(bells, servers) { bell.server = server }
        if nodes > 1 { try openRelays() }
    }

    /// The server's first event loop.
    var server: SimulatedServer { servers[0] }
    var router: Router { server.router }

    // MARK: Relays

    /// Returns the relay to a node at any other node.
    func relay(to node: Int) -> RelayID { RelayID(node: UInt16(node + 1), life: 1, index: 0) }

    /// Opens a relay between each two nodes. Credentials cross at once, as letters do almost.
    private func openRelays() throws {
        let fingerprint = try #require(SimulatedServer.fingerprint)
        for (one, server) in servers.enumerated() {
            for (other, far) in servers.enumerated() where other != one {
                let peer = RelayPeer(
                    fingerprint: fingerprint, paths: [Path(socket: 0, remote: far.address)], isController: one < other)
                server.router.openRelay(relay(to: other), to: peer, now: network.now)
            }
            server.pass = { [unowned self] id, attempt, credentials in
                let other = servers[Int(id.node) - 1]
                other.router.receiveRelayCredentials(
                    relay(to: one), attempt: attempt, credentials, now: network.now)
            }
        }
    }

    /// Lets the client's streams reach all nodes.
    private func pull(_ client: SimulatedClient) {
        guard nodes > 1, let home = servers.firstIndex(where: { $0 === client.server }) else { return }
        for server in servers where server !== client.server {
            server.router.pull(client.key, over: relay(to: home), now: network.now)
        }
    }

    private func stopPulling(_ client: SimulatedClient) {
        guard nodes > 1, let home = servers.firstIndex(where: { $0 === client.server }) else { return }
        for server in servers where server !== client.server {
            server.router.stopPulling(client.key, over: relay(to: home), now: network.now)
        }
    }

    // MARK: Commands that concern all event loops or nodes

    func publish(_ client: SimulatedClient, _ mids: Mids, audio: Bool = true, video: Bool = true) {
        for server in servers {
            server.router.publish(
                client.stream, session: client.session, client: client.key, mids: mids, audio: audio, video: video,
                alwaysHeard: server === home && server !== client.server)
        }
        pull(client)
    }

    func update(_ client: SimulatedClient, audio: Bool, video: Bool) {
        for server in servers { server.router.update(client.stream, audio: audio, video: video) }
    }

    func unpublish(_ client: SimulatedClient) { for server in servers { server.router.unpublish(client.stream) } }

    func leave(_ client: SimulatedClient) {
        for server in servers { server.router.leave(client.key) }
        stopPulling(client)
    }

    func client() -> SimulatedClient {
        let client = SimulatedClient(UInt32(clients.count + 1), self)
        clients.append(client)
        return client
    }

    /// Creates clients that are connected, publish, and can subscribe.
    func clients(_ count: Int, slots: Int = 2) throws -> [SimulatedClient] {
        let new = (0..<count).map { _ in client() }
        for client in new {
            try client.publish()
            try client.watch(slots: slots)
        }
        try connect()
        return new
    }

    func connect() throws {
        let isConnected = network.run(for: .seconds(20)) { clients.allSatisfy { $0.isConnected } }
        try #require(isConnected)
    }

    func run(_ milliseconds: Int64) { network.run(for: .milliseconds(milliseconds)) }
}

/// Wakes a simulated event loop. A simulation has only one thread.
private final class SimulatedBell: @unchecked Sendable {
    weak var server: SimulatedServer?

    func ring() { server?.wake() }
}
