import Foundation
import TestSupport

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The `openssl` command, used to create a certificate and as a TLS client and server.
struct TLSTunnel: Sendable {
    private let openssl: String
    private let directory: String

    /// Creates a key and a certificate in a new folder; nil if there is no `openssl`.
    init?() throws {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        let candidates = folders.map { "\($0)/openssl" }
        guard let openssl = candidates.first(where: FileManager.default.isExecutableFile) else { return nil }
        self.openssl = openssl
        directory = NSTemporaryDirectory() + "confab-tls-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let process = try RunningProcess(
            openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-keyout", directory + "/key.pem", "-out", directory + "/certificate.pem",
            ], environment: [:], logFile: directory + "/log"
        )
        guard process.waits(within: .seconds(20)), process.status == 0 else {
            throw TimedOut("openssl made no certificate; see \(directory)/log")
        }
    }

    func remove() { try? FileManager.default.removeItem(atPath: directory) }

    var settings: [String: String] {
        [
            "CONFAB_TLS_CERTIFICATE": certificate,
            "CONFAB_TLS_PRIVATE_KEY": directory + "/key.pem",
        ]
    }

    var certificate: String { directory + "/certificate.pem" }

    /// Starts a TLS server on that port of this machine.
    func answerer(port: Int) throws -> TLSAnswerer {
        let (program, line) = try run([
            "s_server", "-quiet", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", directory + "/key.pem",
        ])
        return TLSAnswerer(program, line)
    }

    /// Connects to a TLS port. Bytes are passed through in both directions, and the process ends with the connection.
    func connect(port: Int) throws -> RawSocket {
        try run(["s_client", "-quiet", "-connect", "127.0.0.1:\(port)"]).line
    }

    /// Runs the command with one end of a socket pair as its input and output, and returns the other end.
    private func run(_ arguments: [String]) throws -> (program: ChildProgram, line: RawSocket) {
        var ends: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, streamSocket, 0, &ends) == 0 else { throw SocketError("socketpair", errno) }
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer {
            close(ends[1])
            close(null)
        }
        // If another process inherited our end of the socket pair, closing it here would have no effect.
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        let line = RawSocket(descriptor: ends[0])
        return (try ChildProgram(openssl, arguments, input: ends[1], output: ends[1], errors: null), line)
    }
}
