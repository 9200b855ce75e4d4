import Confab
import Peers
import RTC
import Wire

/// A Confab server as the target of a load test.
struct ConfabLoad: LoadTarget {
    let server: String
    /// Returns a session and a token for a new member of a room.
    let admit: @Sendable (_ room: Int) throws -> Admission

    func enter(room: Int, number: Int) async throws -> any LoadSeat {
        let admission = try admit(room)
        var hello = Hello()
        hello.name = "Load \(number)"
        hello.client = "confab-bench"
        let source = try LoadAddress.of(number, at: server)
        let client = try await RobotClient.connect(to: server, hello: hello, from: source)
        let joined = try await client.join(admission.session, token: admission.token)
        guard joined.mediaMode == .routed else {
            throw RobotError("The session is relayed, so its media bypasses the server. Use a routed session.")
        }
        return ConfabSeat(client: client, session: admission.session)
    }

    func leave() async {}
}

/// The addresses from which the clients of a load test connect.
enum LoadAddress {
    /// The number of clients per source address. The server limits connections per address, and every address in 127.0.0.0/8
    /// belongs to this computer.
    private static let peoplePerAddress = 20

    /// Returns the source address of the client with this number. Nil if the server is another computer: the system
    /// then chooses the address.
    static func of(_ number: Int, at server: String) throws -> String? {
        guard ["127.0.0.1", "localhost"].contains(try HostEndpoint(server).host) else { return nil }
        let address = number / peoplePerAddress
        return "127.1.\(address / 250).\(address % 250 + 1)"
    }
}

/// A client of a Confab server in a load test.
struct ConfabSeat: LoadSeat {
    let client: RobotClient
    let session: SessionID

    func publish(_ media: LoadMedia, on loop: RobotLoop) async throws -> (RobotConnection, LoadStream) {
        let connection = try await client.openMedia(.send, on: loop) { connection in
            connection.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)])
        }
        try await loop.run {
            connection.source = media.source(of: connection, now: loop.now)
        }
        return (connection, try await announce())
    }

    /// Publishes a stream with the sections "a" and "v", and returns its id.
    func announce() async throws -> LoadStream {
        var publish = SessionVerb.Publish()
        (publish.session, publish.mids) = (session, MediaMids(audio: "a", video: "v"))
        return .confab("\(try await client.publish(publish).id)")
    }

    func watch(_ streams: [LoadStream], on loop: RobotLoop, meter: LoadMeterBox) async throws -> RobotConnection {
        try await watch(streams, on: loop) { $0.handler = meter.meter }
    }

    /// Subscribes to streams, over one new connection.
    ///
    /// - Parameter handler: receives the packets. The connection does not retain it.
    func watch(_ streams: [LoadStream], on loop: RobotLoop, handler: FirstFrames) async throws -> RobotConnection {
        try await watch(streams, on: loop) { $0.handler = handler }
    }

    private func watch(
        _ streams: [LoadStream], on loop: RobotLoop, _ prepare: @escaping @Sendable (RobotConnection) -> Void
    ) async throws -> RobotConnection {
        let count = streams.count
        let connection = try await client.openMedia(.receive, on: loop) { connection in
            connection.sendsFeedback = false
            prepare(connection)
            let sections = (0..<count).flatMap { slot in
                let mids = MidPair(slot: slot)
                return [OfferedMedia.audio(mid: mids.audio, .recvonly), .video(mid: mids.video, .recvonly)]
            }
            return connection.offer(sections)
        }
        for (slot, stream) in streams.enumerated() {
            guard case .confab(let text) = stream, let stream = StreamID(text) else { throw RobotError.unexpected }
            let pair = MidPair(slot: slot)
            let mids = MediaMids(audio: pair.audio, video: pair.video)
            try await client.subscribe(.init(session: session, stream: stream, mids: mids))
        }
        return connection
    }

    func leave() async { await client.close() }
}
