import Wire

/// An event in a session, or of its archives and broadcasts, that is reported to the application's server, at the webhook URL of the session's project. It
/// is committed to the outbox in order with the other changes. Delivery is then retried until the server accepts the
/// event or `webhooks.giveUpAfter` has passed.
public struct WebhookEvent: Hashable, Sendable {
    /// What happened. The names are OpenTok's.
    public enum Kind: Hashable, Sendable {
        /// The first connection joined.
        case sessionCreated
        /// The last connection left.
        case sessionDestroyed
        case connectionCreated(ConnectionInfo)
        case connectionDestroyed(ConnectionInfo, GoneReason)
        case streamCreated(StreamInfo, of: ConnectionInfo)
        case streamDestroyed(StreamInfo, of: ConnectionInfo, GoneReason)
        /// An archive has another status, or was deleted.
        indirect case archive(ArchiveRecord)
        /// A broadcast, or one of its outputs, has another status.
        indirect case broadcast(BroadcastRecord)
    }

    /// The API key of the session's project.
    public var project: String
    public var session: SessionID
    public var at: Timestamp
    public var kind: Kind

    public init(project: String, session: SessionID, at: Timestamp, _ kind: Kind) {
        (self.project, self.session, self.at, self.kind) = (project, session, at, kind)
    }
}
