import Crypto
import Foundation
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing
import Wire

@testable import RTC
@testable import Server

/// `confab doctor` against servers, a proxy and a TURN server that have the faults that it must find.
@Suite("The doctor over sockets", .ownThreads, .timeLimit(.minutes(2))) struct DoctorTests {
    private func outside(_ url: String) async throws -> DoctorReport { try await #require(Doctor(url: url)).run() }

    private func finding(_ check: DoctorFinding.Check, _ report: DoctorReport) throws -> DoctorFinding {
        try #require(report.findings.first { $0.check == check }, "\(report.text)")
    }

    @Test("a server without faults passes, with its media ports and its clock")
    func healthy() async throws {
        try await TestServer.run({ $0.media.address = .loopback }) { server in
            let report = try await outside("http://127.0.0.1:\(server.port)")
            #expect(!report.hasFailed, "\(report.text)")
            for check in [DoctorFinding.Check.tcp, .http, .ready, .version, .clock, .websocket, .mediaUDP, .mediaTCP] {
                #expect(try finding(check, report).outcome == .passed, "\(report.text)")
            }
            #expect(try finding(.mediaAddress, report).seen.contains("127.0.0.1"))
            #expect(try finding(.turn, report).outcome == .skipped)
        }
    }

    @Test("a wrong address for media is found, and the fix names the right one")
    func wrongAddress() async throws {
        // An address for documentation, which no machine has (RFC 5737).
        try await TestServer.run({ $0.media.address = IPAddress("192.0.2.1") }) { server in
            let report = try await outside("http://127.0.0.1:\(server.port)")
            let finding = try finding(.mediaAddress, report)
            #expect(finding.outcome == .failed && finding.seen.contains("192.0.2.1"), "\(report.text)")
            #expect(finding.fix?.contains("media.address to 127.0.0.1") == true)
        }
    }

    @Test("an expired certificate is found, and the rest is checked nevertheless")
    func expired() async throws {
        let files = try CertificateFiles(CertificateFiles.Pair(age: 500 * 86400))
        try await TestServer.run({ configuration in
            configuration.media.address = .loopback
            configuration.tls = files.configuration.tls
        }) { server in
            let report = try await outside("https://127.0.0.1:\(server.port)")
            let finding = try finding(.tls, report)
            #expect(finding.outcome == .failed && finding.seen.contains("expired"), "\(report.text)")
            #expect(finding.fix?.contains("Renew") == true)
            #expect(try self.finding(.websocket, report).outcome == .passed, "\(report.text)")
        }
    }

    @Test("a certificate from an authority that this machine does not know is found")
    func untrusted() async throws {
        let files = try CertificateFiles()
        try await TestServer.run({ $0.tls = files.configuration.tls }) { server in
            let report = try await outside("https://127.0.0.1:\(server.port)")
            let finding = try finding(.tls, report)
            #expect(finding.outcome == .failed && finding.seen.contains("authority"), "\(report.text)")
        }
    }

    @Test("plain HTTP where HTTPS is expected is found")
    func plain() async throws {
        try await TestServer.run { server in
            let report = try await outside("https://127.0.0.1:\(server.port)")
            let finding = try finding(.tls, report)
            #expect(finding.outcome == .failed && finding.seen.contains("handshake"), "\(report.text)")
        }
    }

    @Test("a proxy that drops Upgrade is found")
    func upgradeDropped() async throws {
        try await TestServer.run { server in
            let proxy = try await DroppingProxy(to: server.port)
            let report = try await outside("http://127.0.0.1:\(proxy.port)")
            await proxy.stop()
            let finding = try finding(.websocket, report)
            #expect(finding.outcome == .failed && finding.seen.contains("without Upgrade"), "\(report.text)")
            #expect(finding.fix?.contains("Upgrade and Connection") == true)
            #expect(try self.finding(.http, report).outcome == .passed, "\(report.text)")
        }
    }

    @Test("a TURN server that knows another secret rejects the credentials, and one with the same secret accepts them")
    func turn() async throws {
        for (secret, isRight) in [("the same secret", true), ("another secret", false)] {
            let relay = try await SmallTURNServer(secret: secret)
            try await TestServer.run({ configuration in
                configuration.ice.turnServers = ["turn:127.0.0.1:\(relay.port)?transport=udp"]
                configuration.ice.turnSecret = SecretText("the same secret")
            }) { server in
                let report = try await outside("http://127.0.0.1:\(server.port)")
                let finding = try finding(.turn, report)
                #expect(
                    isRight ? finding.outcome == .passed : finding.seen.contains("rejects the credentials"),
                    "\(report.text)")
                #expect(isRight || finding.outcome == .failed && finding.fix?.contains("ice.turnSecret") == true)
                #expect(!report.json.contains("the same secret"))
            }
            await relay.stop()
        }
    }

    @Test("from inside, a full disk is found in the configuration's directory and in the running server")
    func fullDisk() async throws {
        try await TestServer.run({ $0.storage.minFreeSpace = .max }) { server in
            var configuration = ConfabConfiguration()
            configuration.dataDirectory = server.dataDirectory
            configuration.metrics.enabled = .never
            // More than any disk has.
            configuration.storage.minFreeSpace = .max
            let report = await Doctor(configuration: configuration).run()
            #expect(try finding(.disk, report).outcome == .failed, "\(report.text)")
            let ready = try finding(.ready, report)
            #expect(ready.outcome == .failed && ready.fix?.contains("Free space") == true, "\(report.text)")
            #expect(try finding(.server, report).outcome == .passed && report.hasFailed)
            #expect(try finding(.mediaUDP, report).outcome == .passed, "\(report.text)")
        }
    }

    @Test("without a server, a port that another program uses is found")
    func takenPort() async throws {
        let other = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(
            host: "127.0.0.1", port: 0
        )
        .get()
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = NSTemporaryDirectory() + "confab-none-\(UUID().uuidString)"
        configuration.port = try #require(other.localAddress?.port)
        configuration.media.port = 0
        configuration.metrics.enabled = .never
        let report = await Doctor(configuration: configuration).run()
        try await other.close().get()
        #expect(try finding(.server, report).outcome == .warning, "\(report.text)")
        let ports = try finding(.ports, report)
        #expect(ports.outcome == .failed && ports.seen.contains("TCP \(configuration.port)"), "\(report.text)")
    }

    @Test("a database that does not exist is found")
    func database() async throws {
        var configuration = ConfabConfiguration()
        configuration.dataDirectory = NSTemporaryDirectory() + "confab-none-\(UUID().uuidString)"
        (configuration.port, configuration.media.port) = (0, 0)
        configuration.metrics.enabled = .never
        configuration.storage.url = SecretText("postgresql://nobody:hidden@127.0.0.1:1/none")
        configuration.cluster.node = 1
        configuration.cluster.redis = [SecretText("redis://nobody:hidden@127.0.0.1:1")]
        let report = await Doctor(configuration: configuration).run()
        #expect(try finding(.postgresql, report).outcome == .failed, "\(report.text)")
        #expect(try finding(.redis, report).outcome == .failed, "\(report.text)")
        #expect(!report.text.contains("hidden"))
    }

    @Test("a host that refuses connections is found without waiting")
    func refused() async throws {
        let port = try RefusingPort()
        let report = try await outside("https://127.0.0.1:\(port.number)")
        withExtendedLifetime(port) {}
        #expect(try finding(.tcp, report).seen.contains("nothing listens") && report.hasFailed, "\(report.text)")
    }

    @Test("what does not answer is given up, whether it blocks a thread or waits")
    func limits() async throws {
        let release = DispatchSemaphore(value: 0)
        #expect(await ProbeLimit.blocking(.milliseconds(20)) { release.wait() } == nil)
        release.signal()
        // A stream that never has an element ends only when its reader is canceled.
        let (silence, end) = AsyncStream.makeStream(of: Never.self)
        defer { end.finish() }
        let answer: Void? = await ProbeLimit.within(.milliseconds(20)) { for await _ in silence {} }
        #expect(answer == nil)
        #expect(await ProbeLimit.blocking(.seconds(60)) { 7 } == 7)
    }

    @Test("heads of responses are parsed, and others refused")
    func heads() throws {
        func head(_ text: String) -> HTTPResponseHeadText? { HTTPResponseHeadText(Array(text.utf8)) }
        let good = try #require(head("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nA: 1\r\na: 2\r\n\r\nrest"))
        #expect(good.status == 101 && good.headers == ["upgrade": "websocket", "a": "1, 2"] && good.length == 58)
        for text in [
            "", "HTTP/1.1 101", "\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 99999 x\r\n\r\n", "SSH-2.0\r\n\r\n",
        ] {
            #expect(head(text) == nil, "\(text)")
        }
    }

    @Test("values are found in the text of metrics")
    func metrics() {
        let text = "# TYPE process_max_fds gauge\nprocess_max_fds 1024\nprocess_open_fds 3.1e1\nprocess_x NaN\n"
        #expect(MachineProbe.value(of: "process_max_fds", in: text) == 1024)
        #expect(MachineProbe.value(of: "process_open_fds", in: text) == 31)
        #expect(
            MachineProbe.value(of: "process_x", in: text) == nil && MachineProbe.value(of: "process", in: text) == nil)
    }
}

/// A proxy that forwards requests without `Upgrade` and `Connection`, as proxies do that were not configured for WebSockets.
private final class DroppingProxy: Sendable {
    private let server: any Channel
    let port: Int

    init(to port: Int) async throws {
        server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.pipeline.addHandler(Forwarding(to: port))
            }
            .bind(host: "127.0.0.1", port: 0).get()
        self.port = try #require(server.localAddress?.port)
    }

    func stop() async { try? await server.close().get() }

    /// Changes the head of the request, and passes all else in both directions. Used only on the connection's event loop.
    private final class Forwarding: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = ByteBuffer

        private let target: Int
        private var head = ""
        private var upstream: (any Channel)?

        init(to target: Int) { self.target = target }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = unwrapInboundIn(data)
            if let upstream { return upstream.writeAndFlush(bytes, promise: nil) }
            head += String(buffer: bytes)
            guard head.contains("\r\n\r\n") else { return }
            let lines = head.components(separatedBy: "\r\n").filter {
                !$0.lowercased().hasPrefix("upgrade:") && !$0.lowercased().hasPrefix("connection:")
            }
            let client = context.channel
            ClientBootstrap(group: context.eventLoop)
                .channelInitializer { $0.pipeline.addHandler(Returning(to: client)) }
                .connect(host: "127.0.0.1", port: target)
                .whenSuccess { channel in
                    self.upstream = channel
                    channel.writeAndFlush(ByteBuffer(string: lines.joined(separator: "\r\n")), promise: nil)
                }
        }

        func channelInactive(context: ChannelHandlerContext) { upstream?.close(promise: nil) }
    }

    /// Passes what the server answers to the client.
    private final class Returning: ChannelInboundHandler, @unchecked Sendable {
        typealias InboundIn = ByteBuffer

        private let client: any Channel

        init(to client: any Channel) { self.client = client }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            client.writeAndFlush(unwrapInboundIn(data), promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { client.close(promise: nil) }
    }
}

/// A TURN server that checks credentials derived from a shared secret, and relays nothing.
private final class SmallTURNServer: Sendable {
    private let channel: any Channel
    let port: Int

    init(secret: String) async throws {
        channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { $0.pipeline.addHandler(Answering(secret: secret)) }
            .bind(host: "127.0.0.1", port: 0).get()
        port = try #require(channel.localAddress?.port)
    }

    func stop() async { try? await channel.close().get() }

    /// Answers one datagram at a time.
    private final class Answering: ChannelInboundHandler, Sendable {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        typealias OutboundOut = AddressedEnvelope<ByteBuffer>

        private let secret: String

        init(secret: String) { self.secret = secret }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = unwrapInboundIn(data)
            let answer = answer(to: Array(envelope.data.readableBytesView))
            guard !answer.isEmpty else { return }
            context.writeAndFlush(
                wrapOutboundOut(
                    AddressedEnvelope(remoteAddress: envelope.remoteAddress, data: ByteBuffer(bytes: answer))),
                promise: nil)
        }

        private func answer(to request: [UInt8]) -> [UInt8] {
            request.withUnsafeBytes { bytes in
                guard let message = STUNMessage(bytes), message.class == .request else { return [] }
                guard let key = key(of: message), message.isAuthentic(key) else {
                    return STUN.message(.failure, method: message.method, transaction: message.transaction) { writer in
                        writer.error(401)
                        writer.raw(STUN.Attribute.realm, Array("example.org".utf8))
                        writer.raw(STUN.Attribute.nonce, Array("nonce".utf8))
                    }
                }
                return STUN.message(.success, method: message.method, transaction: message.transaction, key: key) {
                    writer in
                    // 8.8.8.8, because an address for documentation would get a warning.
                    writer.raw(STUN.Attribute.xorRelayedAddress, [0, 1, 0x21, 0x12, 0x29, 0x1a, 0xac, 0x4a])
                }
            }
        }

        /// The key of a user whose password is derived from the secret; nil if the message names no user.
        private func key(of message: STUNMessage) -> [UInt8]? {
            guard let name = message.username.map({ String(decoding: $0, as: UTF8.self) }), message.hasIntegrity else {
                return nil
            }
            let code = HMAC<Insecure.SHA1>.authenticationCode(
                for: Array(name.utf8), using: SymmetricKey(data: Array(secret.utf8)))
            let password = Data(code).base64EncodedString()
            return Array(Insecure.MD5.hash(data: Array("\(name):example.org:\(password)".utf8)))
        }
    }
}
