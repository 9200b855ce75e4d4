import Crypto
import Foundation
import Logging
import Metrics
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Orders and renews the certificate of `acme.domains`, and puts it into use without ending connections.
///
/// `RenewalSchedule` decides when, and `ACMEOrder` what to send. This is the shell around them: requests, files, the port for
/// challenges, the log and the metric.
struct AutomaticCertificates: Service {
    private let configuration: ConfabConfiguration
    private let files: ACMEFiles
    /// The port for plain HTTP; nil if the authority verifies the domains on the public port.
    private let listener: ChallengeListener?
    private let certificates: TLSCertificates
    private let clock: ServerClock
    private let logger: Logger
    private let failedAttempts = Gauge(label: "confab_acme_failed_attempts")

    /// Returns nil if the configuration has no domains for ACME.
    init?(
        _ configuration: ConfabConfiguration, _ gateway: NIOLoopBound<Gateway>, _ certificates: TLSCertificates,
        _ clock: ServerClock, _ logger: Logger
    ) {
        guard let files = ACMEFiles(configuration) else { return nil }
        (self.configuration, self.files, self.certificates) = (configuration, files, certificates)
        (self.clock, self.logger) = (clock, logger)
        listener = configuration.plainHTTPPort.map { port in
            ChallengeListener(
                gateway: gateway, configuration: configuration, port: port, answers: ChallengeAnswers())
        }
    }

    /// Keeps the certificate valid until the server stops. An order that is in progress then is canceled.
    func run() async throws {
        let connection = ACMEConnection(authorities: configuration.acme.authorities)
        await cancelWhenGracefulShutdown { await keepValid(connection) }
        await connection.close()
    }

    private func keepValid(_ connection: ACMEConnection) async {
        var schedule = RenewalSchedule()
        let jitter = Double.random(in: 0...1)
        var port: (any Channel)?
        var hasWarned = false
        var exposures: [String] = []
        failedAttempts.record(0)
        while !Task.isCancelled {
            // The file is read again, so that an operator can delete it to get a new certificate.
            let stored = (try? files.certificate()) ?? nil
            let exposed = files.exposures()
            for warning in exposed where !exposures.contains(warning) { logger.warning("\(warning)") }
            exposures = exposed
            if schedule.wait(for: stored, at: clock.moment, jitter: jitter) == .zero {
                let result: Result<IssuedCertificate, ACMEFailure>
                do throws(ACMEFailure) {
                    port = try await opened(port)
                    result = .success(try await issue(connection))
                } catch {
                    result = .failure(error)
                }
                if Task.isCancelled { break }
                finish(result, &schedule, jitter: jitter)
            } else if port?.isActive != true {
                do throws(ACMEFailure) { port = try await opened(port) } catch {
                    // Tried again each time, but logged once. The next order reports it again.
                    if !hasWarned { logger.warning("Plain HTTP is not redirected. \(error)") }
                    hasWarned = true
                }
            }
            try? await Task.sleep(for: configuration.tls.checkInterval)
        }
        try? await port?.close()
    }

    /// Returns the open port for plain HTTP, which is opened if it is not; nil if there is none.
    private func opened(_ port: (any Channel)?) async throws(ACMEFailure) -> (any Channel)? {
        guard let listener else { return nil }
        if let port, port.isActive { return port }
        do {
            return try await listener.open()
        } catch {
            throw ACMEFailure(
                code: .local, reason: "Port \(listener.port) for plain HTTP cannot be opened (\(error)).",
                advice: "Stop the program that uses it, or allow this server to use it (CAP_NET_BIND_SERVICE).")
        }
    }

    /// Orders a certificate, stores it and puts it into use.
    private func issue(_ connection: ACMEConnection) async throws(ACMEFailure) -> IssuedCertificate {
        let accountKey = try Self.local { () throws(DataDirectoryError) in try files.accountKey() }
        let order = ACMEOrder(
            .init(
                directory: ACMEAuthority.directory(configuration.acme.directory) ?? "",
                domains: configuration.acme.domains, email: configuration.acme.email,
                challenge: configuration.acme.challenge, accountKey: accountKey,
                certificateKey: P256.Signing.PrivateKey()))
        let certificate = try await carryOut(order, connection).get()
        try Self.local { () throws(DataDirectoryError) in try files.store(certificate) }
        if case .refused(let reason) = certificates.reload() {
            throw ACMEFailure(
                code: .badCertificate, reason: "The new certificate cannot be used (\(reason)).",
                advice: "Delete \(files.certificatePath) to get another.")
        }
        return certificate
    }

    private static func local<Value>(
        _ body: () throws(DataDirectoryError) -> Value
    ) throws(ACMEFailure) -> Value {
        do throws(DataDirectoryError) {
            return try body()
        } catch {
            throw ACMEFailure(code: .local, reason: "\(error)", advice: "Check the data directory and its disk.")
        }
    }

    private func carryOut(
        _ order: ACMEOrder, _ connection: ACMEConnection
    ) async -> Result<IssuedCertificate, ACMEFailure> {
        var order = order
        defer {
            listener?.answers.withdrawAll()
            certificates.withdrawChallenges()
        }
        var next: ACMEOrder.Input? = .start
        while let input = next, !Task.isCancelled {
            next = nil
            for output in order.handle(input, at: clock.moment) {
                switch output {
                case .publish(let challenge):
                    do throws(ACMEFailure) { try publish(challenge) } catch { return .failure(error) }
                case .send(let request): next = await connection.send(request)
                case .wait(let time):
                    try? await Task.sleep(for: time)
                    next = .waited
                case .done(let result): return result
                }
            }
        }
        return .failure(
            ACMEFailure(
                code: .local, reason: "The order was stopped.", advice: "It is repeated when the server runs again."))
    }

    /// Answers the challenge until the order ends.
    private func publish(_ challenge: ACMEChallenge) throws(ACMEFailure) {
        if let listener { return listener.answers.publish(challenge) }
        do {
            try certificates.present(challenge)
        } catch {
            throw ACMEFailure(
                code: .local, reason: "The certificate for the challenge cannot be made (\(error)).",
                advice: "Check acme.domains, or set acme.challenge to http.")
        }
    }

    private func finish(
        _ result: Result<IssuedCertificate, ACMEFailure>, _ schedule: inout RenewalSchedule, jitter: Double
    ) {
        let moment = clock.moment
        switch result {
        case .success(let certificate):
            schedule.succeeded(at: moment)
            files.note(nil)
            let wait = schedule.wait(for: certificate, at: moment, jitter: jitter)
            logger.info(
                "The authority issued a certificate",
                metadata: [
                    "domains": "\(certificate.domains.sorted().joined(separator: " "))",
                    "expires": "\(Self.date(certificate.validUntil))",
                    "renewal": "\(Self.date(moment.wall + wait))",
                ])
            if ACMEAuthority.isForTests(configuration.acme.directory) {
                logger.notice(
                    """
                    Browsers reject this certificate, because it is from a test authority. Set acme.directory to \
                    letsencrypt, and restart the server.
                    """)
            }
        case .failure(let failure):
            schedule.failed(failure, at: moment, jitter: Double.random(in: 0...1))
            files.note(failure)
            let wait = schedule.wait(for: nil, at: moment, jitter: jitter)
            logger.error(
                "No certificate. \(failure)",
                metadata: [
                    "code": "\(failure.code.rawValue)", "attempts": "\(schedule.failures)",
                    "next": "\(Self.date(moment.wall + wait))",
                ])
        }
        failedAttempts.record(schedule.failures)
    }

    private static func date(_ time: Timestamp) -> Date { Date(timeIntervalSince1970: Double(time.seconds)) }
}
