import Wire

/// The chat and the person that a sample of a camera belongs to.
public struct SampleSource: Hashable, Sendable {
    public var match: MatchID
    /// The person whose camera it is.
    public var person: IdentityID
    /// The session in which the person publishes.
    public var session: SessionID

    public init(match: MatchID, person: IdentityID, session: SessionID) {
        (self.match, self.person, self.session) = (match, person, session)
    }
}

/// A verdict with the sentence that the person gets.
public struct SampleJudgment: Hashable, Sendable {
    public var verdict: SampleVerdict
    /// At most `Limits.warning` bytes; nil for the client's own sentence.
    public var text: String?

    public init(_ verdict: SampleVerdict, text: String? = nil) { (self.verdict, self.text) = (verdict, text) }
}

/// The latest sample of a reported person's camera, and what was decided in that chat.
public struct ReportedSample: Hashable, Sendable {
    /// A JPEG image.
    public var jpeg: [UInt8]
    public var at: Timestamp
    /// The latest verdict; nil if there was none. It may be about an earlier sample.
    public var verdict: SampleVerdict?
    /// How often the verdict was `warn` or `blur`.
    public var warnings: Int
    public var blurs: Int

    public init(
        jpeg: [UInt8], at: Timestamp, verdict: SampleVerdict? = nil, warnings: Int = 0, blurs: Int = 0
    ) {
        (self.jpeg, self.at, self.verdict) = (jpeg, at, verdict)
        (self.warnings, self.blurs) = (warnings, blurs)
    }
}

extension Hub {
    /// Returns whose camera a sample with this token shows; nil if the chat is over, or the token is not one to publish in a chat.
    package func sampleSource(for grant: SessionGrant) -> SampleSource? {
        guard let match = grant.match, let holder = grant.holder, grant.role == .publisher,
            let people = matches.read(match, { $0.people }),
            let person = people.first(where: { context.project.holder($0, of: match) == holder })
        else { return nil }
        return SampleSource(match: match, person: person, session: grant.session)
    }

    /// Returns whether this person has a connection to this server, so that a warning can reach them.
    package func isConnected(_ person: IdentityID) -> Bool {
        people.read(person) { person in person.devices.clients.contains { person.devices.isLive($0) } } ?? false
    }

    /// The number of sides of video chats from which no sample came although the server checks them.
    public var unsampledChats: Int { context.figures.unsampledChats }
}
