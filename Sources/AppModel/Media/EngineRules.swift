import Confab

/// Rules of a media engine on WebRTC, without its types.
public enum EngineRules {
    /// Events of a connection that wait to be read. More than any negotiation produces: a connection that is not read must not
    /// fill the memory.
    public static let maxUnreadEvents = 4096
    /// The most unread changes of one capture. Older ones are dropped: the newest say what holds now.
    public static let maxUnreadChanges = 16
    /// How many decoded pictures of one view may be in use at a time. Further frames are dropped.
    public static let maxDecodedPictures = 6

    /// The most unread interruptions of one camera. Only the newest says whether the camera is there.
    public static let maxUnreadInterruptions = 1

    /// Chooses the codec that is offered first. Only VP8 is encoded in several layers.
    ///
    /// - Returns: its index in the list of names; nil if the engine has no VP8. Then the engine's own order holds.
    public static func preferredCodec(among names: [String]) -> Int? { names.firstIndex(of: "VP8") }

    /// Returns the volume of a received track. WebRTC's scale ends at 10, and 1 leaves the volume as it is.
    public static func volume(_ wanted: Double) -> Double { wanted.isNaN ? 1 : min(1, max(0, wanted)) }

    /// Returns by how much the width and height of a layer are divided. WebRTC refuses to enlarge pictures.
    public static func scale(_ wanted: Double) -> Double { wanted.isFinite ? max(1, wanted) : 1 }

    /// Returns whether an encoding is sent.
    ///
    /// - Parameters:
    ///   - rid: its RID; nil if the video has no layers.
    ///   - wanted: the RIDs of the layers to send; nil for all.
    public static func sends(rid: String?, of wanted: [String]?) -> Bool { wanted?.contains(rid ?? "") ?? true }
}

/// A candidate of the other end as WebRTC takes it.
public struct RemoteCandidate: Equatable, Sendable {
    public var text: String
    public var mid: String?
    /// The index of the media section, from 0. WebRTC uses it if it does not know the `mid`.
    public var lineIndex: Int32

    /// Nil for the end of candidates, which WebRTC does not need to know.
    public init?(_ candidate: PeerCandidate?) {
        guard let candidate, !candidate.candidate.isEmpty else { return nil }
        (text, mid) = (candidate.candidate, candidate.mid)
        lineIndex = Int32(clamping: candidate.lineIndex ?? 0)
    }
}

extension EngineRules {
    /// Returns the media in the engine's own type; nil if there is none.
    ///
    /// - Throws: `media_failed` for media of another engine.
    public static func ownMedia<Media>(_ source: (any LocalMedia)?) throws(ConfabError) -> Media? {
        guard let source else { return nil }
        guard let media = source as? Media else { throw .foreignMedia }
        return media
    }
}

/// What a media engine on WebRTC tells people when something cannot be done.
extension ConfabError {
    /// Media of another engine was to be sent.
    public static let foreignMedia = Self(.mediaFailed, "This engine sends only what it captured itself.")
    /// WebRTC made no peer connection.
    public static let tooManyConnections = Self(
        .mediaFailed, "There can be no more connections. Close the app and open it again.")
    /// WebRTC made no transceiver.
    public static let tooManyTracks = Self(
        .mediaFailed, "The connection takes no more audio or video. Leave and join again.")
    /// Something was asked of a connection after it was closed.
    public static let connectionClosed = Self(.mediaFailed, "The connection is closed. Join again.")
    /// This engine reads no files.
    public static let noFiles = Self(.mediaFailed, "This app sends the camera or the screen, but no files.")

    static let noCamera = Self(.mediaFailed, "This device has no camera. You can join with sound only.")
    static let noCameraFormat = Self(.mediaFailed, "The camera offers no format. You can join with sound only.")

    /// A description was not made or not accepted.
    public static func notNegotiated(_ cause: (any Error)?) -> Self {
        Self(.mediaFailed, "The connection could not be set up. Try again.", isRetryable: true, cause: cause)
    }

    /// The capturer reported an error.
    public static func cameraNotStarted(_ cause: any Error) -> Self {
        Self(
            .mediaFailed, "The camera could not be started. Another app may be using it.", isRetryable: true,
            cause: cause)
    }

    /// The system did not record the screen, or the person did not allow it.
    public static func screenNotShared(_ cause: any Error) -> Self {
        Self(.mediaFailed, "The screen is not shared. Press Share screen again to allow it.", cause: cause)
    }
}
