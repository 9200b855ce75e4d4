import Wire

// What archives and broadcasts have in common: they contain streams of a session, and compose them into one video.

/// How the streams of an archive or a broadcast are chosen, with the values of OpenTok's API.
public enum StreamMode: String, Hashable, Sendable {
    /// All streams of the session.
    case auto
    /// The streams that the application adds.
    case manual
}

/// The sizes of composed archives and broadcasts in pixels, with OpenTok's names.
///
/// Session IDs contain their positions in this list (`Project.makeSessionID`), so their order must not change.
public enum CompositionResolution: String, Hashable, Sendable, CaseIterable {
    /// The size if a request has none, as OpenTok's.
    case small = "640x480"
    case smallPortrait = "480x640"
    case medium = "1280x720"
    case mediumPortrait = "720x1280"
    case large = "1920x1080"
    case largePortrait = "1080x1920"

    /// In pixels.
    public var width: Int { side(0) }
    /// In pixels.
    public var height: Int { side(1) }

    private func side(_ index: Int) -> Int {
        let sides = rawValue.split(separator: "x")
        return index < sides.count ? Int(sides[index]) ?? 0 : 0
    }

    var number: UInt8 { UInt8(Self.allCases.firstIndex(of: self) ?? 0) }

    /// Returns nil if there is no such position.
    init?(number: UInt8) {
        guard number < Self.allCases.count else { return nil }
        self = Self.allCases[Int(number)]
    }
}

/// How the streams of a composed archive or a broadcast are arranged, with the values of OpenTok's API.
public struct CompositionLayout: Hashable, Sendable {
    /// The layout of a request that has none: OpenTok's default.
    public static let usual = CompositionLayout("bestFit")

    public var type: String
    /// The style sheet of the type `custom`; otherwise nil.
    public var stylesheet: String?
    /// The type while a screen is shared; nil if it is the same.
    public var screenshareType: String?

    public init(_ type: String, stylesheet: String? = nil, screenshareType: String? = nil) {
        (self.type, self.stylesheet, self.screenshareType) = (type, stylesheet, screenshareType)
    }
}

/// A stream that an application has added to an archive or a broadcast.
public struct SelectedStream: Hashable, Sendable {
    public var stream: StreamID
    public var hasAudio: Bool
    public var hasVideo: Bool

    public init(_ stream: StreamID, hasAudio: Bool, hasVideo: Bool) {
        (self.stream, self.hasAudio, self.hasVideo) = (stream, hasAudio, hasVideo)
    }
}

/// A stream of a session, for its archives and broadcasts.
public struct SessionStream: Equatable, Sendable {
    public var id: StreamID
    public var details: RecordedStream

    public init(_ id: StreamID, _ details: RecordedStream) { (self.id, self.details) = (id, details) }
}

/// What a session reports to its archives and broadcasts.
public enum SessionNews: Equatable, Sendable {
    /// How many connections are in the session now.
    case connections(Int)
    indirect case published(SessionStream)
    case unpublished(StreamID)
    /// The layout classes of a stream have changed.
    case classes(StreamID, [String])
    /// A member accepts to be in it, or no longer does.
    case consent(ConnectionID, Bool)
    /// The session is no longer on this node, or its project was deleted.
    case ended
}

/// A change to an archive or a broadcast. Moderators can only stop archives of their session.
public enum CompositionOperation: Equatable, Sendable {
    case stop
    case setLayout(CompositionLayout)
    /// Adds a stream in the stream mode `manual`, or changes which of its tracks are included.
    case addStream(SelectedStream)
    /// Removes a stream in the stream mode `manual`.
    case removeStream(StreamID)
}
