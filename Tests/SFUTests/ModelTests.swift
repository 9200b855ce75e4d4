import RTC
import TestSupport
import Testing

@testable import SFU

/// A minimal model of which subscriber may receive which media.
private struct Model {
    struct Publication {
        var audio = true
        var video = true
    }
    struct Subscription: Equatable {
        var publisher: Int
        var audio: Bool
        var video: Bool
    }

    static let slots = 2
    var publications: [Int: Publication] = [:]
    /// The subscriptions, indexed by subscriber and pair of transceivers.
    var subscriptions: [[Subscription?]]
    var sends: [Bool]
    var receives: [Bool]

    init(_ count: Int) {
        subscriptions = Array(repeating: Array(repeating: nil, count: Self.slots), count: count)
        sends = Array(repeating: true, count: count)
        receives = sends
        for index in 0..<count { publications[index] = Publication() }
    }

    mutating func unsubscribe(_ subscriber: Int, _ publisher: Int) {
        for slot in 0..<Self.slots where subscriptions[subscriber][slot]?.publisher == publisher {
            subscriptions[subscriber][slot] = nil
        }
    }

    mutating func subscribe(_ subscriber: Int, _ slot: Int, _ subscription: Subscription) {
        guard publications[subscription.publisher] != nil else { return }
        unsubscribe(subscriber, subscription.publisher)
        subscriptions[subscriber][slot] = subscription
    }

    mutating func unpublish(_ publisher: Int) {
        publications[publisher] = nil
        for subscriber in subscriptions.indices { unsubscribe(subscriber, publisher) }
    }

    mutating func leave(_ client: Int) {
        unpublish(client)
        subscriptions[client] = Array(repeating: nil, count: Self.slots)
        (sends[client], receives[client]) = (false, false)
    }

    /// Returns the publisher whose packets this transceiver should receive.
    func publisher(_ subscriber: Int, _ slot: Int, _ kind: MediaKind) -> Int? {
        guard receives[subscriber], let subscription = subscriptions[subscriber][slot],
            sends[subscription.publisher], let publication = publications[subscription.publisher]
        else { return nil }
        let isOn = kind == .audio ? publication.audio && subscription.audio : publication.video && subscription.video
        return isOn ? subscription.publisher : nil
    }
}

/// Performs the same operations on the model and on a router.
private final class World {
    let room: SimulatedRoom
    let clients: [SimulatedClient]
    var model: Model
    var random: SeededGenerator
    private(set) var log: [String] = []

    init(seed: UInt64, clients count: Int, loops: Int) throws {
        room = try SimulatedRoom(seed: seed, loops: loops)
        clients = try room.clients(count, slots: Model.slots)
        model = Model(count)
        random = SeededGenerator(seed: seed)
    }

    func operate() throws {
        let (one, other) = (
            Int.random(in: clients.indices, using: &random), Int.random(in: clients.indices, using: &random)
        )
        let client = clients[one]
        let (audio, video) = (Bool.random(using: &random), Bool.random(using: &random))
        let choice = Int.random(in: 0..<100, using: &random)
        log.append("\(choice) \(one) \(other) \(audio) \(video)")
        if log.count > 30 { log.removeFirst() }
        switch choice {
        case 0..<45:
            let slot = Int.random(in: 0..<Model.slots, using: &random)
            let wanted = audio || video
            client.subscribe(to: clients[other], slot: slot, audio: audio, video: video || !wanted)
            model.subscribe(one, slot, .init(publisher: other, audio: audio, video: video || !wanted))
        case 45..<58:
            client.unsubscribe(from: clients[other])
            model.unsubscribe(one, other)
        case 58..<72:
            room.update(client, audio: audio, video: video)
            if model.publications[one] != nil { model.publications[one] = .init(audio: audio, video: video) }
        case 72..<80:
            room.unpublish(client)
            model.unpublish(one)
        case 80..<92:
            room.publish(client, Mids(audio: "a", video: "v"), audio: audio, video: video)
            model.publications[one] = .init(audio: audio, video: video)
        case 92..<94:
            client.router.close(client.key, .send)
            model.sends[one] = false
        case 94..<96:
            client.router.close(client.key, .receive)
            model.receives[one] = false
        case 96: room.leave(client); model.leave(one)
        default: try reconnect(one)
        }
    }

    private func reconnect(_ index: Int) throws {
        if model.sends[index] {
            try clients[index].send?.negotiate(restarts: true)
        } else {
            try clients[index].publish()
            model.publications[index] = .init()
            model.sends[index] = true
        }
        if model.receives[index] {
            try clients[index].receive?.negotiate(restarts: true)
        } else {
            try clients[index].watch(slots: Model.slots)
            model.receives[index] = true
        }
        try room.connect()
    }

    /// Compares the received media with the model.
    func check(isLong: Bool) throws {
        // A media loop flushes after requests.
        if room.servers.count > 1 { for server in room.servers { server.wake() } }
        room.run(13)
        for client in clients { for slot in client.receive?.slots ?? [] { slot.forgetArrivals() } }
        room.run(isLong ? 400 : 40)
        for (index, client) in clients.enumerated() {
            for slot in 0..<Model.slots {
                for (track, kind) in [(try client.audio(slot), MediaKind.audio), (try client.video(slot), .video)] {
                    let expected = model.publisher(index, slot, kind).map { UInt32($0 + 1) }
                    let got = Set(track.arrivals.map(\.tag.label))
                    let isRight = got.isSubset(of: expected.map { [$0] } ?? [])
                    #expect(isRight, "\(track.mid) of \(index) has \(got), not \(expected as Any): \(log)")
                    guard expected != nil, kind == .audio || isLong else { continue }
                    #expect(!got.isEmpty, "\(track.mid) of \(index) has nothing of \(expected as Any): \(log)")
                    #expect(track.unreadable == 0 && track.faults() == [])
                }
            }
        }
        for server in room.servers { try checkInvariants(of: server.router) }
        checkPipes()
    }

    /// Checks that every router knows the tracks of the publishers of all others.
    private func checkPipes() {
        for client in clients {
            let own = client.router.feeds.tracks(of: client.key)
            for server in room.servers where server !== client.server {
                let piped = server.router.feeds.tracks(of: client.key)
                #expect(piped.map(\.mid) == own.map(\.mid) && piped.map(\.codecs) == own.map(\.codecs), "\(log)")
            }
        }
    }

    /// Checks the invariants of the router's tables.
    private func checkInvariants(of router: Router) throws {
        let peers = Set(router.peers.all.map(ObjectIdentifier.init))
        for pair in router.peers.byClient.values { #expect(pair.send != nil || pair.receive != nil) }
        for (key, client) in router.streams.clients {
            #expect(!client.published.isEmpty || !client.subscribed.isEmpty)
            for stream in client.published { #expect(router.streams.publications[stream]?.client == key) }
            for stream in client.subscribed { #expect(router.streams.publications[stream]?.subscriptions[key] != nil) }
        }
        for peer in [Array(router.peers.byUfrag.values), Array(router.peers.byPath.values)].joined() {
            #expect(peers.contains(ObjectIdentifier(peer)))
        }
        let halves = Set(router.peers.all.map { ObjectIdentifier($0.half) })
        for peer in router.peers.all {
            for track in (peer.half as? Publisher)?.tracks ?? [] {
                #expect(router.feeds.tracks(of: peer.client).contains { $0 === track.feedTrack })
                for subscriber in router.egress.fanouts[ObjectIdentifier(track.feedTrack)]?.subscribers ?? [] {
                    #expect(
                        subscriber.source === track.feedTrack && halves.contains(ObjectIdentifier(subscriber.owner)))
                }
            }
            for track in (peer.half as? Subscriber)?.tracks ?? [] {
                if let feed = track.feed { #expect(feed.track === track.source) }
                guard let source = track.source else { continue }
                let fanout = try #require(router.egress.fanouts[ObjectIdentifier(source)])
                #expect(
                    source.readers.count(where: { $0 is Fanout }) == 1
                        && fanout.subscribers.filter { $0 === track }.count == 1)
            }
        }
        #expect(router.speakers.sessions.count <= 1)
        for lane in router.egress.unflushed {
            #expect(router.egress.fanouts[ObjectIdentifier(lane.feed.track)] === lane.fanout)
        }
    }
}

@Suite struct ModelTests {
    @Test("a packet reaches only its subscribers", arguments: [1, 1, 3, 3])
    func packetsReachOnlySubscribers(loops: Int) throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed), \(loops) loops")
        let world = try World(seed: seed, clients: 4, loops: loops)
        for round in 0..<200 {
            for _ in 0..<Int.random(in: 1...6, using: &world.random) { try world.operate() }
            try world.check(isLong: round % 10 == 9)
        }
    }
}
