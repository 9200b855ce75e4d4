import AsyncHTTPClient
import CSockets
import Datagrams
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import RTC
import Signaling
import Wire

/// Looks at this machine as the server would use it.
struct MachineProbe: Sendable {
    /// How long a file system may take to answer.
    private static let limit = Duration.seconds(3)

    let configuration: ConfabConfiguration

    /// - Parameter metrics: the text of the running server's metrics; nil if no server runs, or it serves none.
    func observe(metrics: String?) async -> MachineObservation {
        var seen = MachineObservation(data: await space(of: configuration.dataDirectory))
        if configuration.recording.enabled, configuration.rules.routesMedia {
            seen.recordings = await space(of: configuration.recordingFolder)
            // Before the first recording, the folder does not exist, and it will be on the same disk.
            if seen.recordings?.free == nil, configuration.recording.folder == nil { seen.recordings = nil }
        }
        if let metrics, let limit = Self.value(of: "process_max_fds", in: metrics) {
            (seen.descriptorLimit, seen.isOfServer) = (limit, true)
            seen.openDescriptors = Self.value(of: "process_open_fds", in: metrics)
        } else {
            seen.descriptorLimit = Self.highestLimit
        }
        #if os(Linux)
        seen.receiveBuffer = Self.number(in: "/proc/sys/net/core/rmem_max")
        seen.sendBuffer = Self.number(in: "/proc/sys/net/core/wmem_max")
        let state = confab_clock_is_synchronized()
        seen.isClockSynchronized = state < 0 ? nil : state > 0
        #endif
        return seen
    }

    private func space(of directory: String) async -> MachineObservation.Space {
        let free = await ProbeLimit.blocking(Self.limit) { DiskSpace.freeBytes(of: directory) }
        return MachineObservation.Space(directory: directory, free: free ?? nil)
    }

    /// Returns the value of a metric without labels in the Prometheus text format.
    static func value(of name: String, in metrics: String) -> Int? {
        for line in metrics.split(whereSeparator: \.isNewline) where line.hasPrefix(name + " ") {
            return Double(line.dropFirst(name.count + 1)).flatMap { Int(exactly: $0.rounded()) }
        }
        return nil
    }

    /// The limit of descriptors to which a server raises its own when it is started here.
    private static var highestLimit: Int? {
        let limit = confab_descriptor_limit(1)
        return limit >= 0 ? Int(min(limit, 1 << 24)) : nil
    }

    private static func number(in file: String) -> Int? {
        guard let bytes = FileManager.default.contents(atPath: file) else { return nil }
        return Int(String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }

    // MARK: Findings that need files or sockets

    /// The addresses that a server would announce for media.
    func addresses() -> DoctorFinding {
        let media = configuration.media
        let local = (try? lanAddresses())?.map(\.address) ?? []
        do throws(MediaPlaneError) {
            let addresses = try MediaAddresses(
                configured: media.address, local: local, publicHost: configuration.publicURL.map(WebURLText.host),
                port: media.port, loops: media.loopCount)
            return DoctorVerdicts.addresses(addresses, error: nil)
        } catch {
            return DoctorVerdicts.addresses(nil, error: error.description)
        }
    }

    /// The certificate of the configuration; nil if it has none.
    func certificateFiles(now: Timestamp) -> DoctorFinding? {
        let acme = configuration.tls.certificate == nil ? ACMEFiles(configuration) : nil
        let ordered = acme?.certificatePath
        guard let path = configuration.tls.certificate ?? ordered, let key = configuration.tls.privateKey ?? ordered
        else { return nil }
        let isMissing = path == ordered && !FileManager.default.fileExists(atPath: path)
        let finding = isMissing ? nil : certificateFiles(path, key: key, now: now)
        guard let failure = acme?.failure() else { return finding }
        return DoctorVerdicts.certificateOrder(path, failure.event, fix: failure.advice, finding)
    }

    private func certificateFiles(_ path: String, key: String, now: Timestamp) -> DoctorFinding {
        do {
            let certificates = try NIOSSLCertificate.fromPEMFile(path)
            let context = TLSConfiguration.makeServerConfiguration(
                certificateChain: certificates.map { .certificate($0) },
                privateKey: .privateKey(try NIOSSLPrivateKey(file: key, format: .pem)))
            _ = try NIOSSLContext(configuration: context)
            let facts = certificates.first.flatMap { CertificateFacts($0) }
            return DoctorVerdicts.certificateFiles(path, facts, error: "it contains no certificate", now: now)
        } catch {
            return DoctorVerdicts.certificateFiles(path, nil, error: DoctorVerdicts.printable("\(error)"), now: now)
        }
    }

    /// Whether the server's ports can be opened. Call it only if no server uses them.
    func ports() async -> DoctorFinding {
        var taken: [(port: String, reason: String)] = []
        var names: [String] = []
        for port in [configuration.port, configuration.plainHTTPPort].compactMap({ $0 }) where port != 0 {
            names.append("TCP \(port)")
            if let reason = await Self.fault(listeningOn: port, of: configuration.host) {
                taken.append(("TCP \(port)", reason))
            }
        }
        if configuration.rules.routesMedia, configuration.media.port != 0 {
            let ports = MediaPorts(first: configuration.media.port, loops: configuration.media.loopCount)
            names.append("\(ports)")
            for port in ports.first...max(ports.first, min(ports.last, 65535)) {
                let address = IPAddress.anyIPv4.transportAddress(port: UInt16(clamping: port))
                if let reason = Self.fault({ () throws(SocketError) in try SocketOptions.datagram(address) }) {
                    taken.append(("UDP \(port)", reason))
                }
                guard port == ports.first else { continue }
                if let reason = Self.fault({ () throws(SocketError) in try SocketOptions.listener(address) }) {
                    taken.append(("TCP \(port)", reason))
                }
            }
        }
        return DoctorVerdicts.ports(names.joined(separator: ", "), taken: taken)
    }

    /// Listens on a port for a moment. Returns why that failed.
    private static func fault(listeningOn port: Int, of host: String) async -> String? {
        let reason = await ProbeLimit.within(limit) { () -> String? in
            do {
                let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                    .bind(host: host, port: port).get()
                try await channel.close().get()
                return nil
            } catch let error as IOError {
                return String(cString: strerror(error.errnoCode))
            } catch {
                return "\(error)"
            }
        }
        return reason ?? nil
    }

    /// Opens and closes a socket. Returns why that failed.
    private static func fault(_ open: () throws(SocketError) -> Int32) -> String? {
        do throws(SocketError) {
            close(try open())
            return nil
        } catch {
            return error.description
        }
    }
}
