import Logging
import Peers
import RTC
import Signaling
import Synchronization
import Testing
import Wire

@testable import Robots
@testable import Server

/// Counts the packets that a subscriber receives.
private final class Counter: RobotHandler, Sendable {
    struct Counts: Sendable {
        var audio = 0
        /// The packets of each layer, in the order of `SimulcastSource.layers`.
        var layers = [Int](repeating: 0, count: SimulcastSource.layers.count)
        var video: Int { layers.reduce(0, +) }
    }

    private let state = Mutex(Counts())

    var counts: Counts { state.withLock { $0 } }

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        let layer = reception.kind == .video ? SimulcastSource.layer(of: packet.payload) : nil
        state.withLock { counts in
            if let layer { counts.layers[layer] += 1 } else { counts.audio += 1 }
        }
    }
}

/// A media plane with two loops, and clients on a thread of their own.
private final class Stage: Sendable {
    static let session = SessionID("1_MX4xfn4xfn5sb29wc34") ?? .unset
    static let stream = StreamID(high: 0, low: 98)
    static let later = StreamID(high: 0, low: 99)
    private static let mids = MediaMids(audio: "a", video: "v")

    let plane: MediaPlane
    private let robots: RobotLoop
    private let received: Received

    private final class Received: Sendable {
        let events = Mutex<[MediaEvent]>([])
    }

    init() throws {
        var settings = MediaPlane.Settings(port: 0, address: IPAddress("127.0.0.1"))
        settings.loops = 2
        let received = Received()
        self.received = received
        plane = try MediaPlane(settings, logger: Logger(label: "media") { _ in SwiftLogNoOpLogHandler() }) { event in
            received.events.withLock { $0.append(event) }
        }
        robots = try RobotLoop()
    }

    deinit {
        robots.stop()
        plane.stop()
    }

    var events: [MediaEvent] { received.events.withLock { $0 } }

    static func client(_ number: UInt64) -> ConnectionID { ConnectionID(high: 0, low: number) }

    /// Opens a connection of a new client. Without other clients, consecutive clients are on different loops.
    private func open(
        _ number: UInt64, _ side: MediaSide, _ prepare: @escaping @Sendable (RobotConnection) -> String
    ) async throws -> RobotConnection {
        let (connection, offer) = try await robots.run { [robots] in
            let connection = try robots.open()
            return (connection, prepare(connection))
        }
        plane.perform(.offer(Self.client(number), in: nil, re: number, side, sdp: offer))
        var answer: String?
        try await eventually("the offer is not answered") {
            for case .answered(Self.client(number), _, side, let sdp) in events { answer = sdp }
            return answer != nil
        }
        let text = try #require(answer)
        try await robots.run { [robots] in try connection.accept(answer: text, now: robots.now) }
        return connection
    }

    /// Opens a client that has no media, so that the next one is on the other loop.
    func fill(_ number: UInt64) async throws {
        _ = try await open(number, .receive) { $0.offer([.audio(mid: "a", .recvonly)]) }
    }

    /// Opens a client that publishes a stream with three layers.
    func publish(_ stream: StreamID, _ number: UInt64) async throws {
        let connection = try await open(number, .send) { connection in
            var video = OfferedMedia.video(mid: "v", .sendonly)
            video.rids = SimulcastSource.layers.map(\.rid)
            return connection.offer([.audio(mid: "a", .sendonly), video])
        }
        try await robots.run { [robots] in
            connection.source = SimulcastSource(of: connection, now: robots.now)
        }
        plane.perform(
            .publish(stream, Self.session, by: Self.client(number), Self.mids, audio: true, video: true))
    }

    /// Opens a client that subscribes to the first stream.
    func subscribe(_ number: UInt64, to layer: SimulcastSource.Layer) async throws -> Counter {
        let counter = Counter()
        let connection = try await open(number, .receive) { connection in
            connection.handler = counter
            return connection.offer([.audio(mid: "a", .recvonly), .video(mid: "v", .recvonly)])
        }
        #expect(connection.receptions.count == 2)
        prefer(layer, number)
        return counter
    }

    /// Subscribes to a stream, or changes the layer that the client receives.
    func prefer(_ layer: SimulcastSource.Layer, _ number: UInt64, of stream: StreamID = stream) {
        plane.perform(
            .subscribe(
                stream, Self.session, by: Self.client(number), Self.mids, audio: true, video: true,
                preferring: VideoPreference(width: Int(layer.width), height: Int(layer.height))))
    }

    func show(video: Bool) { plane.perform(.update(Self.stream, by: Self.client(1), audio: true, video: video)) }
}

@Suite("Media between the loops of a media plane", .ownThreads, .timeLimit(.minutes(5)))
struct MediaLoopsEndToEndTests {
    private static let (full, quarter) = (SimulcastSource.layers[0], SimulcastSource.layers[2])

    @Test(
        "subscribers on both loops get the layers that they want, and nothing of a muted video",
        arguments: [false, true])
    func loops(isShifted: Bool) async throws {
        let stage = try Stage()
        // Publish from each of the two loops.
        if isShifted { try await stage.fill(9) }
        try await stage.publish(Stage.stream, 1)
        let counters = [
            try await stage.subscribe(2, to: Self.full), try await stage.subscribe(3, to: Self.quarter),
            try await stage.subscribe(4, to: Self.full),
        ]
        for (index, counter) in counters.enumerated() {
            try await eventually("subscriber \(index): \(counter.counts)") {
                counter.counts.audio > 50 && counter.counts.layers[index == 1 ? 2 : 0] > 50
            }
        }
        // One subscriber on each loop changes its layer.
        for number: UInt64 in [2, 3] { stage.prefer(number == 2 ? Self.quarter : Self.full, number) }
        try await eventually("\(counters[0].counts), \(counters[1].counts)") {
            counters[0].counts.layers[2] > 50 && counters[1].counts.layers[0] > 50
        }
        stage.show(video: false)
        for counter in counters { try await expectSilence(counter) }
        let before = counters.map(\.counts.video)
        stage.show(video: true)
        try await eventually("\(counters.map(\.counts))") {
            zip(counters, before).allSatisfy { $0.counts.video > $1 + 50 }
        }
        stage.plane.perform(.unsubscribe(Stage.stream, by: Stage.client(3)))
        let speakers = stage.events.compactMap { event -> StreamID?? in
            if case .speaking(_, let stream) = event { .some(stream) } else { nil }
        }
        #expect(speakers.first == .some(Stage.stream))
        #expect(zip(speakers, speakers.dropFirst()).allSatisfy { $0 != $1 }, "only one loop reports a speaker")
    }

    /// Expects that the video stops while the audio continues.
    private func expectSilence(_ counter: Counter) async throws {
        var start = counter.counts
        try await eventually("video still arrives: \(counter.counts)") {
            let now = counter.counts
            if now.video != start.video { start = now }
            return now.audio >= start.audio + 50
        }
    }

    @Test("a subscriber can subscribe again after the publisher has left and returned")
    func returning() async throws {
        let stage = try Stage()
        try await stage.publish(Stage.stream, 1)
        let counter = try await stage.subscribe(2, to: Self.full)
        try await eventually("\(counter.counts)") { counter.counts.video > 50 }
        stage.plane.perform(.unpublish(Stage.stream, by: Stage.client(1)))
        stage.plane.perform(.leave(Stage.client(1)))
        try await stage.publish(Stage.later, 3)
        stage.prefer(Self.full, 2, of: Stage.later)
        let before = counter.counts
        try await eventually("\(counter.counts)") {
            counter.counts.video > before.video + 100 && counter.counts.audio > before.audio + 100
        }
    }
}
