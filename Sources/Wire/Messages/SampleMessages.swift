// Samples of the cameras in the roulette, which an operator's program judges (`protocol/README.md` §5). A client sends a sample as
// an HTTP request, so that it does not delay the messages on the socket.

extension Welcome {
    /// How a client sends frames of its camera during a video chat of the roulette. Only sent by a server that checks samples.
    public struct Sampling: Payload {
        /// The time between two samples. The server refuses samples that arrive in less than half of it.
        public var interval: Duration = .zero
        /// The width of a sample in pixels.
        public var width = 0
        /// The maximum size of a sample in bytes.
        public var maxBytes = 0
        public init() {}
        public init(interval: Duration, width: Int = Limits.sampleWidth, maxBytes: Int = Limits.sample) {
            (self.interval, self.width, self.maxBytes) = (interval, width, maxBytes)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.milliseconds("intervalMs", &interval)
            try coder.integer("width", &width, in: 1...Limits.sampleSide)
            try coder.integer("maxBytes", &maxBytes, in: 1...Int(Int32.max))
        }
    }
}

/// What an operator's program decides about a sample.
public enum SampleVerdict: String, Hashable, Sendable, CaseIterable {
    /// Nothing is wrong. A blur ends.
    case ok
    /// The person gets a warning. A blur ends.
    case warn
    /// The partner's client blurs the video until a later verdict ends the blur.
    case blur
    /// The chat ends.
    case end
}

extension RouletteNotice {
    /// A warning for the person on this client.
    public struct Warning: Payload {
        /// The chat that the warning is about; nil if it is about none, or about one that is over.
        public var match: MatchID?
        /// Who warns.
        public var source = WarningSource.check
        /// Whether the chat ends because of it. ``RouletteNotice/ended(_:)`` with the reason `stopped` follows.
        public var ends = false
        /// A sentence for the person, at most 300 bytes; nil for the client's own.
        public var text: String?
        public init() {}
        public init(match: MatchID? = nil, source: WarningSource, ends: Bool = false, text: String? = nil) {
            (self.match, self.source, self.ends, self.text) = (match, source, ends, text)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("matchId", &match)
            try coder.choice("source", &source)
            try coder.bool("ends", &ends)
            try coder.string("text", &text, max: Limits.warning)
        }
    }

    /// Whether a video of the chat is blurred. Every chat begins without a blur.
    public struct Blur: Payload {
        /// The chat.
        public var match = MatchID(high: 0, low: 0)
        /// Whose video it is. A client blurs the partner's, and informs the person about their own.
        public var whose = BlurredVideo.partner
        /// Whether the video must be blurred.
        public var blurred = false
        public init() {}
        public init(match: MatchID, whose: BlurredVideo, blurred: Bool) {
            (self.match, self.whose, self.blurred) = (match, whose, blurred)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("matchId", &match)
            try coder.choice("whose", &whose)
            try coder.bool("blurred", &blurred)
        }
    }
}

/// Who warns a person.
public enum WarningSource: String, Hashable, Sendable {
    /// The operator's program, which has judged a sample.
    case check
    /// An operator, after a report.
    case `operator`
}

/// Whose video is blurred.
public enum BlurredVideo: String, Hashable, Sendable {
    /// The video of the person on this client. The partner's client blurs it.
    case own
    /// The partner's video.
    case partner
}
