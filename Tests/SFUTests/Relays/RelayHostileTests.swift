import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Messages of a node that does not keep to the rules")
struct RelayHostileTests {
    /// Returns a track with random content.
    private func track(_ random: inout SeededGenerator) -> RemoteTrackState {
        let isVideo = Bool.random(using: &random)
        let codecs =
            isVideo
            ? [
                Codec(.vp8, payloadType: 96, rtxPayloadType: 97), Codec(.vp9(profile: 0), payloadType: 98),
                Codec(.h264(profileLevelID: 0x42e01f, packetizationMode: 1), payloadType: 96),
            ] : [Codec(.opus, payloadType: 111), Codec(.red, payloadType: 63, fmtp: "111")]
        let encodings = (0..<Int.random(in: 0...RelayMessage.maxEncodings, using: &random)).map { _ in
            encoding(&random)
        }
        return RemoteTrackState(
            id: UInt32.random(in: 1...4, using: &random), mid: ["a", "v"].randomElement(using: &random) ?? "v",
            isVideo: isVideo, codecs: Array(codecs.shuffled(using: &random).prefix(2)),
            extensions: [.audioLevel: UInt8.random(in: 1...255, using: &random)], encodings: encodings)
    }

    private func encoding(_ random: inout SeededGenerator) -> RemoteTrackState.Encoding {
        var encoding = RemoteTrackState.Encoding()
        let codecs: [UInt8?] = [nil, 0, 1, 200]
        if Bool.random(using: &random) { encoding.rid = "f" }
        encoding.generation = UInt8.random(in: 0...2, using: &random)
        encoding.codec = codecs[Int.random(in: 0..<codecs.count, using: &random)]
        if Bool.random(using: &random) { encoding.size = PictureSize(width: 1, height: 65_535) }
        encoding.isAlive = Bool.random(using: &random)
        encoding.isMissing = Bool.random(using: &random)
        encoding.framesPer10s = SIMD4(repeating: .max)
        encoding.bytesPerSecond = SIMD4(repeating: .max)
        return encoding
    }

    @Test("lists of any content and order trap nothing", arguments: 1...5 as ClosedRange<UInt64>)
    func lists(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let room = try SimulatedRoom(seed: seed, nodes: 2)
        let clients = try room.clients(2)
        clients[1].subscribe(to: clients[0])
        room.run(1000)
        let router = room.servers[1].router
        var number: UInt32 = 1000
        for _ in 0..<500 {
            let receiver = try #require(router.relays.all.first?.receiver)
            if Int.random(in: 0..<3, using: &random) == 0 { number += 1 }
            let count = UInt8.random(in: 0...3, using: &random)
            let listed: RemoteTrackState? = count == 0 ? nil : track(&random)
            receiver.receive(
                RelayListingPart(
                    client: clients[0].key, number: number &- UInt32.random(in: 0...1, using: &random),
                    index: count == 0 ? 0 : UInt8.random(in: 0..<count, using: &random), count: count, track: listed),
                now: room.network.now)
            let acknowledged = UInt32.random(in: 0...20, using: &random)
            receiver.acknowledged(clients[0].key, acknowledged, now: room.network.now)
            if Bool.random(using: &random) { clients[1].subscribe(to: clients[0]) }
            if Int.random(in: 0..<10, using: &random) == 0 { clients[1].unsubscribe(from: clients[0]) }
            room.run(Int64.random(in: 0...40, using: &random))
            #expect(router.feeds.tracks(of: clients[0].key).count <= RelayMessage.maxTracks, "seed \(seed)")
        }
    }

    @Test("demands of any content and order trap nothing", arguments: 1...5 as ClosedRange<UInt64>)
    func demands(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let room = try SimulatedRoom(seed: seed, nodes: 2)
        let clients = try room.clients(2)
        room.run(1000)
        let feeds = room.router.feeds
        func readers() -> [Int] {
            clients.flatMap { client in feeds.tracks(of: client.key).map { $0.readers.count } }
        }
        let before = readers()
        let certificate = try #require(DTLSCertificate.make())
        let transport = PeerTransport(server: ICECredentials(using: &random), certificate: certificate)
        let link = PeerLink(client: Key(high: 0, low: 0), transport: transport, using: &random)
        let sender = RelaySender(
            RelayConnection(link: link, output: RouterOutput(sink: room.server.sink)), feeds: feeds,
            carriesPublishers: true)
        for number in 1...500 as ClosedRange<UInt32> {
            let tracks = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                RelayDemand.Track(
                    id: UInt32.random(in: 1...4, using: &random), wanted: UInt8.random(in: 0...255, using: &random),
                    refused: UInt8.random(in: 0...255, using: &random), decoders: [3, 255],
                    encodings: (0..<Int.random(in: 0...4, using: &random)).map { _ in
                        RelayDemand.Encoding(
                            index: UInt8.random(in: 0..<4, using: &random),
                            generation: UInt8.random(in: 0...2, using: &random),
                            channel: UInt16.random(in: 0..<4, using: &random))
                    })
            }
            let key = clients.randomElement(using: &random)?.key ?? clients[0].key
            sender.receive(RelayDemand(client: key, number: number, tracks: tracks), now: room.network.now)
            sender.requestKeyframe(UInt32.random(in: 0...12, using: &random), .start, now: room.network.now)
            if Int.random(in: 0..<20, using: &random) == 0 { sender.end(key, number: number + 1) }
            sender.tick(now: room.network.now)
            room.run(Int64.random(in: 0...40, using: &random))
        }
        sender.end()
        // Nothing is read for it any more.
        #expect(readers() == before, "seed \(seed)")
    }

    @Test("a relay that carries another media loop reads no tracks")
    func otherLoop() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(1)
        let feeds = room.router.feeds
        var random = SeededGenerator(seed: 1)
        let certificate = try #require(DTLSCertificate.make())
        let transport = PeerTransport(server: ICECredentials(using: &random), certificate: certificate)
        let link = PeerLink(client: Key(high: 0, low: 0), transport: transport, using: &random)
        let connection = RelayConnection(link: link, output: RouterOutput(sink: room.server.sink))
        for carries in [false, true] {
            let sender = RelaySender(connection, feeds: feeds, carriesPublishers: carries)
            sender.receive(RelayDemand(client: clients[0].key, number: 1, tracks: []), now: room.network.now)
            #expect(feeds.tracks(of: clients[0].key).allSatisfy { $0.readers.isEmpty != carries })
            sender.end()
        }
    }
}
