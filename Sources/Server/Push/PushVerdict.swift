import Wire

/// What an answer means for the push and for its endpoint.
enum PushVerdict: Equatable, Sendable {
    case delivered
    /// Nobody is behind this endpoint any more, and nobody ever will be.
    case gone
    /// Again, not before so long.
    case again(after: Duration?)
    /// Again with another token; Apple's only.
    case renewToken
    /// It will not get better by itself; the text is for the log.
    case refused(String)

    /// Of a browser's service (RFC 8030 §5, §7.3, RFC 8292 §4.2).
    init(web answer: PushAnswer) {
        switch answer.status {
        case 200...299: self = .delivered
        case 404, 410: self = .gone
        // 3xx: an endpoint is where it is; following would lead where nobody looked.
        case 408, 425, 429, 500...599: self = .again(after: answer.retryAfter)
        default: self = .refused("status \(answer.status)")
        }
    }

    /// Of Apple's service.
    init(apns answer: PushAnswer) {
        let reason = Self.reason(answer.body)
        switch (answer.status, reason) {
        case (200, _): self = .delivered
        case (410, _), (400, "BadDeviceToken"): self = .gone
        case (403, "ExpiredProviderToken"): self = .renewToken
        case (429, _), (500...599, _): self = .again(after: answer.retryAfter)
        default: self = .refused("status \(answer.status)" + (reason.map { ", \($0)" } ?? ""))
        }
    }

    /// The word in `{"reason":"…"}`; what is no word stays out of the log.
    private static func reason(_ body: [UInt8]) -> String? {
        guard case .object(let object) = try? JSONReader.parse(body), case .string(let text) = object["reason"],
            (1...64).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) })
        else { return nil }
        return text
    }
}

/// When a push is tried again: seconds that double, or as long as the service asks, until nobody needs it any more.
struct PushRetries: Equatable, Sendable {
    static let first: Duration = .seconds(1)
    static let longest: Duration = .seconds(30)
    /// Two minutes of trying, for notices that live longer than a ring: the page tells a missed call too.
    static let most = 8

    private var count = 0

    var areExhausted: Bool { count >= Self.most }

    /// How long to wait; nil when it is not worth it.
    mutating func next(after asked: Duration?, now: Timestamp, expires: Timestamp) -> Duration? {
        guard !areExhausted else { return nil }
        let doubled = min(Self.first * (1 << count), Self.longest)
        count += 1
        let wait = max(doubled, asked ?? .zero)
        return now + wait < expires ? wait : nil
    }
}

/// What became of a push to one endpoint, by which they are counted.
enum PushOutcome: String, CaseIterable, Sendable {
    case sent
    /// The endpoint was dead and is removed.
    case removed
    case failed
    /// Nobody needed it any more before it could be sent.
    case expired
    /// Something newer was to be said of the same call.
    case superseded
    /// This kind of service is not told.
    case untold
    /// There was no room for it.
    case dropped
}
