import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("When certificates are ordered") struct RenewalScheduleTests {
    private static let now = Moment(now: Timestamp(milliseconds: 1_800_000_000_000))
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
        let start = Moment(now: certificate.validFrom)
        let latest = schedule.wait(for: certificate, at: start, jitter: 0)
        let earliest = schedule.wait(for: certificate, at: start, jitter: 1)
        #expect(abs(latest / lifetime - 2.0 / 3) < 0.001)
        #expect(abs(earliest / lifetime - (2.0 / 3 - 0.02)) < 0.001)
        #expect(schedule.wait(for: certificate, at: start, jitter: .infinity) == earliest)
        #expect(schedule.wait(for: certificate, at: Moment(now: certificate.validUntil), jitter: 0) == .zero)
    }

    @Test("without a certificate the order is due at once, also after a success")
    func missing() {
        var schedule = RenewalSchedule()
        #expect(schedule.wait(for: nil, at: Self.now, jitter: 0) == .zero)
        schedule.succeeded(at: Self.now)
        #expect(schedule.wait(for: nil, at: Self.now, jitter: 0) == .zero)
    }

    @Test("an authority that issues certificates of the past is asked once an hour at most")
    func expired() throws {
        let certificate = try Self.certificate()
        var schedule = RenewalSchedule()
        let late = Moment(now: certificate.validUntil + .seconds(86400))
        #expect(schedule.wait(for: certificate, at: late, jitter: 0) == .zero)
        schedule.succeeded(at: late)
        #expect(schedule.wait(for: certificate, at: late, jitter: 0) == RenewalSchedule.minimumAge)
    }

    @Test("the first pause is a minute, then five that double up to twelve hours, and a success ends it")
    func backoff() {
        var schedule = RenewalSchedule()
        var pauses: [Duration] = []
        for _ in 0..<10 {
            schedule.failed(Self.failure, at: Self.now, jitter: 0)
            pauses.append(schedule.wait(for: nil, at: Self.now, jitter: 0))
        }
        #expect(pauses.prefix(4) == [.seconds(60), .seconds(300), .seconds(600), .seconds(1200)])
        #expect(pauses.last == RenewalSchedule.longestPause && schedule.failures == 10)
        schedule.failed(Self.failure, at: Self.now, jitter: 1)
        #expect(schedule.wait(for: nil, at: Self.now, jitter: 0) == .seconds(15 * 3600))
        schedule.succeeded(at: Self.now)
        #expect(schedule.failures == 0)
    }

    @Test("no attempt comes before the authority's Retry-After")
    func retryAfter() {
        var schedule = RenewalSchedule()
        var failure = Self.failure
        failure.retryAfter = .seconds(86400)
        schedule.failed(failure, at: Self.now, jitter: 0)
        #expect(schedule.wait(for: nil, at: Self.now, jitter: 0) == .seconds(86400))
        failure.retryAfter = .seconds(1)
        schedule = RenewalSchedule()
        schedule.failed(failure, at: Self.now, jitter: 0)
        #expect(schedule.wait(for: nil, at: Self.now, jitter: 0) == RenewalSchedule.firstPause)
    }

    @Test("at most five attempts come in the first hour, as many as Let's Encrypt allows to fail")
    func firstHour() {
        var schedule = RenewalSchedule()
        var (time, attempts) = (Duration.zero, 0)
        while time < .seconds(3600) {
            attempts += 1
            let moment = Moment(now: Self.now.now + time)
            schedule.failed(Self.failure, at: moment, jitter: 0)
            time += schedule.wait(for: nil, at: moment, jitter: 0)
        }
        #expect(attempts == 5)
    }

    @Test("setting the clock neither skips a pause nor extends one, but makes a renewal due")
    func clockChanges() throws {
        let certificate = try Self.certificate()
        var schedule = RenewalSchedule()
        let start = Moment(now: certificate.validFrom)
        schedule.failed(Self.failure, at: start, jitter: 0)
        for jump in [Duration.seconds(86400 * 400), .seconds(-86400 * 400)] {
            let moment = Moment(now: start.now + .seconds(10), wall: start.wall + jump)
            #expect(schedule.wait(for: nil, at: moment, jitter: 0) == .seconds(50))
        }
        let expired = Moment(now: start.now + .seconds(10), wall: certificate.validUntil)
        #expect(schedule.wait(for: certificate, at: expired, jitter: 0) == .seconds(50))
        #expect(RenewalSchedule().wait(for: certificate, at: expired, jitter: 0) == .zero)
    }
}
