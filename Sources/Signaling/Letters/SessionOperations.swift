import Wire

/// An operation on a session, requested by an application's server over HTTP with its API secret. No role restricts it.
public enum SessionOperation: Equatable, Sendable {
    /// Sends a signal to one connection, or to all if nil. The signal has no sender.
    case signal(type: String?, data: String?, to: ConnectionID?)
    /// Returns one stream, or all streams if nil.
    case describe(StreamID?)
    /// Replaces the layout classes of these streams. If one of the streams does not exist, none is changed.
    case setLayoutClasses([StreamLayout])
    /// Removes a connection, and revokes the token with which it joined.
    case disconnect(ConnectionID)
    case mute(StreamID)
    /// Mutes all current streams except these, and all future streams. If nil, future streams are no longer muted, but
    /// current streams stay muted.
    case muteAll(excluding: Set<StreamID>?)
    /// Starts to record the session.
    indirect case startArchive(ArchiveRequest)
    /// Changes or stops an archive of this session.
    indirect case archive(ArchiveID, CompositionOperation)
    /// Starts to broadcast the session.
    indirect case startBroadcast(BroadcastRequest)
    /// Changes or stops a broadcast of this session.
    indirect case broadcast(BroadcastID, CompositionOperation)
}

/// The layout classes of a stream (OpenTok's `layoutClassList`), which place it in the layout of a composed archive or
/// broadcast.
public struct StreamLayout: Equatable, Sendable {
    public var stream: StreamID
    public var classes: [String]

    public init(_ stream: StreamID, _ classes: [String]) { (self.stream, self.classes) = (stream, classes) }
}

/// A stream, with the properties that only applications' servers see.
public struct StreamDescription: Equatable, Sendable {
    public var stream: StreamInfo
    public var layoutClasses: [String]

    public init(_ stream: StreamInfo, layoutClasses: [String]) {
        (self.stream, self.layoutClasses) = (stream, layoutClasses)
    }
}
