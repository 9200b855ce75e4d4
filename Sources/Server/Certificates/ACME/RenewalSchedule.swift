import Signaling
import Wire

/// Decides when the server orders a certificate.
///
/// A certificate is renewed after two thirds of its lifetime, so that a month remains of one that is valid for 90 days. Failed
/// attempts are repeated after a pause that doubles, and never before the authority's `Retry-After`. The pauses run by the clock
/// that nobody can set, and the lifetime by the time of day, so setting the clock neither skips a pause nor extends one.
struct RenewalSchedule: Equatable, Sendable {
    /// The pause after the first failed attempt, which is often a matter of a moment, such as DNS that is not ready.
    static let firstPause: Duration = .seconds(60)
    /// The pause after the second failed attempt. It doubles then. Let's Encrypt allows five failed validations of a domain per
    /// hour, and with these pauses there are five.
    static let secondPause: Duration = .seconds(300)
    static let longestPause: Duration = .seconds(12 * 3600)
    /// The minimum time between two certificates, so that an authority that issues expired ones is not asked all the time.
    static let minimumAge: Duration = .seconds(3600)

    /// The number of failed attempts since the last certificate.
    private(set) var failures = 0
    /// No attempt before this time on the clock of `Moment.now`, because the last one failed.
    private var earliest = Timestamp.distantPast
    /// No renewal before this time on the clock of `Moment.now`, because the last attempt succeeded.
    private var earliestRenewal = Timestamp.distantPast

    /// How long to wait until the next certificate is ordered. Zero means now.
    ///
    /// - Parameters:
    ///   - certificate: the certificate in use; nil if there is none for the configured domains, for example because the
    ///     operator deleted it to get a new one.
    ///   - jitter: a number from 0 to 1 that stays the same while the server runs. It moves the renewal to up to 2 % of the
    ///     lifetime earlier, so that many servers do not renew at the same time.
    func wait(for certificate: IssuedCertificate?, at moment: Moment, jitter: Double) -> Duration {
        guard let certificate else { return max(.zero, earliest - moment.now) }
        let lifetime = max(.zero, certificate.validUntil - certificate.validFrom)
        let share = 2.0 / 3 - 0.02 * min(max(jitter, 0), 1)
        let age = Duration.milliseconds(Int64(Double(lifetime.wholeMilliseconds) * share))
        let renewal = moment.time(atWall: certificate.validFrom + age)
        return max(.zero, max(renewal, earliest, earliestRenewal) - moment.now)
    }

    /// Records that a certificate was issued and stored.
    mutating func succeeded(at moment: Moment) {
        (failures, earliest, earliestRenewal) = (0, .distantPast, moment.now + Self.minimumAge)
    }

    /// Records a failed attempt.
    ///
    /// - Parameter jitter: a new number from 0 to 1, which makes the pause up to a quarter longer.
    mutating func failed(_ failure: ACMEFailure, at moment: Moment, jitter: Double) {
        let pause =
            failures == 0 ? Self.firstPause : min(Self.secondPause * (1 << min(failures - 1, 10)), Self.longestPause)
        failures = min(failures + 1, 1_000_000)
        let extra = Double(pause.wholeMilliseconds) * 0.25 * min(max(jitter, 0), 1)
        earliest = moment.now + max(pause + .milliseconds(Int64(extra)), failure.retryAfter ?? .zero)
    }
}
