import Foundation
import Peers
import RTC
import Wire

/// Runs one robot in a session, for measurements over shaped network links: it publishes three layers, or subscribes
/// to all streams and reports what it receives.
public struct NetworkBench: Sendable {
    /// The measurements of a subscriber in one second.
    public struct Second: Sendable {
        /// The received bytes including RTP headers, in kilobits.
        public var kilobits = 0.0
        /// For each stream, the RID of the layer in which its video arrived; "-" if no video arrived in this second.
        public var layers: [String] = []
        /// The share of the audio that was missing or arrived too late to be played, in percent.
        public var concealed = 0.0
        /// The largest delay of the audio relative to the smallest so far, in milliseconds.
        public var delay = 0.0
    }

    /// How much later than the fastest packet an audio packet may arrive and still be played. The jitter buffers of
    /// browsers adapt to about this delay.
    private static let playoutDelay = MediaInterval.milliseconds(200)

    /// The server's URL.
    public var server: String
    /// The session to join.
    public var session: SessionID
    /// A token for the session, with the role of a publisher.
    public var token: String
    /// How long to publish or watch, in seconds.
    public var seconds: Int

    public init(server: String, session: SessionID, token: String, seconds: Int) {
        (self.server, self.session, self.token, self.seconds) = (server, session, token, seconds)
    }

    private func enter() async throws -> (RobotClient, [StreamInfo]) {
        var hello = Hello()
        hello.client = "confab-line"
        let client = try await RobotClient.connect(to: server, hello: hello)
        let joined = try await client.join(session, token: token)
        return (client, joined.streams)
    }

    /// Publishes a stream with three simulcast layers for `seconds`.
    public func publish() async throws {
        let (client, _) = try await enter()
        let loop = try RobotLoop()
        let connection = try await client.openMedia(.send, on: loop) { connection in
            var video = OfferedMedia.video(mid: "v", .sendonly)
            video.rids = SimulcastSource.layers.map(\.rid)
            return connection.offer([.audio(mid: "a", .sendonly), video])
        }
        try await loop.run { connection.source = SimulcastSource(of: connection, now: loop.now) }
        var publish = SessionVerb.Publish()
        (publish.session, publish.mids) = (session, MediaMids(audio: "a", video: "v"))
        _ = try await client.publish(publish)
        try await Task.sleep(for: .seconds(seconds))
        try await loop.run { loop.end(connection) }
        await client.close()
        loop.stop()
    }

    /// Subscribes for `seconds` to all streams that are in the session now.
    /// - Parameter report: called after each second, with its number, counted from 1, and its measurements.
    public func watch(_ report: @escaping @Sendable (Int, Second) -> Void) async throws {
        let (client, streams) = try await enter()
        let loop = try RobotLoop()
        let meter = LineMeterBox(count: streams.count)
        let connection = try await client.openMedia(.receive, on: loop) { connection in
            connection.handler = meter.meter
            return connection.offer(
                streams.indices.flatMap { slot in
                    [OfferedMedia.audio(mid: "a\(slot)", .recvonly), .video(mid: "v\(slot)", .recvonly)]
                })
        }
        for (slot, stream) in streams.enumerated() {
            let mids = MediaMids(audio: "a\(slot)", video: "v\(slot)")
            try await client.subscribe(.init(session: session, stream: stream.id, mids: mids))
        }
        let begun = ContinuousClock.now
        for second in 1...max(1, seconds) {
            try await Task.sleep(until: begun + .seconds(second), clock: .continuous)
            report(second, try await loop.run { meter.meter.take(after: Self.playoutDelay) })
        }
        try await loop.run { loop.end(connection) }
        await client.close()
        loop.stop()
    }
}

/// Carries the meter to the robots' thread, the only thread that uses it.
private final class LineMeterBox: @unchecked Sendable {
    let meter: LineMeter
    init(count: Int) { meter = LineMeter(count: count) }
}

/// Measures what a subscriber receives in each second.
private final class LineMeter: RobotHandler {
    private let count: Int
    private var bytes = 0
    private var layers: [String: Int] = [:]
    private var delays: [MediaInterval] = []
    private var fastest: MediaInterval?
    /// The sections that receive audio, keyed by mid.
    private var sounds: [String: RobotReception] = [:]
    /// The number of audio packets that were lost before this second.
    private var lostBefore: Int64 = 0

    init(count: Int) { self.count = count }

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        bytes += packet.bytes.count
        guard !packet.isRetransmission else { return }
        if reception.kind == .video {
            layers[reception.mid] = SimulcastSource.layer(of: packet.payload) ?? layers[reception.mid]
            return
        }
        sounds[reception.mid] = reception
        guard let sent = LoadSource.sentAt(packet.payload, .audio) else { return }
        let delay = packet.at - sent
        fastest = min(fastest ?? delay, delay)
        delays.append(delay)
    }

    func take(after playoutDelay: MediaInterval) -> NetworkBench.Second {
        var second = NetworkBench.Second()
        second.kilobits = Double(bytes) * 8 / 1000
        second.layers = (0..<count).map { slot in
            layers["v\(slot)"].map { SimulcastSource.layers[$0].rid } ?? "-"
        }
        let least = fastest ?? .zero
        let late = delays.count { $0 - least > playoutDelay }
        // `lost` counts only gaps before the newest packet of a stream. A packet that is delayed together with those
        // after it is therefore not missing, only late.
        let lost = sounds.values.reduce(0) { $0 + $1.lost }
        let missing = sounds.isEmpty ? 50 * count : max(0, Int(lost - lostBefore))
        lostBefore = lost
        // Each stream has 50 audio packets a second.
        second.concealed = 100 * Double(late + missing) / Double(max(1, 50 * count))
        second.delay = Double((delays.max() ?? least).nanoseconds - least.nanoseconds) / 1e6
        (bytes, layers, delays) = (0, [:], [])
        return second
    }
}
