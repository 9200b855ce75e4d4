import Wire

@testable import Confab

/// A model of routed sessions: who is in which, and which streams they have. Media itself is not simulated.
struct SimulatedMedia {
    private var members: [SessionID: [ConnectionID]] = [:]
    private var streams: [(session: SessionID, info: StreamInfo)] = []
    private var count: UInt64 = 0

    /// - Returns: the notices to the others.
    mutating func join(
        _ client: SimulatedServer.Client, _ joined: inout SessionNotice.Joined, among clients: [SimulatedServer.Client]
    ) -> [SimulatedFeatures.Answer] {
        let session = joined.session
        let others = others(in: session, besides: client, clients)
        joined.mediaMode = .routed
        joined.connections = others.map { Self.info($0.id) }
        joined.streams = streams.filter { stream in
            stream.session == session && others.contains { $0.id == stream.info.connection }
        }.map(\.info)
        members[session, default: []].append(client.id)
        let created = SessionNotice.ConnectionCreated(session: session, connection: Self.info(client.id))
        return others.map { ($0, .session(.connectionCreated(created))) }
    }

    mutating func leave(
        _ session: SessionID, _ client: SimulatedServer.Client, among clients: [SimulatedServer.Client]
    ) -> [SimulatedFeatures.Answer] {
        members[session]?.removeAll { $0 == client.id }
        streams.removeAll { $0.session == session && $0.info.connection == client.id }
        let gone = SessionNotice.ConnectionDestroyed(
            session: session, connection: client.id, reason: .clientDisconnected)
        return others(in: session, besides: client, clients).map { ($0, .session(.connectionDestroyed(gone))) }
    }

    /// What the server sends, in order, after a request about streams; nil for other requests.
    mutating func perform(
        _ message: ClientMessage, of client: SimulatedServer.Client, re: UInt64, among clients: [SimulatedServer.Client]
    ) -> [SimulatedFeatures.Answer]? {
        switch message {
        case .session(.publish(let publish)):
            guard members[publish.session]?.contains(client.id) == true else {
                return [(client, .error(.init(WireError(.notJoined, "Join first."), re: re)))]
            }
            count += 1
            var info = StreamInfo()
            (info.id, info.connection) = (StreamID(high: 0, low: count), client.id)
            (info.hasAudio, info.hasVideo) = (publish.hasAudio, publish.hasVideo)
            streams.append((publish.session, info))
            let created = SessionNotice.StreamState(session: publish.session, stream: info)
            let reported = others(in: publish.session, besides: client, clients)
            return [(client, .session(.published(.init(re: re, session: publish.session, stream: info))))]
                + reported.map { ($0, .session(.streamCreated(created))) }
        case .session(.unpublish(let reference)):
            streams.removeAll { $0.info.id == reference.stream }
            let gone = SessionNotice.StreamDestroyed(
                session: reference.session, stream: reference.stream, reason: .clientUnpublished)
            let reported = others(in: reference.session, besides: client, clients)
            return [(client, .ok(.init(re: re)))] + reported.map { ($0, .session(.streamDestroyed(gone))) }
        case .media(.offer(let offer)):
            let sdp = "v=0\no=- 99 1\na=routed\n"
            return [(client, .media(.answer(.init(re: re, side: offer.side, sdp: sdp))))]
        default: return nil
        }
    }

    private func others(
        in session: SessionID, besides client: SimulatedServer.Client, _ clients: [SimulatedServer.Client]
    ) -> [SimulatedServer.Client] {
        clients.filter { $0 !== client && members[session]?.contains($0.id) == true }
    }

    private static func info(_ id: ConnectionID) -> ConnectionInfo {
        ConnectionInfo(id: id, createdAt: Timestamp(milliseconds: 0), data: "")
    }
}
