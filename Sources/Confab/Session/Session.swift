import Wire

/// A session, in which connections publish streams, subscribe to each other's streams, and send signals. It has
/// OpenTok's life cycle.
///
/// ```swift
/// let session = await client.session(id, token: token)
/// let events = session.events.makeAsyncIterator()
/// try await session.connect()
/// while let event = await events.next() {
///     if case .signal(let signal) = event { print(signal.data ?? "") }
/// }
/// ```
///
/// The client leaves the session when the application calls ``disconnect()`` or releases this object.
public actor Session {
    nonisolated let core: SessionCore
    nonisolated let media: SessionMedia

    init(_ id: SessionID, token: String, core: ClientCore) {
        self.core = SessionCore(id, token: token, core: core)
        media = SessionMedia(self.core)
    }

    /// The id of the session.
    nonisolated public var id: SessionID { core.id }

    // MARK: State

    /// The status. An iteration begins with the current status and keeps only the newest unread one.
    nonisolated public var statuses: Events<Status> { core.statuses.events }
    /// The events of the session. An iteration begins with one `connectionCreated` for each other member and one
    /// `streamCreated` for each existing stream.
    nonisolated public var events: Events<Event> { core.events.events }
    /// The current status.
    nonisolated public var status: Status { core.machine.status }
    /// This client's connection; nil before the session is joined and after it has been left.
    nonisolated public var connection: Connection? { core.machine.connection }
    /// The other members, in the order of joining.
    nonisolated public var connections: [Connection] { core.machine.connections }
    /// The streams of the other members, in the order of publishing.
    nonisolated public var streams: [MediaStream] { core.machine.streams }
    /// What this client may do in the session. Everything is false before the session is joined.
    nonisolated public var capabilities: Capabilities { core.machine.capabilities }
    /// Whether the session's media is relayed or routed; `relayed` before the session is joined.
    nonisolated public var mediaMode: MediaMode { core.machine.mediaMode }

    // MARK: Life cycle

    /// Joins the session. After ``disconnect()`` or a failure, it can be joined again.
    ///
    /// - Throws: `token_*`, `session_full`, `already_joined` or an error of the connection.
    public func connect() async throws(ConfabError) { try await awaitResult { core.connect($0) } }

    /// Leaves the session, and returns when it has been left. If the connection to the server is being restored, this
    /// method waits for that and then leaves the session.
    public func disconnect() async {
        do throws(ConfabError) { try await awaitResult { core.disconnect($0) } } catch {}
    }

    // MARK: Signals

    /// Sends a signal, and returns when the server has accepted it. Signals arrive in the order of the calls.
    ///
    /// - Parameters:
    ///   - type: at most 128 characters of `A-Z a-z 0-9 - _ ~`; nil for none. Text chat uses `chat`.
    ///   - data: at most 8 KiB; nil for none.
    ///   - connection: the only recipient; nil for everyone, including this client.
    ///   - retryAfterReconnect: while the connection is being restored, whether to send the signal afterwards instead
    ///     of throwing an error.
    /// - Throws: `signal_invalid`, `signal_too_large`, `not_permitted`, `not_found`, `rate_limited`, or an error of the
    ///   connection.
    public func signal(
        _ type: String? = nil, _ data: String? = nil, to connection: ConnectionID? = nil,
        retryAfterReconnect: Bool = true
    ) async throws(ConfabError) {
        if status == .reconnecting, !retryAfterReconnect { throw .reconnecting }
        try await awaitResult { (answer: @escaping SessionCore.Ended) in
            post(type, data, to: connection) { answer($0.map { .failure($0) } ?? .success(())) }
        }
    }

    /// Sends a signal without waiting. Calls from one thread keep their order, unlike calls of
    /// ``signal(_:_:to:retryAfterReconnect:)`` in several tasks. While the connection is being restored, the signal is
    /// queued and sent afterwards.
    ///
    /// - Parameters:
    ///   - type: as in ``signal(_:_:to:retryAfterReconnect:)``.
    ///   - data: at most 8 KiB; nil for none.
    ///   - connection: the only recipient; nil for everyone, including this client.
    ///   - answer: called on any thread, with nil when the server has accepted the signal, otherwise with the error.
    nonisolated public func post(
        _ type: String? = nil, _ data: String? = nil, to connection: ConnectionID? = nil,
        answer: @escaping @Sendable (ConfabError?) -> Void
    ) {
        switch status {
        case .connected, .reconnecting: break
        case .notConnected, .connecting, .disconnecting, .failed: return answer(.disconnected)
        }
        core.core.send(.session(.signal(.init(session: id, type: type, data: data, to: connection)))) { result in
            switch result {
            case .success: answer(nil)
            case .failure(let error): answer(error)
            }
        }
    }

    // MARK: Moderation

    /// Removes a member and revokes its token. Moderators only.
    ///
    /// - Throws: `not_permitted`, `not_found`, or an error of the connection.
    public func forceDisconnect(_ connection: ConnectionID) async throws(ConfabError) {
        try await request(.forceDisconnect(.init(session: id, connection: connection)))
    }

    /// Ends a stream of another member. Moderators only.
    ///
    /// - Throws: `not_permitted`, `not_found`, or an error of the connection.
    public func forceUnpublish(_ stream: StreamID) async throws(ConfabError) {
        try await request(.forceUnpublish(.init(session: id, stream: stream)))
    }

    /// Mutes one stream. Its publisher may unmute it. Moderators only.
    ///
    /// - Throws: `not_permitted`, `not_found`, or an error of the connection.
    public func forceMute(_ stream: StreamID) async throws(ConfabError) {
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.stream) = (id, stream)
        try await request(.forceMute(mute))
    }

    /// Mutes all streams: the existing ones, and those that are published later, until ``disableForceMute()``.
    /// Moderators only.
    ///
    /// - Parameter excluded: the ids of streams that are not muted, at most 64.
    /// - Throws: `not_permitted`, or an error of the connection.
    public func forceMuteAll(excluding excluded: [StreamID] = []) async throws(ConfabError) {
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.excluded) = (id, excluded.isEmpty ? nil : excluded)
        try await request(.forceMute(mute))
    }

    /// Ends ``forceMuteAll(excluding:)``: new streams are no longer muted. Muted streams stay muted until their
    /// publishers unmute them. Moderators only.
    ///
    /// - Throws: `not_permitted`, or an error of the connection.
    public func disableForceMute() async throws(ConfabError) {
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.active) = (id, false)
        try await request(.forceMute(mute))
    }

    /// Accepts or refuses that the streams of this client are recorded. If an archive asks for consent, it contains them only while
    /// the client accepts. The answer applies until the session is no longer recorded, or the client leaves it.
    ///
    /// - Throws: an error of the connection.
    public func acceptRecording(_ accept: Bool) async throws(ConfabError) {
        try await request(.consent(.init(session: id, accept: accept)))
    }

    /// Accepts or refuses that the streams of this client are broadcast live. If a broadcast asks for consent, it contains them only
    /// while the client accepts. The answer applies until the session is no longer broadcast, or the client leaves it.
    ///
    /// - Throws: an error of the connection.
    public func acceptBroadcast(_ accept: Bool) async throws(ConfabError) {
        try await request(.consent(.init(session: id, accept: accept, broadcast: true)))
    }

    /// Starts to record the session. The event `archiveStarted` has the archive. Moderators only, and only if the server permits it
    /// (`recording.moderatorsMayRecord`).
    ///
    /// - Parameters:
    ///   - name: at most 80 characters; nil for none.
    ///   - individual: false for one file of all streams, true for one file for each stream.
    /// - Throws: `not_permitted`, `recording_unavailable`, `archive_conflict`, `media_unavailable`, `rate_limited`,
    ///   `storage_full`, `malformed`, or an error of the connection.
    public func startArchive(
        name: String? = nil, individual: Bool = false
    ) async throws(ConfabError) {
        try await request(.startArchive(.init(session: id, name: name, output: individual ? .individual : nil)))
    }

    /// Stops a recording. Moderators only, and only if the server permits it.
    ///
    /// - Throws: `not_permitted`, `archive_conflict`, or an error of the connection.
    public func stopArchive(_ archive: ArchiveID) async throws(ConfabError) {
        try await request(.stopArchive(.init(session: id, archive: archive)))
    }

    @discardableResult
    func request(_ verb: SessionVerb) async throws(ConfabError) -> ServerMessage {
        try await core.core.request(.session(verb))
    }
}

extension ConfabClient {
    /// Returns a session that is not connected yet, so that the application can listen to its events first.
    ///
    /// - Parameters:
    ///   - id: the session's id, from the application's server or from a match, call or room.
    ///   - token: a token for this session.
    public func session(_ id: SessionID, token: String) -> Session { Session(id, token: token, core: core) }

    /// Joins a session.
    ///
    /// - Throws: the errors of ``Session/connect()``.
    public func join(_ id: SessionID, token: String) async throws(ConfabError) -> Session {
        let session = session(id, token: token)
        try await session.connect()
        return session
    }
}
