import Datagrams
import RTC
import Wire

/// The two peer connections between a bot and the server. One sends the bot's clip, and the other receives the streams to
/// record. The functions may be called from any thread.
///
/// The class is `@unchecked Sendable` because its mutable state is used only on the loop's thread.
final class BotMedia: RobotHandler, @unchecked Sendable {
    /// The maximum number of streams that are recorded at the same time.
    static let maxStreams = 8
    static let sent = MediaMids(audio: "a", video: "v")

    private let loop: RobotLoop
    private let plan: BotPlan
    private let tell: @Sendable (String) -> Void
    private var sending: RobotConnection?
    private var receiving: RobotConnection?
    private var recorder: StreamRecorder?
    private var places: [StreamID?] = Array(repeating: nil, count: maxStreams)
    private var hasTold = false

    init(_ plan: BotPlan, on loop: RobotLoop, tell: @escaping @Sendable (String) -> Void) {
        (self.plan, self.loop, self.tell) = (plan, loop, tell)
        recorder = plan.directory.map { StreamRecorder(directory: $0, tell: tell) }
    }

    // MARK: Connecting

    /// Negotiates both peer connections. Media flows as soon as ICE finds a path.
    func connect(over client: RobotClient) async throws {
        try await connect(over: client, .send, Self.offered(plan.clip))
        if plan.directory != nil { try await connect(over: client, .receive, Self.received) }
    }

    private static func offered(_ clip: MediaClip) -> [OfferedMedia] {
        var video = OfferedMedia.video(mid: "v", .sendonly)
        video.rids = clip.rids
        return (clip.hasAudio ? [.redundantAudio(mid: "a", .sendonly)] : []) + (clip.hasVideo ? [video] : [])
    }

    private static var received: [OfferedMedia] {
        (0..<maxStreams).flatMap { number in
            [.audio(mid: "a\(number)", .recvonly), OfferedMedia.video(mid: "v\(number)", .recvonly)]
        }
    }

    private func connect(over client: RobotClient, _ side: MediaSide, _ media: [OfferedMedia]) async throws {
        let (connection, offer) = try await loop.run { [self] in
            let connection = try loop.open(ipv6: plan.isIPv6)
            connection.handler = self
            return (connection, connection.offer(media))
        }
        do {
            let answer = try await client.offer(side, sdp: offer)
            try await loop.run { [self] in
                try connection.accept(answer: answer, now: .monotonic)
                if side == .send {
                    connection.source = ClipPlayer(plan.clip, using: &connection.random)
                    sending = connection
                } else {
                    receiving = connection
                }
            }
        } catch {
            loop.perform { [self] in loop.end(connection) }
            throw error
        }
    }

    func close() async {
        try? await loop.run { [self] in
            recorder?.endAll(now: .monotonic)
            for connection in [sending, receiving] { if let connection { loop.end(connection) } }
            (sending, receiving) = (nil, nil)
        }
    }

    // MARK: Recording

    /// Returns the mids that will carry the stream to record. Returns nil if nothing is recorded or all transceivers are in
    /// use.
    func begin(_ stream: StreamID) async throws -> MediaMids? {
        try await loop.run { [self] in
            guard let recorder, let number = places.firstIndex(where: { $0 == nil }), !places.contains(stream) else {
                return nil
            }
            places[number] = stream
            let mids = MediaMids(audio: "a\(number)", video: "v\(number)")
            recorder.begin("\(stream)", audioMid: mids.audio, videoMid: mids.video)
            return mids
        }
    }

    func end(_ stream: StreamID) async {
        try? await loop.run { [self] in
            guard let number = places.firstIndex(of: stream) else { return }
            places[number] = nil
            recorder?.end(audioMid: "a\(number)", videoMid: "v\(number)", now: .monotonic)
        }
    }

    // MARK: RobotHandler

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        recorder?.received(packet, of: reception, over: connection)
    }

    func stateChanged(of connection: RobotConnection) {
        guard !hasTold else { return }
        switch connection.state {
        case .failed(.noPath):
            hasTold = true
            tell("No media: the server's media port cannot be reached over UDP.")
        case .failed(.dtls):
            hasTold = true
            tell("No media: the DTLS handshake with the server failed.")
        default: break
        }
    }
}
