import Wire

/// The state machine of a ``Session``: its life cycle, its members and their streams.
///
/// Invariants: the status changes only along the transitions that ``Session/Status`` lists. Each `connect` is followed
/// by a `joinEnded`, and each `disconnect` by a `leaveEnded`. If several calls are pending, one such effect completes
/// all of them.
struct SessionMachine: Sendable {
    /// An event that the state machine handles.
    enum Input: Sendable {
        case connect
        case joined(Result<SessionNotice.Joined, ConfabError>)
        case notice(SessionNotice)
        case disconnect
        case leaveAnswered
        case reconnecting
        case resumed
        /// The server no longer keeps this client's place in the session.
        case lost(ConfabError)
    }

    /// An effect that the state machine's owner carries out.
    enum Effect: Equatable, Sendable {
        case join
        case leave
        case joinEnded(ConfabError?)
        case leaveEnded
        case status(Session.Status)
        case event(Session.Event)
        /// A notice that concerns the media of this session.
        case media(SessionNotice)
    }

    /// The maximum number of members, and of streams, to keep. Larger sessions are not tracked completely.
    static let maxMembers = 10_000

    private(set) var status = Session.Status.notConnected
    private(set) var connection: Session.Connection?
    private(set) var capabilities = Session.Capabilities()
    private(set) var mediaMode = Session.MediaMode.relayed
    private var members: [ConnectionID: Session.Connection] = [:]
    private var order: [ConnectionID] = []
    private var published: [StreamID: MediaStream] = [:]
    private var streamOrder: [StreamID] = []
    /// The archives into which the session is recorded.
    private var archives: [ArchiveID: Session.Archive] = [:]
    /// The live broadcasts of the session.
    private var broadcasts: [BroadcastID: Session.Broadcast] = [:]
    /// Whether to leave the session as soon as it is joined or the connection is restored, because `disconnect` was
    /// called before.
    private var isLeaving = false

    /// The other members, in the order of joining.
    var connections: [Session.Connection] { order.compactMap { members[$0] } }
    /// The streams of the other members, in the order of publishing.
    var streams: [MediaStream] { streamOrder.compactMap { published[$0] } }
    func stream(_ id: StreamID) -> MediaStream? { published[id] }

    mutating func handle(_ input: Input) -> [Effect] {
        var effects: [Effect] = []
        switch input {
        case .connect: connect(&effects)
        case .joined(let result): joined(result, &effects)
        case .notice(let notice): if status == .connected { receive(notice, &effects) }
        case .disconnect: disconnect(&effects)
        case .leaveAnswered: if status == .disconnecting { ended(.clientDisconnected, &effects) }
        case .reconnecting: if status == .connected { enter(.reconnecting, &effects) }
        case .resumed: resumed(&effects)
        case .lost(let error): lost(error, &effects)
        }
        return effects
    }

    // MARK: Life cycle

    private mutating func connect(_ effects: inout [Effect]) {
        switch status {
        case .notConnected:
            isLeaving = false
            enter(.connecting, &effects)
            effects.append(.join)
        case .connected, .reconnecting: effects.append(.joinEnded(nil))
        // The answer to the first `connect` call also completes this one.
        case .connecting: break
        case .disconnecting, .failed: effects.append(.joinEnded(.disconnected))
        }
    }

    private mutating func joined(_ result: Result<SessionNotice.Joined, ConfabError>, _ effects: inout [Effect]) {
        guard status == .connecting else { return }
        switch result {
        case .failure(let error): fail(error, &effects)
        case .success(let joined):
            connection = Session.Connection(joined.connection)
            capabilities = Session.Capabilities(joined.capabilities)
            mediaMode = joined.mediaMode == .routed ? .routed : .relayed
            enter(.connected, &effects)
            effects.append(.joinEnded(nil))
            add(joined.connections, joined.streams, &effects)
            for archive in joined.archives ?? [] { started(archive, &effects) }
            for broadcast in joined.broadcasts ?? [] { started(broadcast, &effects) }
            if joined.muted { effects.append(.event(.muted(active: true, stream: nil))) }
            if isLeaving { leave(&effects) }
        }
    }

    private mutating func disconnect(_ effects: inout [Effect]) {
        switch status {
        case .notConnected: effects.append(.leaveEnded)
        case .connected: leave(&effects)
        // Leave the session later: as soon as it is joined or the connection is restored.
        case .connecting, .reconnecting: isLeaving = true
        case .disconnecting, .failed: break
        }
    }

    private mutating func leave(_ effects: inout [Effect]) {
        isLeaving = false
        enter(.disconnecting, &effects)
        effects.append(.leave)
    }

    private mutating func resumed(_ effects: inout [Effect]) {
        guard status == .reconnecting else { return }
        enter(.connected, &effects)
        if isLeaving { leave(&effects) }
    }

    private mutating func lost(_ error: ConfabError, _ effects: inout [Effect]) {
        switch status {
        case .notConnected, .failed: break
        case .connected:
            enter(.reconnecting, &effects)
            fail(error, &effects)
        case .connecting, .reconnecting: fail(error, &effects)
        case .disconnecting: ended(.clientDisconnected, &effects)
        }
    }

    private mutating func fail(_ error: ConfabError, _ effects: inout [Effect]) {
        let wasJoining = status == .connecting
        enter(.failed, &effects)
        effects.append(.event(.failed(error)))
        if wasJoining { effects.append(.joinEnded(error)) }
        ended(.networkDisconnected, &effects)
    }

    private mutating func ended(_ reason: Session.Reason, _ effects: inout [Effect]) {
        (members, order, published, streamOrder, connection) = ([:], [], [:], [], nil)
        (archives, broadcasts) = ([:], [:])
        isLeaving = false
        enter(.notConnected, &effects)
        effects.append(.event(.disconnected(reason)))
        effects.append(.leaveEnded)
    }

    private mutating func enter(_ next: Session.Status, _ effects: inout [Effect]) {
        assert(status.canBecome(next), "\(status) cannot become \(next)")
        status = next
        effects.append(.status(next))
    }

    // MARK: Notices

    private mutating func receive(_ notice: SessionNotice, _ effects: inout [Effect]) {
        switch notice {
        case .roster(let roster): add(roster.connections, roster.streams, &effects)
        case .left(let left):
            enter(.disconnecting, &effects)
            ended(Session.Reason(left.reason), &effects)
        case .connectionCreated(let created): add([created.connection], [], &effects)
        case .connectionDestroyed(let gone): remove(gone.connection, Session.Reason(gone.reason), notice, &effects)
        case .connectionReconnecting(let reference):
            if let member = members[reference.connection] { effects.append(.event(.connectionReconnecting(member))) }
        case .connectionReconnected(let reference):
            if let member = members[reference.connection] { effects.append(.event(.connectionReconnected(member))) }
        case .streamCreated(let state): add([], [state.stream], &effects)
        case .streamChanged(let state): changed(state.stream, &effects)
        case .streamDestroyed(let gone):
            effects.append(.media(notice))
            remove(gone.stream, Session.Reason(gone.reason), &effects)
        case .signal(let signal):
            let signal = Session.Signal(from: signal.from, type: signal.type, data: signal.data)
            effects.append(.event(.signal(signal)))
        case .muted(let muted):
            effects.append(.media(notice))
            effects.append(.event(.muted(active: muted.active, stream: muted.stream)))
        case .mediaModeChanged(let change):
            mediaMode = change.mediaMode == .routed ? .routed : .relayed
            effects.append(.media(notice))
            effects.append(.event(.mediaModeChanged(mediaMode)))
        case .speaking(let speaking): effects.append(.event(.speaking(speaking.stream.flatMap { published[$0] })))
        case .streamQuality(let quality):
            effects.append(.media(notice))
            if let stream = published[quality.stream], let (level, reason) = quality.judgment {
                effects.append(.event(.streamQuality(stream, level, reason)))
            }
        case .subscribed, .unsubscribed, .negotiate, .subscriptionChanged, .layersWanted: effects.append(.media(notice))
        case .archiveStarted(let started): self.started(started.archive, &effects)
        case .archiveStopped(let stopped):
            guard let archive = archives.removeValue(forKey: stopped.archive) else { break }
            effects.append(.event(.archiveStopped(archive)))
        case .broadcastStarted(let started): self.started(started.broadcast, &effects)
        case .broadcastStopped(let stopped):
            guard let broadcast = broadcasts.removeValue(forKey: stopped.broadcast) else { break }
            effects.append(.event(.broadcastStopped(broadcast)))
        case .joined, .published: break
        }
    }

    private mutating func started(_ info: ArchiveInfo, _ effects: inout [Effect]) {
        guard archives[info.archive] == nil, archives.count < Self.maxMembers else { return }
        let archive = Session.Archive(info)
        archives[info.archive] = archive
        effects.append(.event(.archiveStarted(archive)))
    }

    private mutating func started(_ info: BroadcastInfo, _ effects: inout [Effect]) {
        guard broadcasts[info.broadcast] == nil, broadcasts.count < Self.maxMembers else { return }
        let broadcast = Session.Broadcast(info)
        broadcasts[info.broadcast] = broadcast
        effects.append(.event(.broadcastStarted(broadcast)))
    }

    private mutating func add(
        _ connections: [ConnectionInfo], _ streams: [StreamInfo], _ effects: inout [Effect]
    ) {
        for info in connections where info.id != connection?.id && members[info.id] == nil {
            guard members.count < Self.maxMembers else { break }
            let member = Session.Connection(info)
            members[info.id] = member
            order.append(info.id)
            effects.append(.event(.connectionCreated(member)))
        }
        for info in streams where published[info.id] == nil {
            guard published.count < Self.maxMembers else { break }
            let stream = MediaStream(info)
            published[info.id] = stream
            streamOrder.append(info.id)
            effects.append(.event(.streamCreated(stream)))
        }
    }

    private mutating func changed(_ info: StreamInfo, _ effects: inout [Effect]) {
        let stream = MediaStream(info)
        if published[info.id] != nil { published[info.id] = stream }
        effects.append(.event(.streamChanged(stream)))
    }

    private mutating func remove(
        _ id: ConnectionID, _ reason: Session.Reason, _ notice: SessionNotice, _ effects: inout [Effect]
    ) {
        guard let member = members.removeValue(forKey: id) else { return }
        order.removeAll { $0 == id }
        for stream in streams where stream.connection == id { remove(stream.id, reason, &effects) }
        effects.append(.media(notice))
        effects.append(.event(.connectionDestroyed(member, reason)))
    }

    private mutating func remove(_ id: StreamID, _ reason: Session.Reason, _ effects: inout [Effect]) {
        guard let stream = published.removeValue(forKey: id) else { return }
        streamOrder.removeAll { $0 == id }
        effects.append(.event(.streamDestroyed(stream, reason)))
    }
}
