import Confab
import Foundation

/// Receives the events of a session, on the main thread.
@preconcurrency @MainActor public protocol OTSessionDelegate: AnyObject {
    /// The session is connected.
    func sessionDidConnect(_ session: OTSession)
    /// The session is no longer connected, or `disconnect` canceled the attempt to connect. If the connection failed,
    /// `session(_:didFailWithError:)` is called first. If connecting fails, only that method is called.
    func sessionDidDisconnect(_ session: OTSession)
    /// The session could not be connected, its connection was lost, or a signal or a moderator's request was rejected.
    func session(_ session: OTSession, didFailWithError error: OTError)
    /// Another client publishes a stream.
    func session(_ session: OTSession, streamCreated stream: OTStream)
    /// A stream of another client ended.
    func session(_ session: OTSession, streamDestroyed stream: OTStream)
    /// Another client is in the session. Optional.
    func session(_ session: OTSession, connectionCreated connection: OTConnection)
    /// Another client left. Optional.
    func session(_ session: OTSession, connectionDestroyed connection: OTConnection)
    /// A signal arrived. `connection` is nil if the server sent it. Optional.
    func session(
        _ session: OTSession, receivedSignalType type: String?, from connection: OTConnection?, with string: String?)
    /// The session is being recorded, or will be in a moment. Also called after connecting to a session that is recorded.
    /// Optional.
    func session(_ session: OTSession, archiveStartedWithId archiveId: String, name: String?)
    /// The session is no longer recorded into this archive. Optional.
    func session(_ session: OTSession, archiveStoppedWithId archiveId: String)
    /// The connection dropped, and is being restored. Optional.
    func sessionDidBeginReconnecting(_ session: OTSession)
    /// The connection was restored. Optional.
    func sessionDidReconnect(_ session: OTSession)
    /// A moderator muted everyone, or stopped muting. Optional.
    func session(_ session: OTSession, muteForced info: OTMuteForcedInfo)
}

extension OTSessionDelegate {
    /// Does nothing.
    public func session(_ session: OTSession, connectionCreated connection: OTConnection) {}
    /// Does nothing.
    public func session(_ session: OTSession, connectionDestroyed connection: OTConnection) {}
    /// Does nothing.
    public func session(
        _ session: OTSession, receivedSignalType type: String?, from connection: OTConnection?, with string: String?
    ) {}
    /// Does nothing.
    public func session(_ session: OTSession, archiveStartedWithId archiveId: String, name: String?) {}
    /// Does nothing.
    public func session(_ session: OTSession, archiveStoppedWithId archiveId: String) {}
    /// Does nothing.
    public func sessionDidBeginReconnecting(_ session: OTSession) {}
    /// Does nothing.
    public func sessionDidReconnect(_ session: OTSession) {}
    /// Does nothing.
    public func session(_ session: OTSession, muteForced info: OTMuteForcedInfo) {}
}

/// Whether everyone is muted.
public final class OTMuteForcedInfo: NSObject, Sendable {
    /// True if a moderator has muted everyone; false if a moderator has stopped muting new streams.
    public let active: Bool

    init(active: Bool) { self.active = active }
}

/// The state of a session, with OpenTok's numbers.
public enum OTSessionConnectionStatus: Int, Sendable {
    /// Not connected yet, or no longer connected.
    case notConnected = 0
    /// In the session.
    case connected = 1
    /// Connecting to the server, or joining.
    case connecting = 2
    /// The connection dropped, and is being restored.
    case reconnecting = 3
    /// Leaving.
    case disconnecting = 4
    /// The session could not be connected, or its connection is lost.
    case failed = 5
}

/// The capabilities that the token grants.
public final class OTSessionCapabilities: NSObject, Sendable {
    /// Whether this client may publish.
    public let canPublish: Bool
    /// Whether this client may subscribe.
    public let canSubscribe: Bool
    /// Whether this client may mute streams of others.
    public let canForceMute: Bool
    /// Whether this client may remove connections.
    public let canForceDisconnect: Bool

    init(_ allowed: Session.Capabilities) {
        (canPublish, canSubscribe) = (allowed.canPublish, allowed.canSubscribe)
        (canForceMute, canForceDisconnect) = (allowed.canForceMute, allowed.canForceDisconnect)
    }
}
