import Confab

// Translates the SDK's events of a session into calls to the delegate.
extension OTSession {
    func hear(_ event: Session.Event) {
        switch event {
        case .connectionCreated(let connection): appeared(connection)
        case .connectionDestroyed(let connection, _): disappeared(connection.id)
        case .streamCreated(let stream): published(stream)
        case .streamChanged(let stream): changed(stream)
        case .streamDestroyed(let stream, _): unpublished(stream.id)
        case .signal(let signal):
            delegate?.session(
                self, receivedSignalType: signal.type, from: signal.from.flatMap { known($0) }, with: signal.data)
        case .muted(let isActive, nil): delegate?.session(self, muteForced: OTMuteForcedInfo(active: isActive))
        case .archiveStarted(let archive):
            delegate?.session(
                self, archiveStartedWithId: "\(archive.id)", name: archive.name.isEmpty ? nil : archive.name)
        case .archiveStopped(let archive): delegate?.session(self, archiveStoppedWithId: "\(archive.id)")
        case .failed(let error): refused(error, .connectionDropped)
        case .disconnected: ended()
        // If a stream of this client was muted, its publisher reports that. OpenTok has no delegate methods for the
        // other events.
        case .muted, .connectionReconnecting, .connectionReconnected, .mediaModeChanged, .speaking, .streamQuality,
            .broadcastStarted, .broadcastStopped:
            break
        }
    }

    /// Recovers from an overflow of unread events, some of which are lost. Reports the error, and the streams and
    /// connections that no longer exist. The new iteration reports those that are new.
    ///
    /// - Returns: a new iteration, which begins with the current members and streams; nil if the session has ended.
    func resume(after error: ConfabError) -> Events<Session.Event>.Iterator? {
        guard isConnected, let live else { return nil }
        refused(error, .sessionInternalError)
        let events = live.events.makeAsyncIterator()
        guard live.connection != nil else {
            ended()
            return nil
        }
        let (connections, streams) = (Set(live.connections.map(\.id)), Set(live.streams.map(\.id)))
        for id in streamsByID.keys where !streams.contains(id) { unpublished(id) }
        for id in connectionsByID.keys where !connections.contains(id) { disappeared(id) }
        return events
    }

    private func known(_ id: ConnectionID) -> OTConnection? {
        connectionsByID[id] ?? (connection?.id == id ? connection : nil)
    }

    private func appeared(_ connection: Session.Connection) {
        guard connectionsByID[connection.id] == nil else { return }
        let connection = OTConnection(connection)
        connectionsByID[connection.id] = connection
        if !settings.connectionEventsSuppressed { delegate?.session(self, connectionCreated: connection) }
    }

    private func disappeared(_ id: ConnectionID) {
        guard let connection = connectionsByID.removeValue(forKey: id) else { return }
        if !settings.connectionEventsSuppressed { delegate?.session(self, connectionDestroyed: connection) }
    }

    private func published(_ media: MediaStream) {
        guard streamsByID[media.id] == nil else { return changed(media) }
        let stream = OTStream(media, of: known(media.connection) ?? OTConnection(of: media), in: self)
        streamsByID[media.id] = stream
        delegate?.session(self, streamCreated: stream)
    }

    private func unpublished(_ id: StreamID) {
        guard let stream = streamsByID.removeValue(forKey: id) else { return }
        delegate?.session(self, streamDestroyed: stream)
    }

    private func changed(_ media: MediaStream) {
        for publisher in publishers where publisher.stream?.media.id == media.id { publisher.stream?.update(media) }
        guard let stream = streamsByID[media.id] else { return }
        let hadVideo = stream.hasVideo
        stream.update(media)
        guard hadVideo != media.hasVideo else { return }
        for subscriber in subscribers where subscriber.stream === stream { subscriber.publisherChangedVideo() }
    }
}
