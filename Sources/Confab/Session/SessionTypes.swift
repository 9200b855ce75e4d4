import Foundation
import Wire

/// A stream that a connection publishes in a session. It is not called `Stream`, because Foundation has a type with
/// that name.
public struct MediaStream: Hashable, Sendable, Identifiable {
    /// What a stream's video shows.
    public enum VideoKind: String, Hashable, Sendable {
        /// The video of a camera.
        case camera
        /// A shared screen or window.
        case screen
        /// Anything else.
        case custom
    }

    /// The id of the stream, which the server assigns.
    public let id: StreamID
    /// The id of the connection that publishes the stream.
    public let connection: ConnectionID
    /// When the stream was published.
    public let createdAt: Date
    /// The name that the publisher gave the stream, at most 256 bytes; may be empty.
    public let name: String
    /// Whether the stream currently has audio.
    public let hasAudio: Bool
    /// Whether the stream currently has video.
    public let hasVideo: Bool
    /// What the video shows; nil if the publisher did not specify it.
    public let videoKind: VideoKind?
    /// The size of the video in pixels; nil if the publisher did not specify it.
    public let size: VideoSize?

    init(_ info: StreamInfo) {
        (id, connection, createdAt, name) = (info.id, info.connection, info.createdAt.date, info.name)
        (hasAudio, hasVideo) = (info.hasAudio, info.hasVideo)
        videoKind = info.videoType.flatMap { VideoKind(rawValue: $0.rawValue) }
        size =
            if let width = info.width, let height = info.height { VideoSize(width: width, height: height) } else { nil }
    }
}

extension Session {
    /// The state of a session, with OpenTok's numbers.
    ///
    /// Legal transitions: `notConnected` → `connecting` → `connected`; `connected` → `reconnecting` → `connected`;
    /// `reconnecting` → `failed` → `notConnected`; `connected` → `disconnecting` → `notConnected`; `connecting` →
    /// `failed` → `notConnected`.
    public enum Status: Int, Hashable, Sendable {
        /// Not connected yet, or no longer connected.
        case notConnected = 0
        /// In the session.
        case connected = 1
        /// Joining.
        case connecting = 2
        /// The connection to the server dropped. The server keeps this client's place in the session.
        case reconnecting = 3
        /// Leaving, or removed.
        case disconnecting = 4
        /// The session could not be joined, or its connection is lost.
        case failed = 5

        func canBecome(_ next: Self) -> Bool {
            switch (self, next) {
            case (.notConnected, .connecting), (.connecting, .connected), (.connected, .reconnecting): true
            case (.reconnecting, .connected), (.reconnecting, .failed), (.failed, .notConnected): true
            case (.connected, .disconnecting), (.disconnecting, .notConnected), (.connecting, .failed): true
            default: false
            }
        }
    }

    /// A member of a session.
    public struct Connection: Hashable, Sendable, Identifiable {
        /// The id of the connection, for example to send a signal to this member only.
        public let id: ConnectionID
        /// When the connection joined the session.
        public let createdAt: Date
        /// The data of the connection's token, at most 1000 characters; empty if there is none.
        public let data: String

        init(_ info: ConnectionInfo) { (id, createdAt, data) = (info.id, info.createdAt.date, info.data) }
    }

    /// Why a connection left, or a stream or a session ended.
    public enum Reason: String, Hashable, Sendable {
        /// The client left.
        case clientDisconnected
        /// The client's connection dropped and was not restored in time.
        case networkDisconnected
        /// A moderator or the server removed the client.
        case forceDisconnected
        /// The publisher ended the stream.
        case clientUnpublished
        /// A moderator ended the stream.
        case forceUnpublished
        /// The match or call that the session belongs to is over.
        case matchEnded

        init(_ reason: GoneReason) {
            switch reason {
            case .clientDisconnected: self = .clientDisconnected
            case .networkDisconnected: self = .networkDisconnected
            case .forceDisconnected: self = .forceDisconnected
            case .clientUnpublished: self = .clientUnpublished
            case .forceUnpublished: self = .forceUnpublished
            case .matchEnded: self = .matchEnded
            }
        }
    }

    /// Whether the media of a session goes through the server.
    public enum MediaMode: String, Hashable, Sendable {
        /// Media goes directly from member to member, through TURN if necessary.
        case relayed
        /// Media goes through the server.
        case routed
    }

    /// What this client may do in the session, depending on its token's role.
    public struct Capabilities: Hashable, Sendable {
        /// Whether this client may publish streams.
        public var canPublish = false
        /// Whether this client may subscribe to streams.
        public var canSubscribe = false
        /// Whether this client may send signals.
        public var canSignal = false
        /// Whether this client may remove connections.
        public var canForceDisconnect = false
        /// Whether this client may end streams of others.
        public var canForceUnpublish = false
        /// Whether this client may mute streams of others.
        public var canForceMute = false

        init() {}
        init(_ wire: Wire.Capabilities) {
            (canPublish, canSubscribe, canSignal) = (wire.publish, wire.subscribe, wire.signal)
            (canForceDisconnect, canForceUnpublish) = (wire.forceDisconnect, wire.forceUnpublish)
            canForceMute = wire.forceMute
        }
    }

    /// A message from a member to one member or to all.
    public struct Signal: Hashable, Sendable {
        /// The id of the sender's connection; nil if the server sent the signal.
        public let from: ConnectionID?
        /// The type, at most 128 characters; nil for none. Text chat uses `chat`.
        public let type: String?
        /// The data, at most 8 KiB; nil for none.
        public let data: String?
    }

    /// A recording of a session.
    public struct Archive: Hashable, Sendable {
        /// The archive's id.
        public let id: ArchiveID
        /// The name that the application has given it; empty for none.
        public let name: String
        /// Whether the archive contains only the streams of members who accepted with ``Session/acceptRecording(_:)``.
        public let asksConsent: Bool

        init(_ wire: ArchiveInfo) {
            (id, name, asksConsent) = (wire.archive, wire.name ?? "", wire.asks ?? false)
        }
    }

    /// A live broadcast of a session, which viewers outside it can watch.
    public struct Broadcast: Hashable, Sendable {
        /// The broadcast's id.
        public let id: BroadcastID
        /// Whether the broadcast contains only the streams of members who accepted with ``Session/acceptBroadcast(_:)``.
        public let asksConsent: Bool

        init(_ wire: BroadcastInfo) { (id, asksConsent) = (wire.broadcast, wire.asks ?? false) }
    }

    /// Something that happened in a session.
    public enum Event: Hashable, Sendable {
        /// Another client joined.
        case connectionCreated(Connection)
        /// Another client left.
        case connectionDestroyed(Connection, Reason)
        /// Another client's connection dropped. It may be restored.
        case connectionReconnecting(Connection)
        /// Another client's connection was restored.
        case connectionReconnected(Connection)
        /// Another client published a stream.
        case streamCreated(MediaStream)
        /// A stream's properties changed.
        case streamChanged(MediaStream)
        /// A stream ended.
        case streamDestroyed(MediaStream, Reason)
        /// A signal arrived. A signal for everyone also arrives at its sender.
        case signal(Signal)
        /// A moderator muted a stream or, if `stream` is nil, all streams. If `active` is false, the moderator ended
        /// that: new streams are no longer muted.
        case muted(active: Bool, stream: StreamID?)
        /// The media mode changed, always from relayed to routed. The SDK moves the media automatically.
        case mediaModeChanged(MediaMode)
        /// The member with this stream is speaking now; nil if no member is.
        case speaking(MediaStream?)
        /// The quality of a stream as received by the server has changed. Sent only in a routed session, to the
        /// publisher and the subscribers of the stream. The reason is nil if the quality is good.
        case streamQuality(MediaStream, Quality, QualityReason?)
        /// The session is being recorded, or will be in a moment. Also sent after joining a session that is recorded. Show
        /// this to the user until all archives have stopped.
        case archiveStarted(Archive)
        /// The session is no longer recorded into this archive.
        case archiveStopped(Archive)
        /// The session is being broadcast live, or will be in a moment. Also sent after joining a session that is broadcast. Show
        /// this to the user until all broadcasts have stopped.
        case broadcastStarted(Broadcast)
        /// A broadcast of the session has ended.
        case broadcastStopped(Broadcast)
        /// The session could not be joined, or is lost. ``disconnected(_:)`` follows.
        case failed(ConfabError)
        /// The client is no longer in the session.
        case disconnected(Reason)
    }

    /// The quality of a stream as received by the server.
    public enum Quality: String, Hashable, Sendable {
        /// No noticeable loss of quality.
        case good
        /// People may notice a loss of quality.
        case fair
        /// The loss of quality is obvious.
        case poor
    }

    /// What impairs a stream on its way to the server.
    public enum QualityReason: String, Hashable, Sendable {
        /// Packets are lost.
        case loss
        /// Packets arrive late and unevenly.
        case delay
        /// The publisher cannot send all layers that subscribers need.
        case bandwidth
        /// Another reason.
        case other
    }
}

extension SessionNotice.StreamQuality {
    /// The quality and its reason as types of the SDK; nil if this version does not know the level.
    var judgment: (Session.Quality, Session.QualityReason?)? {
        Session.Quality(rawValue: level.rawValue).map { level in
            (level, reason.map { Session.QualityReason(rawValue: $0.rawValue) ?? .other })
        }
    }
}
