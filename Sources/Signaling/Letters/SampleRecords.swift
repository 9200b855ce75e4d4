import Wire

/// The chat and the person that a sample of a camera belongs to.
public struct SampleSource: Hashable, Sendable {
    /// The chat.
    public var match: MatchID
    /// The person whose camera it is.
    public var person: IdentityID
    /// The session in which the person publishes.
    public var session: SessionID

    /// Creates a source from its parts.
    public init(match: MatchID, person: IdentityID, session: SessionID) {
        (self.match, self.person, self.session) = (match, person, session)
    }
}

/// A verdict with the sentence that the person gets.
public struct SampleJudgment: Hashable, Sendable {
    /// What to do.
    public var verdict: SampleVerdict
    /// At most `Limits.warning` bytes; nil for the client's own sentence.
    public var text: String?

    /// Creates a judgment, with a sentence for the person or without.
    public init(_ verdict: SampleVerdict, text: String? = nil) { (self.verdict, self.text) = (verdict, text) }
}

/// The latest sample of a reported person's camera, and what was decided in that chat.
public struct ReportedSample: Hashable, Sendable {
    /// A JPEG image. Empty in a list of stored reports, which is read without images.
    public var jpeg: [UInt8]
    /// When it arrived, by the wall clock.
    public var at: Timestamp
    /// The latest verdict; nil if there was none. It may be about an earlier sample.
    public var verdict: SampleVerdict?
    /// How often the verdict was `warn` in this chat.
    public var warnings: Int
    /// How often it was `blur`.
    public var blurs: Int

    /// Creates a sample, by default one that was not judged.
    public init(
        jpeg: [UInt8], at: Timestamp, verdict: SampleVerdict? = nil, warnings: Int = 0, blurs: Int = 0
    ) {
        (self.jpeg, self.at, self.verdict) = (jpeg, at, verdict)
        (self.warnings, self.blurs) = (warnings, blurs)
    }
}
