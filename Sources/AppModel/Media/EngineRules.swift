import Confab

/// Rules of a WebRTC media engine, independent of its types.
public enum EngineRules {
    /// The maximum number of unread events of a connection. It exceeds what any negotiation produces, and limits the
    /// memory of a connection whose events are not read.
    public static let maxUnreadEvents = 4096
    /// The maximum number of unread changes to one capture. Older ones are dropped, because the newest contain the
    /// current state.
    public static let maxUnreadChanges = 16
    /// The maximum number of decoded frames of one view in use at a time. Further frames are dropped.
    public static let maxDecodedPictures = 6

    /// The maximum number of unread interruptions of one camera. Only the newest matters.
    public static let maxUnreadInterruptions = 1

    /// Chooses the codec to offer first: VP8, the only one that is encoded in several layers.
    ///
    /// - Returns: its index in `names`; nil if the engine has no VP8. Then the engine's order is kept.
    public static func preferredCodec(among names: [String]) -> Int? { names.firstIndex(of: "VP8") }

    /// Limits a volume to the range from 0 to 1; NaN becomes 1. WebRTC's scale ends at 10, and 1 leaves the volume
    /// unchanged.
    public static func volume(_ wanted: Double) -> Double { wanted.isNaN ? 1 : min(1, max(0, wanted)) }

    /// Returns the factor by which a layer's width and height are divided. It is at least 1, because WebRTC refuses to
    /// enlarge video. An infinite or NaN factor becomes 1.
    public static func scale(_ wanted: Double) -> Double { wanted.isFinite ? max(1, wanted) : 1 }

    /// Returns whether to send an encoding.
    ///
    /// - Parameters:
    ///   - rid: the encoding's RID; nil if the video has no layers.
    ///   - wanted: the RIDs of the layers to send, where an empty string means a video without layers; nil for all.
    public static func sends(rid: String?, of wanted: [String]?) -> Bool { wanted?.contains(rid ?? "") ?? true }
}

/// A remote candidate in the form that WebRTC accepts.
public struct RemoteCandidate: Equatable, Sendable {
    public var text: String
    public var mid: String?
    /// The index of the media section, from 0. WebRTC uses it if the `mid` is unknown.
    public var lineIndex: Int32

    /// Creates the candidate; nil for the end-of-candidates indication, which WebRTC does not need.
    public init?(_ candidate: PeerCandidate?) {
        guard let candidate, !candidate.candidate.isEmpty else { return nil }
        (text, mid) = (candidate.candidate, candidate.mid)
        lineIndex = Int32(clamping: candidate.lineIndex ?? 0)
    }
}

extension EngineRules {
    /// Casts media to the engine's own type; nil for no media.
    ///
    /// - Throws: `media_failed` for media of another engine.
    public static func ownMedia<Media>(_ source: (any LocalMedia)?) throws(ConfabError) -> Media? {
        guard let source else { return nil }
        guard let media = source as? Media else { throw .foreignMedia }
        return media
    }
}

/// The errors of a WebRTC media engine.
extension ConfabError {
    /// The media to send belongs to another engine.
    public static let foreignMedia = Self(.mediaFailed, "This engine can only send media that it captured itself.")
    /// WebRTC created no peer connection.
    public static let tooManyConnections = Self(
        .mediaFailed, "Too many connections. Close the app and open it again.")
    /// WebRTC created no transceiver.
    public static let tooManyTracks = Self(
        .mediaFailed, "No more audio or video can be added. Leave and join again.")
    /// The connection was closed before this request.
    public static let connectionClosed = Self(.mediaFailed, "The connection is closed. Join again.")
    /// This engine cannot read files.
    public static let noFiles = Self(.mediaFailed, "This app can send the camera or the screen, but not a file.")

    static let noCamera = Self(.mediaFailed, "This device has no camera. You can join with sound only.")
    static let noCameraFormat = Self(.mediaFailed, "The camera has no usable format. You can join with sound only.")

    /// Returns the error for a description that was not created or not accepted.
    public static func notNegotiated(_ cause: (any Error)?) -> Self {
        Self(.mediaFailed, "The connection could not be set up. Try again.", isRetryable: true, cause: cause)
    }

    /// Returns the error for a capturer that failed.
    public static func cameraNotStarted(_ cause: any Error) -> Self {
        Self(
            .mediaFailed, "The camera could not be started. Another app may be using it.", isRetryable: true,
            cause: cause)
    }

    /// Returns the error for a screen that the system did not record, or that the user did not allow to be recorded.
    public static func screenNotShared(_ cause: any Error) -> Self {
        Self(.mediaFailed, "The screen could not be shared. Press Share screen again and allow it.", cause: cause)
    }
}
