import Foundation
import Testing
import Wire

@testable import Server

@Suite("When certificates are ordered") struct RenewalScheduleTests {
    private static let now = Timestamp(milliseconds: 1_800_000_000_000)
    private static let failure = ACMEFailure(code: .unreachable, reason: "No.", advice: "Wait.")

    private static func certificate() throws -> IssuedCertificate {
        let files = try CertificateFiles.Pair()
        return try #require(IssuedCertificate(stored: files.keyPEM + "\n" + files.certificatePEM))
    }

    @Test("a certificate is renewed after two thirds of its lifetime, a little earlier with jitter")
    func twoThirds() throws {
        let certificate = try Self.certificate()
        let schedule = RenewalSchedule()
        let lifetime = certificate.validUntil - certificate.validFrom
        let latest = schedule.next(certificate, jitter: 0) - certificate.validFrom
        let earliest = schedule.next(certificate, jitter: 1) - certificate.validFrom
        #expect(abs(latest / lifetime - 2.0 / 3) < 0.001)
        #expect(abs(earliest / lifetime - (2.0 / 3 - 0.02)) < 0.001)
        #expect(schedule.next(certificate, jitter: .infinity) == schedule.next(certificate, jitter: 1))
    }

    @Test("without a certificate the order is due at once, also after a success")
    func missing() {
        var schedule = RenewalSchedule()
        #expect(schedule.next(nil, jitter: 0) <= Self.now)
        schedule.succeeded(now: Self.now)
        #expect(schedule.next(nil, jitter: 0) <= Self.now)
    }

    @Test("an authority that issues certificates of the past is asked once an hour at most")
    func expired() throws {
        let certificate = try Self.certificate()
        var schedule = RenewalSchedule()
        let late = certificate.validUntil + .seconds(86400)
        #expect(schedule.next(certificate, jitter: 0) < late)
        schedule.succeeded(now: late)
        #expect(schedule.next(certificate, jitter: 0) == late + RenewalSchedule.minimumAge)
    }

    @Test("the pause doubles after each failure up to twelve hours, and a success ends it")
    func backoff() {
        var schedule = RenewalSchedule()
        var pauses: [Duration] = []
        for _ in 0..<10 {
            schedule.failed(Self.failure, now: Self.now, jitter: 0)
            pauses.append(schedule.next(nil, jitter: 0) - Self.now)
        }
        #expect(pauses.prefix(4) == [.seconds(300), .seconds(600), .seconds(1200), .seconds(2400)])
        #expect(pauses.last == RenewalSchedule.longestPause && schedule.failures == 10)
        schedule.failed(Self.failure, now: Self.now, jitter: 1)
        #expect(schedule.next(nil, jitter: 0) - Self.now == .seconds(15 * 3600))
        schedule.succeeded(now: Self.now)
        #expect(schedule.failures == 0)
    }

    @Test("no attempt comes before the authority's Retry-After")
    func retryAfter() {
        var schedule = RenewalSchedule()
        var failure = Self.failure
        failure.retryAfter = .seconds(86400)
        schedule.failed(failure, now: Self.now, jitter: 0)
        #expect(schedule.next(nil, jitter: 0) - Self.now == .seconds(86400))
        failure.retryAfter = .seconds(1)
        schedule = RenewalSchedule()
        schedule.failed(failure, now: Self.now, jitter: 0)
        #expect(schedule.next(nil, jitter: 0) - Self.now == RenewalSchedule.firstPause)
    }
}
