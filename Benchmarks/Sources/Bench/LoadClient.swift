import NIOCore
import NIOPosix

/// One client of `confab.v1` that costs the machine as little as it can: the servers are what is measured, and the load
/// runs on the same cores. So it frames by itself, masks with zeros (legal, and the server's work is the same), and of
/// each message reads the type and the numbers only.
///
/// Unchecked: used on its event loop alone.
final class LoadClient: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// What a message is, in as much as a load needs to know.
    struct Heard {
        var type: Substring
        var text: Substring
    }

    private enum State {
        case upgrading, open, closed
    }

    private let port: Int
    private let opened: EventLoopPromise<Void>
    private var state = State.upgrading
    private var context: ChannelHandlerContext?
    private var unread = ByteBuffer()
    private var sent: UInt64 = 0
    private var received: UInt64 = 0
    private var unacknowledged = 0
    /// Called with each message; for the benchmark that runs at present.
    var onMessage: ((LoadClient, Heard) -> Void)?
    /// Called when the line ends before the benchmark ended it.
    var onEnd: ((String) -> Void)?
    /// Which of a crowd this is.
    private(set) var tag = 0

    init(port: Int, opened: EventLoopPromise<Void>) {
        self.port = port
        self.opened = opened
    }

    /// Opens a socket; says nothing yet. Clients come from addresses of their own, as people do: all of 127.0.0.0/8
    /// is this machine, and a server counts what comes from one address.
    static func connect(port: Int, number: Int, on loop: any EventLoop) -> EventLoopFuture<LoadClient> {
        let opened = loop.makePromise(of: Void.self)
        let client = LoadClient(port: port, opened: opened)
        client.tag = number
        let address = Result {
            try SocketAddress(ipAddress: "127.1.\(number / 200 % 200).\(number % 200 + 1)", port: 0)
        }
        return loop.makeCompletedFuture(address).flatMap { address in
            client.connect(from: address, on: loop)
        }
        .flatMapError { error in
            opened.fail(error)
            return loop.makeFailedFuture(error)
        }
        .flatMap { opened.futureResult }
        .map { client }
    }

    private func connect(from address: SocketAddress, on loop: any EventLoop) -> EventLoopFuture<Void> {
        ClientBootstrap(group: loop)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
            }
            .bind(to: address)
            .connect(host: "127.0.0.1", port: port)
            .map { _ in }
    }

    // MARK: Saying

    /// An unnumbered message.
    func sayUnnumbered(_ json: String) { write(opcode: 1, Array(json.utf8)) }

    /// A numbered message: `members` is what follows the numbers.
    func say(_ type: StaticString, _ members: String = "") {
        sent += 1
        unacknowledged = 0
        sayUnnumbered(
            "{\"type\":\"\(type)\",\"seq\":\(sent),\"ack\":\(received)\(members.isEmpty ? "" : "," + members)}")
    }

    func end() {
        state = .closed
        context?.close(promise: nil)
    }

    private func write(opcode: UInt8, _ payload: some Collection<UInt8>) {
        guard let context, state != .closed else { return }
        var frame = context.channel.allocator.buffer(capacity: payload.count + 14)
        frame.writeInteger(0x80 | opcode)
        if payload.count < 126 {
            frame.writeInteger(0x80 | UInt8(payload.count))
        } else {
            frame.writeInteger(UInt8(0xFE))
            frame.writeInteger(UInt16(payload.count))
        }
        frame.writeInteger(UInt32(0))
        frame.writeBytes(payload)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    // MARK: Hearing

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        let request = """
            GET /v1/socket HTTP/1.1\r
            Host: 127.0.0.1:\(port)\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
            Sec-WebSocket-Protocol: confab.v1\r
            \r

            """
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var data = unwrapInboundIn(data)
        unread.writeBuffer(&data)
        if state == .upgrading, !readUpgrade() { return }
        while state == .open, readFrame() {}
        unread.discardReadBytes()
    }

    func channelInactive(context: ChannelHandlerContext) { ended("the server closed the line") }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { ended("\(error)") }

    private func ended(_ reason: String) {
        if state == .upgrading { opened.fail(Failure(description: reason)) }
        if state == .open { onEnd?(reason) }
        end()
        context = nil
    }

    /// Whether the server's answer is here and was the one wanted.
    private func readUpgrade() -> Bool {
        let bytes = unread.readableBytesView
        guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: "\r\n\r\n".utf8) }) else { return false }
        guard bytes.starts(with: "HTTP/1.1 101".utf8) else {
            ended("no upgrade: \(String(decoding: bytes.prefix(64), as: UTF8.self))")
            return false
        }
        unread.moveReaderIndex(to: end + 4)
        state = .open
        opened.succeed()
        return true
    }

    /// Reads one frame if all of it is here.
    private func readFrame() -> Bool {
        let start = unread.readerIndex
        guard let opcode = unread.readInteger(as: UInt8.self), let short = unread.readInteger(as: UInt8.self),
            let length = short < 126 ? Int(short) : unread.readInteger(as: UInt16.self).map({ Int($0) }),
            let payload = unread.readSlice(length: length)
        else {
            unread.moveReaderIndex(to: start)
            return false
        }
        switch opcode & 0x0F {
        case 1: receive(Substring(decoding: payload.readableBytesView, as: UTF8.self))
        case 9: write(opcode: 10, payload.readableBytesView)
        case 8: ended("closed: \(payload.getInteger(at: payload.readerIndex, as: UInt16.self) ?? 1005)")
        default: break
        }
        return true
    }

    private func receive(_ text: Substring) {
        // Both servers write the type first and the numbers next.
        let type = Self.member("{\"type\":\"", of: text).prefix { $0 != UInt8(ascii: "\"") }
        if let seq = Self.seq(of: text) {
            received = seq
            unacknowledged += 1
            if unacknowledged >= 32 {
                sayUnnumbered("{\"type\":\"ack\",\"ack\":\(received)}")
                unacknowledged = 0
            }
        }
        onMessage?(self, Heard(type: Substring(type), text: text))
    }

    private static func member(_ prefix: StaticString, of text: Substring) -> Substring.UTF8View {
        text.utf8.dropFirst(prefix.utf8CodeUnitCount)
    }

    private static func seq(of text: Substring) -> UInt64? {
        guard let start = text.utf8.firstIndex(of: UInt8(ascii: ",")) else { return nil }
        let rest = text.utf8[start...]
        guard rest.starts(with: ",\"seq\":".utf8) else { return nil }
        return rest.dropFirst(7).prefix { $0 >= 0x30 && $0 <= 0x39 }.reduce(0) { $0 * 10 + UInt64($1 - 0x30) }
    }
}
