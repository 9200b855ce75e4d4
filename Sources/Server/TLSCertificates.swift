import Foundation
import Logging
import NIOSSL
import ServiceLifecycle
import Synchronization

/// The certificate for HTTPS. It is loaded again when its files change, without ending connections.
///
/// Each new connection reads `contexts`, so it gets the newest certificate. Existing connections keep theirs. An
/// unusable pair of files is logged once and changes nothing.
final class TLSCertificates: Service, Sendable {
    /// The contents of the certificate file and of the key file, both PEM.
    private struct Pair: Equatable {
        var certificate: Data
        var key: Data
    }

    /// What `reload` compares with: the contents of the files in use, and the problem that was logged last.
    private struct State {
        var pair: Pair
        /// The last logged problem, which is not logged again. Nil if the files had no problem at the last check.
        var reported: String?
    }

    /// The result of `reload`.
    enum Outcome: Equatable, Sendable {
        case unchanged
        case replaced
        /// The files cannot be used, for the given reason. The previous certificate stays in use.
        case refused(String)
    }

    /// The paths of the certificate and of its key.
    private struct Files: Sendable {
        var certificate: String
        var key: String
        /// True if the certificate is ordered from an ACME server, so that it may not exist yet.
        var mayBeMissing = false
    }

    /// The files of the certificate; nil if it does not come from files (`--lan`).
    private let files: Files?
    private let interval: Duration
    private let logger: Logger
    private let state: Mutex<State>
    /// The contexts for new connections. They are not part of `state`: that is locked while files are read, and
    /// connections must not wait for the disk.
    private let current: Mutex<TLSContexts>

    /// Loads the certificate from the configuration's files, or uses the one of `--lan`. If the certificate comes from an ACME
    /// server and there is none yet, uses an expired one that nobody trusts, so that the port opens and the metric of the
    /// expiry shows the fault.
    ///
    /// - Returns: nil if the server does not handle HTTPS.
    /// - Throws: an error if the certificate or its key cannot be read or used.
    init?(_ configuration: ConfabConfiguration, _ lan: LocalNetwork?, _ logger: Logger) throws {
        let pair: Pair
        if let certificate = configuration.tls.certificate, let key = configuration.tls.privateKey {
            let files = Files(certificate: certificate, key: key)
            (self.files, pair) = (files, try Self.read(files))
        } else if let acme = ACMEFiles(configuration) {
            let files = Files(certificate: acme.certificatePath, key: acme.certificatePath, mayBeMissing: true)
            let stored = try? Self.read(files)
            self.files = files
            pair =
                try stored.flatMap { (try? Self.load($0)) == nil ? nil : $0 }
                ?? Self.placeholder(for: configuration.acme.domains, now: Date())
        } else if let lan {
            let material = lan.material
            files = nil
            pair = Pair(
                certificate: Data(material.certificatePEM.utf8), key: Data(material.privateKeyPEM.revealed.utf8))
        } else {
            return nil
        }
        self.logger = logger
        interval = configuration.tls.checkInterval
        current = Mutex(TLSContexts(server: try Self.load(pair).context))
        state = Mutex(State(pair: pair))
    }

    /// The contexts for a new connection.
    var contexts: TLSContexts { current.withLock { $0 } }

    /// Presents the certificate of this challenge to the authority, until ``withdrawChallenges()``.
    ///
    /// - Throws: an error if the certificate cannot be made.
    func present(_ challenge: ACMEChallenge) throws {
        let context = try TLSContexts.verification(ChallengeCertificate.make(for: challenge, now: Date()))
        current.withLock { $0.challenges[challenge.domain] = context }
    }

    /// Presents no certificate of a challenge any more.
    func withdrawChallenges() { current.withLock { $0.challenges = [:] } }

    /// Checks the files regularly until the server stops.
    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            while !Task.isCancelled {
                try? await Task.sleep(for: interval)
                if !Task.isCancelled { reload() }
            }
        }
    }

    /// Reads the files, and uses them for new connections if they have changed and can be used. Do not call this on an event
    /// loop: it reads files.
    @discardableResult
    func reload() -> Outcome {
        guard let files, !files.mayBeMissing || FileManager.default.fileExists(atPath: files.certificate) else {
            return .unchanged
        }
        // The lock also keeps two reloads from reading different versions and storing them in the wrong order.
        return state.withLock { state in
            do {
                let pair = try Self.read(files)
                guard pair != state.pair else {
                    state.reported = nil
                    return .unchanged
                }
                let loaded = try Self.load(pair)
                state = State(pair: pair)
                current.withLock { $0.server = loaded.context }
                logger.info(
                    "New connections use the new certificate",
                    metadata: ["expires": "\(Date(timeIntervalSince1970: Double(loaded.expiry)))"])
                return .replaced
            } catch {
                let problem = "\(error)"
                if state.reported != problem {
                    logger.warning(
                        """
                        The new certificate cannot be used. The previous one stays in use. Check that tls.certificate \
                        and tls.privateKey are complete and belong together.
                        """, metadata: ["error": "\(problem)"])
                }
                state.reported = problem
                return .refused(problem)
            }
        }
    }

    private static func placeholder(for domains: [String], now: Date) throws -> Pair {
        let start = now - LocalCertificateAuthority.certificateLifetime
        let authority = try LocalCertificateAuthority.makeAuthority(hostName: nil, now: start)
        let made = try LocalCertificateAuthority.issue(domains, by: authority, now: start)
        let pem = Data(try made.pem())
        return Pair(certificate: pem, key: pem)
    }

    private static func read(_ files: Files) throws -> Pair {
        Pair(
            certificate: try Data(contentsOf: URL(fileURLWithPath: files.certificate)),
            key: try Data(contentsOf: URL(fileURLWithPath: files.key)))
    }

    /// Creates a context for new connections. Returns it with the certificate's expiry in seconds since 1970, which is
    /// also recorded in the metrics. Throws if a file is invalid or the key does not belong to the certificate.
    private static func load(_ pair: Pair) throws -> (context: NIOSSLContext, expiry: Int) {
        let certificates = try NIOSSLCertificate.fromPEMBytes(Array(pair.certificate))
        let key = try NIOSSLPrivateKey(bytes: Array(pair.key), format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: certificates.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        let context = try NIOSSLContext(configuration: configuration)
        guard let first = certificates.first else { throw NIOSSLError.failedToLoadCertificate }
        OperatingMetrics.record(expiryOf: first)
        return (context, Int(first.notValidAfter))
    }
}
