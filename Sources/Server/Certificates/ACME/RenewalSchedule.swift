import Wire

/// Decides when the server orders a certificate.
///
/// A certificate is renewed after two thirds of its lifetime, so that a month remains of one that is valid for 90 days. Failed
/// attempts are repeated after a pause that doubles, and never before the authority's `Retry-After`.
struct RenewalSchedule: Equatable, Sendable {
    /// The pause after the first failed attempt. Let's Encrypt allows five failed validations of a domain per hour.
    static let firstPause: Duration = .seconds(300)
    static let longestPause: Duration = .seconds(12 * 3600)
    /// The minimum time between two certificates, so that an authority that issues expired ones is not asked all the time.
    static let minimumAge: Duration = .seconds(3600)

    /// The number of failed attempts since the last certificate.
    private(set) var failures = 0
    /// No attempt before this time, because the last one failed.
    private var earliest = Timestamp.distantPast
    /// No renewal before this time, because the last attempt succeeded.
    private var earliestRenewal = Timestamp.distantPast

    /// When to order the next certificate. A time in the past means now.
    ///
    /// - Parameters:
    ///   - certificate: the certificate in use; nil if there is none for the configured domains, for example because the
    ///     operator deleted it to get a new one.
    ///   - jitter: a number from 0 to 1 that stays the same while the server runs. It moves the renewal to up to 2 % of the
    ///     lifetime earlier, so that many servers do not renew at the same time.
    func next(_ certificate: IssuedCertificate?, jitter: Double) -> Timestamp {
        guard let certificate else { return earliest }
        let lifetime = max(.zero, certificate.validUntil - certificate.validFrom)
        let share = 2.0 / 3 - 0.02 * min(max(jitter, 0), 1)
        let age = Duration.milliseconds(Int64(Double(lifetime.wholeMilliseconds) * share))
        return max(certificate.validFrom + age, earliest, earliestRenewal)
    }

    /// Records that a certificate was issued and stored.
    mutating func succeeded(now: Timestamp) {
        (failures, earliest, earliestRenewal) = (0, .distantPast, now + Self.minimumAge)
    }

    /// Records a failed attempt.
    ///
    /// - Parameter jitter: a new number from 0 to 1, which makes the pause up to a quarter longer.
    mutating func failed(_ failure: ACMEFailure, now: Timestamp, jitter: Double) {
        let pause = min(Self.firstPause * (1 << min(failures, 10)), Self.longestPause)
        failures = min(failures + 1, 1_000_000)
        let extra = Double(pause.wholeMilliseconds) * 0.25 * min(max(jitter, 0), 1)
        earliest = now + max(pause + .milliseconds(Int64(extra)), failure.retryAfter ?? .zero)
    }
}
