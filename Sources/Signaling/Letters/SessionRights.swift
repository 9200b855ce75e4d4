import Wire

/// The rights of a client in a session, which depend on its role. The roles are OpenTok's. In the session of a room, the role
/// follows from the role in the room (`RoomRole.sessionRole`), and the room's rules apply too (`Session+Rooms`).
public struct SessionRights: Hashable, Sendable {
    /// The rights that the client learns when it joins.
    public let capabilities: Capabilities

    public init(_ role: Role) {
        var capabilities = Capabilities()
        capabilities.publish = role != .subscriber
        capabilities.subscribe = role != .publisherOnly
        capabilities.signal = role == .publisher || role == .moderator
        capabilities.forceDisconnect = role == .moderator
        capabilities.forceUnpublish = role == .moderator
        capabilities.forceMute = role == .moderator
        self.capabilities = capabilities
    }
}

/// Decides which actions a client's rights in a session permit.
extension SessionRights {
    /// An action that needs a right.
    enum Action: Equatable, Sendable {
        case publish, subscribe, signal
        /// Removes a connection from the session.
        case forceDisconnect
        /// Ends a stream of another client.
        case forceUnpublish
        /// Mutes streams of other clients.
        case forceMute
        /// Starts or stops a recording of the session. `isEnabled` is whether this server lets moderators do so.
        case record(isEnabled: Bool)
    }

    /// Throws if a client with these rights may not perform the action.
    func permit(_ action: Action) throws(WireError) {
        switch action {
        case .publish: try require(capabilities.publish, "publishing")
        case .subscribe: try require(capabilities.subscribe, "subscribing")
        case .signal: try require(capabilities.signal, "signaling")
        case .forceDisconnect: try require(capabilities.forceDisconnect, "disconnecting others")
        case .forceUnpublish: try require(capabilities.forceUnpublish, "unpublishing others")
        case .forceMute: try require(capabilities.forceMute, "muting others")
        case .record(let isEnabled):
            guard isEnabled else { throw .recordingNotPermitted }
            // Moderators are those who may remove others.
            try require(capabilities.forceDisconnect, "recording")
        }
    }

    private func require(_ isAllowed: Bool, _ action: String) throws(WireError) {
        guard isAllowed else {
            throw WireError(
                .notPermitted, "The token's role does not permit \(action). Use a token with another role.")
        }
    }
}

extension WireError {
    fileprivate static let recordingNotPermitted = WireError(
        .notPermitted,
        "Clients cannot record on this server. Its operator can permit it for moderators "
            + "(recording.moderatorsMayRecord), and applications can record sessions over HTTP.")
}
