import Foundation
import NIOCore
import NIOPosix
import Testing
import TestSupport

@testable import Server

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Pebble, the ACME server that Let's Encrypt's developers test clients with, and its DNS server, which leads every name to
/// this machine. They have ports of their own and files in a temporary folder.
final class RunningPebble: Sendable {
    static let isInstalled =
        ChildProgram.path("pebble") != nil && ChildProgram.path("pebble-challtestsrv") != nil

    struct Failure: Error, CustomStringConvertible { let description: String }

    let directoryURL: String
    /// The port that Pebble uses instead of port 80.
    let httpPort: Int
    /// The port that Pebble uses instead of port 443.
    let tlsPort: Int
    /// The file with the certificate authority of Pebble's own connections.
    let authorities: String
    private let folder: String
    private let programs: [ChildProgram]

    /// Starts both programs, and waits until Pebble accepts connections.
    init() async throws {
        let folder = NSTemporaryDirectory() + "confab-pebble-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let address = try #require(IPAddress("127.0.0.1"))
        let own = try LocalCertificateAuthority(dataDirectory: folder).material(addresses: [address], hostName: nil)
        func write(_ name: String, _ text: String) throws -> String {
            try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
            return "\(folder)/\(name)"
        }
        authorities = try write("authority.pem", own.authorityPEM)
        let certificate = try write("certificate.pem", own.certificatePEM)
        let key = try write("key.pem", own.privateKeyPEM.revealed)
        let ports = try (0..<5).map { _ in try TestPorts.next() }
        (httpPort, tlsPort) = (ports[0], ports[4])
        let settings = try write(
            "pebble.json",
            """
            {"pebble":{"listenAddress":"127.0.0.1:\(ports[1])","managementListenAddress":"","certificate":"\(certificate)",\
            "privateKey":"\(key)","httpPort":\(httpPort),"tlsPort":\(tlsPort),"ocspResponderURL":"",\
            "externalAccountBindingRequired":false}}
            """)
        let log = try write("log", "")
        let output = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        func start(_ arguments: [String]) throws -> ChildProgram {
            try ChildProgram(
                "env", arguments, output: output.fileDescriptor, errors: output.fileDescriptor)
        }
        let dns = "127.0.0.1:\(ports[2])"
        let names = try start([
            "pebble-challtestsrv", "-dns01", dns, "-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", "",
            "-defaultIPv4", "127.0.0.1", "-management", "127.0.0.1:\(ports[3])",
        ])
        // Pebble refuses some nonces and reuses some authorizations at random, which clients must handle.
        let pebble = try start([
            "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=20", "pebble", "-config", settings, "-dnsserver", dns,
        ])
        (self.folder, programs) = (folder, [names, pebble])
        directoryURL = "https://127.0.0.1:\(ports[1])/dir"
        try await eventually {
            let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
            guard text.contains("ACME directory available") else { return "pebble did not start: \(text)" }
            // It says so before it listens.
            do {
                let connection = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: ports[1]).get()
                try await connection.close()
                return nil
            } catch {
                return "pebble does not listen: \(error)"
            }
        }
    }

    deinit {
        for program in programs { kill(program.id, SIGKILL) }
        try? FileManager.default.removeItem(atPath: folder)
    }
}
