import Wire

/// What to do after a push service's response.
enum PushVerdict: Equatable, Sendable {
    case delivered
    /// Remove the endpoint, which no longer exists.
    case gone
    /// Retry, after this time if given.
    case again(after: Duration?)
    /// Retry with a new token. Apple only.
    case renewToken
    /// A permanent failure. The text is for the log.
    case refused(String)

    /// Interprets the response from a Web Push service (RFC 8030 §5, §7.3, RFC 8292 §4.2).
    init(web answer: PushResponse) {
        switch answer.status {
        case 200...299: self = .delivered
        case 404, 410: self = .gone
        // Redirects (3xx) are refused by the default case, because they could lead to an unchecked address.
        case 408, 425, 429, 500...599: self = .again(after: answer.retryAfter)
        default: self = .refused("status \(answer.status)")
        }
    }

    /// Interprets the response from Apple's service.
    init(apns answer: PushResponse) {
        let reason = Self.reason(answer.body)
        switch (answer.status, reason) {
        case (200, _): self = .delivered
        case (410, _), (400, "BadDeviceToken"): self = .gone
        case (403, "ExpiredProviderToken"): self = .renewToken
        case (429, _), (500...599, _): self = .again(after: answer.retryAfter)
        default: self = .refused("status \(answer.status)" + (reason.map { ", \($0)" } ?? ""))
        }
    }

    /// Returns the word in `{"reason":"…"}`; nil for any other body, which must not be logged.
    private static func reason(_ body: [UInt8]) -> String? {
        guard case .object(let object) = try? JSONReader.parse(body), case .string(let text) = object["reason"],
            (1...64).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) })
        else { return nil }
        return text
    }
}

/// The retry schedule of a push: exponential backoff, or longer if the service requests it, until the notice expires.
struct PushRetries: Equatable, Sendable {
    static let firstDelay: Duration = .seconds(1)
    static let maxDelay: Duration = .seconds(30)
    /// The maximum number of retries. They take about two minutes in total. A notice that lives longer is not worth
    /// more retries, because the page also shows missed calls.
    static let maxRetries = 8

    private var count = 0

    var areExhausted: Bool { count >= Self.maxRetries }

    /// Counts a retry and returns the delay before it. Returns nil if the retries are used up, or if the notice would
    /// expire first.
    mutating func next(after requested: Duration?, now: Timestamp, expires: Timestamp) -> Duration? {
        guard !areExhausted else { return nil }
        let doubled = min(Self.firstDelay * (1 << count), Self.maxDelay)
        count += 1
        let wait = max(doubled, requested ?? .zero)
        return now + wait < expires ? wait : nil
    }
}

/// The outcome of a push to one endpoint, or of a notice that was sent to no endpoint, for the metrics.
enum PushOutcome: String, CaseIterable, Sendable {
    case sent
    /// The endpoint was gone and has been removed.
    case removed
    case failed
    /// The notice expired before it could be sent.
    case expired
    /// A newer notice about the same call replaced this one.
    case superseded
    /// Nothing was sent, because the endpoint's service does not receive notices of this kind (`APNS.sends`).
    case untold
    /// The queue was full, or the server stopped.
    case dropped
}
