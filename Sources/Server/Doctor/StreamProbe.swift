import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import SwiftASN1
import Wire
import X509

/// A TCP connection, with TLS if wanted, for a few messages.
enum StreamProbe {
    /// How long to wait for a connection. A lost SYN is sent again after 1 and 3 s.
    static let connectTimeout = Duration.seconds(5)

    /// How to use TLS.
    struct TLS: Sendable {
        /// The name in the URL.
        var host: String
        /// Whether to verify the certificate and the name.
        var verifies: Bool
        /// Called with the certificates that the server sends, if they are not verified.
        var onChain: (@Sendable ([NIOSSLCertificate]) -> Void)?

        fileprivate func handler() throws -> NIOSSLClientHandler {
            var configuration = TLSConfiguration.makeClientConfiguration()
            configuration.certificateVerification = verifies ? .fullVerification : .noHostnameVerification
            configuration.applicationProtocols = ["http/1.1"]
            let context = try NIOSSLContext(configuration: configuration)
            // SNI does not allow addresses.
            let name = IPAddress(host) == nil ? host : nil
            guard !verifies else { return try NIOSSLClientHandler(context: context, serverHostname: name) }
            let onChain = onChain
            return try NIOSSLClientHandler(
                context: context, serverHostname: name,
                customVerificationCallback: { chain, promise in
                    onChain?(chain)
                    promise.succeed(.certificateVerified)
                })
        }
    }

    /// Connects, runs `body`, and closes the connection.
    static func open<Value: Sendable>(
        _ address: IPAddress, port: Int, tls: TLS? = nil,
        _ body: @Sendable (inout StreamReader, NIOAsyncChannelOutboundWriter<ByteBuffer>) async throws -> Value
    ) async throws -> Value {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connectTimeout(TimeAmount(connectTimeout))
            .connect(to: SocketAddress(ipAddress: address.description, port: port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(tls.handler()) }
                    return try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            var reader = StreamReader(inbound.makeAsyncIterator())
            return try await body(&reader, outbound)
        }
    }

    /// Translates an error of a connection.
    static func outcome(of error: any Error) -> ConnectObservation.Outcome {
        if let error = error as? IOError {
            if error.errnoCode == ECONNREFUSED { return .refused }
            if error.errnoCode == ETIMEDOUT { return .timedOut }
            return .failed(String(cString: strerror(error.errnoCode)))
        }
        if case .connectTimeout? = error as? ChannelError { return .timedOut }
        return .failed("\(error)")
    }

    /// Connects and closes the connection at once.
    static func connect(_ address: IPAddress, port: Int) async -> ConnectObservation {
        let outcome = await ProbeLimit.within(connectTimeout + .seconds(1)) { () -> ConnectObservation.Outcome in
            do {
                try await open(address, port: port) { _, _ in }
                return .connected
            } catch {
                return self.outcome(of: error)
            }
        }
        return ConnectObservation(address: address, outcome: outcome ?? .timedOut)
    }
}

/// Reads what arrives on a connection.
struct StreamReader {
    /// The other side sent more than any answer has.
    struct TooMuch: Error, CustomStringConvertible { var description: String { "the answer is too long" } }

    /// The maximum number of bytes that are not used yet. A session description can have 256 KiB.
    private static let maxBytes = 1 << 20

    private var iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    /// What has arrived and is not used yet.
    private(set) var bytes: [UInt8] = []

    fileprivate init(_ iterator: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator) { self.iterator = iterator }

    /// Waits for more bytes. Returns false if the other side has closed the connection.
    mutating func more() async throws -> Bool {
        guard let next = try await iterator.next() else { return false }
        bytes += next.readableBytesView
        guard bytes.count <= Self.maxBytes else { throw TooMuch() }
        return true
    }

    /// Removes the first bytes and returns them.
    mutating func take(_ count: Int) -> [UInt8] {
        let taken = Array(bytes.prefix(count))
        bytes.removeFirst(taken.count)
        return taken
    }
}

extension CertificateFacts {
    /// Returns nil if the certificate cannot be read.
    init?(_ certificate: NIOSSLCertificate) {
        guard let bytes = try? certificate.toDERBytes(), let parsed = try? Certificate(derEncoded: bytes) else {
            return nil
        }
        func time(_ date: Date) -> Timestamp {
            // Far outside of this range, a certificate is valid forever or never.
            let seconds = min(max(date.timeIntervalSince1970, -1e12), 1e12)
            return Timestamp(milliseconds: Int64(seconds * 1000))
        }
        let names = (try? parsed.extensions.subjectAlternativeNames) ?? SubjectAlternativeNames()
        self.init(
            subject: DoctorVerdicts.printable("\(parsed.subject)"),
            issuer: DoctorVerdicts.printable("\(parsed.issuer)"),
            notBefore: time(parsed.notValidBefore), notAfter: time(parsed.notValidAfter),
            names: names.compactMap { name -> String? in
                switch name {
                case .dnsName(let name): DoctorVerdicts.printable(name)
                case .ipAddress(let bytes): IPAddress(bytes: bytes.bytes)?.description
                default: nil
                }
            })
    }
}
