#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A peer connection, as in WebRTC's `RTCPeerConnection`. The SDK calls one method at a time and waits until it
/// returns, except for `statistics` and `close`.
public protocol MediaPeer: AnyObject, Sendable {
    /// The events of the connection, in order. There is one consumer. The sequence ends after `close`.
    var events: AsyncStream<PeerEvent> { get }

    /// Adds a transceiver.
    ///
    /// - Throws: an error with the code `media_failed` if the source cannot be sent.
    func add(_ transceiver: TransceiverSetup) async throws(ConfabError) -> TransceiverHandle
    /// Sends other media over a transceiver, or none, without renegotiation.
    ///
    /// - Throws: an error with the code `media_failed` if the source cannot be sent. The SDK then sets no source
    ///   instead.
    func replace(_ transceiver: TransceiverHandle, with source: (any LocalMedia)?) async throws(ConfabError)
    /// Changes the direction of a transceiver. The change takes effect with the next negotiation.
    func setDirection(_ direction: MediaDirection, of transceiver: TransceiverHandle) async
    /// Sends exactly the layers with these RIDs, without renegotiation; nil for all. An empty array stops the video,
    /// even one without layers.
    func activate(_ rids: [String]?, on transceiver: TransceiverHandle) async
    /// Returns the `mid` of a transceiver (RFC 8829 §5.2.1); nil before the first description.
    func mid(of transceiver: TransceiverHandle) async -> String?

    /// Creates an offer and sets it as the local description.
    ///
    /// - Parameter restartingICE: whether the offer has new ICE credentials.
    func offer(restartingICE: Bool) async throws(ConfabError) -> PeerDescription
    /// Creates an answer to the remote offer and sets it as the local description.
    func answer() async throws(ConfabError) -> PeerDescription
    /// Sets the remote description.
    ///
    /// - Throws: an error with the code `media_failed` if the description cannot be used.
    func accept(_ description: PeerDescription) async throws(ConfabError)
    /// Rolls back the local offer.
    func rollback() async throws(ConfabError)
    /// Adds a remote candidate; nil for the end of candidates. A candidate that cannot be used is ignored.
    func addCandidate(_ candidate: PeerCandidate?) async
    /// Replaces the ICE servers. The new ones are used from the next ICE restart on.
    func setServers(_ servers: [PeerConfiguration.Server], relayOnly: Bool) async

    /// Returns the media that arrives over the transceiver with this `mid`; nil if there is none.
    func remote(_ mid: String) async -> (any RemoteMedia)?
    /// Reports ``PeerEvent/firstFrame(mid:)`` again for the next frame, because another stream is about to arrive over
    /// this transceiver.
    func expectFrame(_ mid: String) async
    /// Returns the counters of all sent and received media.
    func statistics() async -> [Statistic]
    /// Closes the connection permanently.
    func close() async
}

/// The configuration of a peer connection.
public struct PeerConfiguration: Hashable, Sendable {
    /// A STUN or TURN server, with the members of `RTCIceServer`.
    public struct Server: Hashable, Sendable {
        /// The URLs of the server, such as `turn:turn.example.org:3478`.
        public var urls: [String]
        /// The user name for TURN; nil for STUN.
        public var username: String?
        /// The password for TURN; nil for STUN.
        public var credential: String?
        /// Creates a server.
        public init(urls: [String], username: String? = nil, credential: String? = nil) {
            (self.urls, self.username, self.credential) = (urls, username, credential)
        }
    }

    /// The ICE servers.
    public var servers: [Server]
    /// Whether to use only TURN, which hides this device's IP address from the other peer.
    public var relayOnly: Bool
    /// Creates a configuration.
    public init(servers: [Server] = [], relayOnly: Bool = false) {
        (self.servers, self.relayOnly) = (servers, relayOnly)
    }
}

/// The transceiver to add to a peer connection.
public struct TransceiverSetup: Sendable {
    /// Whether the transceiver carries audio or video.
    public var kind: TrackKind
    /// Whether the transceiver sends, receives or both.
    public var direction: MediaDirection
    /// The media whose audio or video is sent; nil for none.
    public var source: (any LocalMedia)?
    /// The simulcast layers to send, from the largest to the smallest; empty for one encoding without RID.
    public var layers: [Layer]
    /// The id of the `MediaStream` in the description (`a=msid`); nil for none.
    public var streamID: String?

    /// Creates a setup without layers and without a stream id.
    public init(_ kind: TrackKind, _ direction: MediaDirection, source: (any LocalMedia)? = nil) {
        (self.kind, self.direction, self.source) = (kind, direction, source)
        (layers, streamID) = ([], nil)
    }
}

/// Identifies a transceiver of one ``MediaPeer``. The engine chooses the number.
public struct TransceiverHandle: Hashable, Sendable {
    /// The number, unique in its peer connection.
    public let number: Int
    /// Creates a handle.
    public init(number: Int) { self.number = number }
}

/// The direction of a transceiver (RFC 8829 §4.2.4).
public enum MediaDirection: String, Hashable, Sendable {
    /// This device sends media.
    case sendOnly = "sendonly"
    /// This device receives media.
    case receiveOnly = "recvonly"
    /// This device sends and receives media.
    case sendAndReceive = "sendrecv"
    /// This device neither sends nor receives media.
    case inactive
}

/// A session description (RFC 8866).
public struct PeerDescription: Hashable, Sendable {
    /// An offer or an answer.
    public enum Kind: String, Hashable, Sendable {
        /// Proposes a connection or a change.
        case offer
        /// Accepts an offer.
        case answer
    }

    /// Whether this is an offer or an answer.
    public var kind: Kind
    /// The SDP, at most 256 KiB.
    public var sdp: String
    /// Creates a description.
    public init(_ kind: Kind, sdp: String) { (self.kind, self.sdp) = (kind, sdp) }
}

/// An ICE candidate, with the members of `RTCIceCandidateInit`.
public struct PeerCandidate: Hashable, Sendable {
    /// The SDP attribute of the candidate, beginning with `candidate:`; empty for the end of candidates of one media
    /// section.
    public var candidate: String
    /// The `mid` of the media section; nil if unknown.
    public var mid: String?
    /// The index of the media section, from 0; nil if unknown.
    public var lineIndex: Int?
    /// The user name fragment of the ICE credentials; nil if unknown.
    public var usernameFragment: String?
    /// Creates a candidate.
    public init(_ candidate: String, mid: String? = nil, lineIndex: Int? = nil, usernameFragment: String? = nil) {
        (self.candidate, self.mid) = (candidate, mid)
        (self.lineIndex, self.usernameFragment) = (lineIndex, usernameFragment)
    }
}

/// Something that happened on a ``MediaPeer``.
public enum PeerEvent: Hashable, Sendable {
    /// The connection's state changed.
    case state(PeerState)
    /// A local candidate was found; nil at the end of candidates. Not needed if the descriptions contain all candidates.
    case candidate(PeerCandidate?)
    /// A change requires an offer. The SDK makes offers after its own changes anyway, so this is only a hint.
    case negotiationNeeded
    /// The other peer sends a track. The stream id is the id of the `MediaStream` in the description; nil if there is
    /// none.
    case track(mid: String, TrackKind, streamID: String?)
    /// The first packet arrived over this transceiver since its last negotiation.
    case firstPacket(mid: String)
    /// The first whole frame of video arrived over this transceiver since its last negotiation, or since
    /// ``MediaPeer/expectFrame(_:)``.
    case firstFrame(mid: String)
}

/// The state of a peer connection, as in `RTCPeerConnectionState`.
public enum PeerState: String, Hashable, Sendable {
    /// No negotiation has begun yet.
    case new
    /// ICE or DTLS is in progress.
    case connecting
    /// Media can flow.
    case connected
    /// The other peer has not responded for a short time. The connection may recover without a restart.
    case disconnected
    /// The connection has failed. An ICE restart is needed.
    case failed
    /// Closed permanently.
    case closed
}

/// Counters of one sent or received track, or of one of its simulcast layers. All counters start at 0 when the peer
/// connection is created.
public struct Statistic: Hashable, Sendable {
    /// Whether media was sent or received.
    public enum Flow: String, Hashable, Sendable {
        /// Media that this device sends.
        case sent
        /// Media that this device receives.
        case received
    }

    /// Why a video is not as large or as smooth as it could be. The values are those of WebRTC's
    /// `qualityLimitationReason` for sent video, and those of the server for received video.
    public enum Limitation: String, Hashable, Sendable {
        /// Nothing limits the video.
        case unlimited = "none"
        /// The network cannot carry a higher bitrate.
        case bandwidth
        /// This device cannot encode a larger or smoother video.
        case cpu
        /// The video has the size or frame rate that the subscriber requested.
        case size
        /// The publisher sends no better layer.
        case publisher
        /// The server sends no video, because this device's connection cannot keep up.
        case slow
        /// The server sends no video, because this device cannot decode the codec.
        case codec
        /// Another reason.
        case other
    }

    /// Whether media was sent or received.
    public var flow: Flow
    /// Whether the track is audio or video.
    public var kind: TrackKind
    /// The `mid` of the transceiver; nil before the first negotiation.
    public var mid: String?
    /// The RID of the simulcast layer; nil without layers.
    public var rid: String?
    /// The number of RTP packets sent or received.
    public var packets: UInt64 = 0
    /// The number of payload bytes sent or received.
    public var bytes: UInt64 = 0
    /// The number of packets that did not arrive.
    public var packetsLost: Int64 = 0
    /// The number of whole video frames, encoded or received; 0 for audio.
    public var frames: UInt64 = 0
    /// The number of whole video frames that do not depend on others; 0 for audio.
    public var keyFrames: UInt64 = 0
    /// The size of the most recent frame in pixels; nil for audio or if unknown.
    public var size: VideoSize?
    /// The variation of the time between packets; nil if unknown.
    public var jitter: Duration?
    /// The round-trip time to the other peer; nil if unknown.
    public var roundTripTime: Duration?
    /// The loudness of the audio from 0 to 1; nil if unknown.
    public var audioLevel: Double?
    /// When the counters were read. If the engine leaves it nil, the SDK sets it.
    public var timestamp: Date?
    /// The number of frames in the last second; nil for audio or if unknown.
    public var frameRate: Double?
    /// How often the video froze; nil for audio, for sent video, or if unknown.
    public var freezes: UInt64?
    /// How long the video was frozen in total; nil for audio, for sent video, or if unknown.
    public var freezeDuration: Duration?
    /// Why the video is not as large or as smooth as it could be; nil for audio or if unknown.
    public var limitation: Limitation?
    /// The bitrate that the connection can carry in the direction of this media, in bits per second, as congestion
    /// control estimates it; nil if unknown, or if nothing limits it.
    public var availableBitrate: Int?

    /// Creates a statistic with all counters at 0.
    public init(_ flow: Flow, _ kind: TrackKind, mid: String? = nil, rid: String? = nil) {
        (self.flow, self.kind, self.mid, self.rid) = (flow, kind, mid, rid)
    }
}
