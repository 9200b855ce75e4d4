import Peers
import RTC

/// Janus' VideoRoom as the target of a load test. Like Janus' demo, the test uses one handle per publisher, and per subscriber
/// one handle for all streams.
///
/// Robots of this load test are always the ICE-lite side, because Janus is a full ICE agent and needs responses to its
/// own checks.
final class JanusLoad: LoadTarget {
    private let session: JanusSession
    /// A random base for room numbers, so that consecutive runs use different rooms.
    private let base = Int64.random(in: 1_000_000..<1_000_000_000)

    init(_ server: String, rooms count: Int) async throws {
        session = try await JanusSession.open(server)
        let handle = try await session.attach()
        for room in 0..<count {
            var body = JanusBody(request: "create", room: base + Int64(room))
            // Set no limit for the bitrate, because Confab has none.
            (body.publishers, body.bitrate) = (10_000, 0)
            (body.audiocodec, body.videocodec) = ("opus", "vp8")
            _ = try await session.ask(handle, body)
        }
    }

    func enter(room: Int, number: Int) async throws -> any LoadSeat {
        JanusSeat(session: session, room: base + Int64(room), number: number)
    }

    func leave() async { await session.close() }
}

/// A client of Janus in a load test.
private struct JanusSeat: LoadSeat {
    let session: JanusSession
    let room: Int64
    let number: Int

    func publish(_ media: LoadMedia, on loop: RobotLoop) async throws -> (RobotConnection, LoadStream) {
        let handle = try await session.attach()
        let (connection, sdp) = try await loop.run {
            let connection = try loop.open()
            connection.liteCandidates = loop.hostCandidates(of: connection)
            return (connection, connection.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)]))
        }
        let body = JanusBody(
            request: "joinandconfigure", room: room, ptype: "publisher", display: "load \(number)")
        let answer = try await session.ask(handle, body, JanusDescription(type: "offer", sdp: sdp))
        guard let jsep = answer.jsep, let feed = answer.plugindata?.data?.id else { throw RobotError.unexpected }
        try await loop.run {
            try connection.accept(answer: jsep.sdp, now: loop.now)
            connection.source = media.source(of: connection, now: loop.now)
        }
        return (connection, .janus(feed))
    }

    func watch(_ streams: [LoadStream], on loop: RobotLoop, meter: LoadMeterBox) async throws -> RobotConnection {
        let handle = try await session.attach()
        var body = JanusBody(request: "join", room: room, ptype: "subscriber")
        body.streams = streams.compactMap { if case .janus(let feed) = $0 { JanusBody.Feed(feed: feed) } else { nil } }
        guard let offer = try await session.ask(handle, body).jsep else { throw RobotError.unexpected }
        let (connection, sdp) = try await loop.run {
            let connection = try loop.open()
            connection.sendsFeedback = false
            connection.handler = meter.meter
            let candidates = loop.hostCandidates(of: connection)
            return (connection, try connection.answer(offer: offer.sdp, candidates: candidates, now: loop.now))
        }
        _ = try await session.ask(
            handle, JanusBody(request: "start", room: room), JanusDescription(type: "answer", sdp: sdp))
        return connection
    }

    /// Does nothing, because all clients share the session, which `JanusLoad.leave` ends.
    func leave() async {}
}
