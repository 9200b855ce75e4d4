import Wire

/// Owns the ``Runner`` of a session's state machine, and passes events and requests between it and the client's
/// connection.
final class SessionCore: Sendable {
    typealias Ended = @Sendable (Result<Void, ConfabError>) -> Void

    /// The state that the lock protects.
    private struct State: Sendable {
        var joining: [Ended] = []
        var leaving: [Ended] = []
        var listening: Listening?
        /// Receives the events that concern the session's media; nil until `setMedia` is called.
        var media: (@Sendable (MediaEvent) -> Void)?
    }

    /// An event that concerns the media of a session.
    enum MediaEvent: Sendable {
        case status(Session.Status)
        case notice(SessionNotice)
        case event(Session.Event)
    }

    let id: SessionID
    let core: ClientCore
    private let token: String
    private let state = LockedValue(State())
    private let runner: Runner<SessionMachine>
    let statuses = EventSource<Session.Status>(state: .notConnected)
    let events = EventSource<Session.Event>(fold: SessionCore.fold)

    init(_ id: SessionID, token: String, core: ClientCore) {
        (self.id, self.token, self.core) = (id, token, core)
        runner = Runner(SessionMachine(), clock: core.dependencies.clock)
        runner.onEffect { [weak self] effect in self?.carryOut(effect) }
        let listening = core.listen { [weak self] event in self?.hear(event) }
        state.withLock { $0.listening = listening }
    }

    deinit {
        // Leave the session, which the application has released without leaving it.
        if machine.status != .notConnected { core.send(.session(.leave(.init(session: id)))) }
    }

    var machine: SessionMachine { runner.read { $0 } }

    func setMedia(_ media: @escaping @Sendable (MediaEvent) -> Void) { state.withLock { $0.media = media } }

    func connect(_ ended: @escaping Ended) {
        state.withLock { $0.joining.append(ended) }
        runner.post(.connect)
    }

    /// Calls back with the result of the join in progress, or with success immediately if there is none. Does not
    /// start a join.
    func waitForJoin(_ ended: @escaping Ended) {
        let isJoining = state.withLock { state in
            // Check the status under the lock: if the join is ending, either the status already shows it, or the
            // callback is added in time to be called.
            guard machine.status == .connecting else { return false }
            state.joining.append(ended)
            return true
        }
        if !isJoining { ended(.success(())) }
    }

    func disconnect(_ ended: @escaping Ended) {
        state.withLock { $0.leaving.append(ended) }
        runner.post(.disconnect)
    }

    private func hear(_ event: ConnectionEvent) {
        switch event {
        case .message(.session(let notice)): if notice.session == id { runner.post(.notice(notice)) }
        case .reconnecting: runner.post(.reconnecting)
        case .connected(_, .resumed): runner.post(.resumed)
        case .connected(_, .restarted), .expired: if machine.status != .connecting { runner.post(.lost(.sessionLost)) }
        case .ended(let error):
            runner.post(.lost(error ?? .closed))
            guard case .closed = core.connectionState else { return }
            runner.afterEffects { [statuses, events] in
                statuses.finish()
                events.finish()
            }
        case .message, .connected: break
        }
    }

    private func carryOut(_ effect: SessionMachine.Effect) {
        switch effect {
        case .join: join()
        case .leave:
            core.send(.session(.leave(.init(session: id)))) { [weak self] _ in self?.runner.post(.leaveAnswered) }
        case .joinEnded(let error): end(\.joining, error.map { .failure($0) } ?? .success(()))
        case .leaveEnded: end(\.leaving, .success(()))
        case .status(let status):
            statuses.send(status)
            state.withLock { $0.media }?(.status(status))
        case .event(let event):
            events.send(event)
            state.withLock { $0.media }?(.event(event))
        case .media(let notice): state.withLock { $0.media }?(.notice(notice))
        }
    }

    private func join() {
        core.send(.session(.join(.init(session: id, token: token)))) { [weak self] result in
            switch result {
            case .success(.session(.joined(let joined))): self?.runner.post(.joined(.success(joined)))
            case .success(let answer): self?.runner.post(.joined(.failure(.unexpected(answer, for: "session.join"))))
            case .failure(let error): self?.runner.post(.joined(.failure(error)))
            }
        }
    }

    private func end(_ path: WritableKeyPath<State, [Ended]>, _ result: Result<Void, ConfabError>) {
        let ended = state.withLock { state in
            defer { state[keyPath: path] = [] }
            return state[keyPath: path]
        }
        for ended in ended { ended(result) }
    }

    /// Updates the list of members and streams that a new iteration receives first.
    private static let fold: EventSource<Session.Event>.Fold = { present, event in
        switch event {
        case .connectionCreated, .streamCreated, .archiveStarted, .broadcastStarted: present.append(event)
        case .archiveStopped(let archive): present.removeAll { $0 == .archiveStarted(archive) }
        case .broadcastStopped(let broadcast): present.removeAll { $0 == .broadcastStarted(broadcast) }
        case .streamChanged(let stream):
            let index = present.firstIndex {
                if case .streamCreated(let one) = $0 { one.id == stream.id } else { false }
            }
            if let index { present[index] = .streamCreated(stream) }
        case .connectionDestroyed(let connection, _): present.removeAll { $0 == .connectionCreated(connection) }
        case .streamDestroyed(let stream, _):
            present.removeAll { if case .streamCreated(let one) = $0 { one.id == stream.id } else { false } }
        case .disconnected: present = []
        default: break
        }
    }
}

extension SessionNotice {
    /// The id of the session that the notice is about.
    var session: SessionID {
        switch self {
        case .joined(let notice): notice.session
        case .roster(let notice): notice.session
        case .left(let notice): notice.session
        case .connectionCreated(let notice): notice.session
        case .connectionDestroyed(let notice): notice.session
        case .connectionReconnecting(let notice), .connectionReconnected(let notice): notice.session
        case .published(let notice): notice.session
        case .streamCreated(let notice), .streamChanged(let notice): notice.session
        case .streamDestroyed(let notice): notice.session
        case .subscribed(let notice): notice.session
        case .unsubscribed(let notice): notice.session
        case .negotiate(let notice): notice.session
        case .signal(let notice): notice.session
        case .muted(let notice): notice.session
        case .mediaModeChanged(let notice): notice.session
        case .subscriptionChanged(let notice): notice.session
        case .streamQuality(let notice): notice.session
        case .layersWanted(let notice): notice.session
        case .speaking(let notice): notice.session
        case .archiveStarted(let notice): notice.session
        case .archiveStopped(let notice): notice.session
        case .broadcastStarted(let notice): notice.session
        case .broadcastStopped(let notice): notice.session
        }
    }
}

extension ConfabError {
    static let sessionLost = ConfabError(
        .connectionRestarted, "The connection was lost for too long, so the session ended. Join it again.",
        isRetryable: true)
    static let reconnecting = ConfabError(
        .connectionLost, "The connection is being restored. Send the signal again afterwards.", isRetryable: true)
}
