import Crypto
import Foundation

/// A frame in which a hostile client can set every bit (RFC 6455 §5.2).
struct RawFrame: Sendable {
    /// The form in which the length is encoded. The standard requires the shortest one.
    enum LengthEncoding: Sendable { case shortest, sixteenBits, sixtyFourBits }

    var opcode: UInt8
    var payload: [UInt8]
    var final = true
    /// The three reserved bits: 4 is RSV1, 2 is RSV2, 1 is RSV3.
    var rsv: UInt8 = 0
    var masked = true
    /// An incorrect value for the length field.
    var claimedLength: UInt64?
    var lengthEncoding = LengthEncoding.shortest
    var mask: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]

    init(
        opcode: UInt8, payload: [UInt8] = [], final: Bool = true, rsv: UInt8 = 0, masked: Bool = true,
        claimedLength: UInt64? = nil, lengthEncoding: LengthEncoding = .shortest
    ) {
        (self.opcode, self.payload, self.final, self.rsv) = (opcode, payload, final, rsv)
        (self.masked, self.claimedLength, self.lengthEncoding) = (masked, claimedLength, lengthEncoding)
    }

    static func text(_ text: String, final: Bool = true) -> RawFrame { Self.text(Array(text.utf8), final: final) }
    static func text(_ bytes: [UInt8], final: Bool = true) -> RawFrame {
        RawFrame(opcode: 1, payload: bytes, final: final)
    }
    static func continuation(_ bytes: [UInt8], final: Bool) -> RawFrame {
        RawFrame(opcode: 0, payload: bytes, final: final)
    }
    static func continuation(_ text: String, final: Bool) -> RawFrame {
        Self.continuation(Array(text.utf8), final: final)
    }
    static func ping(_ payload: [UInt8] = []) -> RawFrame { RawFrame(opcode: 9, payload: payload) }
    static func pong(_ payload: [UInt8] = []) -> RawFrame { RawFrame(opcode: 10, payload: payload) }
    static func close(_ code: UInt16, _ reason: [UInt8] = []) -> RawFrame {
        RawFrame(opcode: 8, payload: [UInt8(code >> 8), UInt8(code & 0xFF)] + reason)
    }

    var bytes: [UInt8] {
        let length = claimedLength ?? UInt64(payload.count)
        let maskBit: UInt8 = masked ? 0x80 : 0
        var bytes = [(final ? 0x80 : 0) | (rsv & 7) << 4 | (opcode & 15)]
        switch (lengthEncoding, length) {
        case (.shortest, 0...125): bytes.append(maskBit | UInt8(length))
        case (.shortest, 126...0xFFFF), (.sixteenBits, _): bytes += [maskBit | 126] + Self.bigEndian(length, count: 2)
        default: bytes += [maskBit | 127] + Self.bigEndian(length, count: 8)
        }
        guard masked else { return bytes + payload }
        return bytes + mask
            + [UInt8](unsafeUninitializedCapacity: payload.count) { buffer, count in
                payload.withUnsafeBufferPointer { payload in
                    for index in payload.indices { buffer[index] = payload[index] ^ mask[index & 3] }
                }
                count = payload.count
            }
    }

    private static func bigEndian(_ value: UInt64, count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
    }
}

/// A frame from the server.
struct ServerFrame: Equatable, Sendable {
    var opcode: UInt8
    var fin: Bool
    var rsv: UInt8
    var payload: [UInt8]

    var text: String { String(decoding: payload, as: UTF8.self) }
    /// 1005 if the frame has no code; nil if it is not a close frame.
    var closeCode: UInt16? {
        guard opcode == 8 else { return nil }
        return payload.count < 2 ? 1005 : UInt16(payload[0]) << 8 | UInt16(payload[1])
    }
}

/// A WebSocket client that can break every rule of the protocol, and checks that the server breaks none.
final class RawWebSocket: @unchecked Sendable {
    let socket: RawSocket
    let answer: HTTPResponse
    /// The code of the server's close frame, or 1006 if there was none.
    private(set) var closeCode: UInt16?

    private init(_ socket: RawSocket, _ answer: HTTPResponse) { (self.socket, self.answer) = (socket, answer) }

    deinit { socket.close() }

    static let sampleKey = "dGhlIHNhbXBsZSBub25jZQ=="

    /// An upgrade request (RFC 6455 §4.1).
    static func request(
        path: String = "/v1/socket", subprotocol: String? = "confab.v1", headers: [(String, String)] = []
    ) -> String {
        var head = "GET \(path) HTTP/1.1\r\nHost: confab.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        head += "Sec-WebSocket-Key: \(sampleKey)\r\nSec-WebSocket-Version: 13\r\n"
        if let subprotocol { head += "Sec-WebSocket-Protocol: \(subprotocol)\r\n" }
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        return head + "\r\n"
    }

    static func open(
        port: Int, path: String = "/v1/socket", subprotocol: String? = "confab.v1", headers: [(String, String)] = [],
        from source: String? = nil, receiveBuffer: Int? = nil
    ) throws -> RawWebSocket {
        let socket = try RawSocket(port: port, from: source, receiveBuffer: receiveBuffer)
        try socket.send(request(path: path, subprotocol: subprotocol, headers: headers))
        return try accept(on: socket)
    }

    /// Opens a connection, sends `hello` and waits for the welcome.
    static func openWelcomed(port: Int, from source: String? = nil) throws -> RawWebSocket {
        let line = try open(port: port, from: source)
        try line.send(text: #"{"type":"hello","version":1}"#)
        guard let answer = try line.readText(), answer.contains("welcome") else { throw TimedOut("no welcome") }
        return line
    }

    /// Reads and checks the server's handshake (RFC 6455 §4.2.2).
    static func accept(on socket: RawSocket) throws -> RawWebSocket {
        let answer = try socket.readAnswer()
        let digest = Insecure.SHA1.hash(data: Data((sampleKey + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        guard answer.status == 101, answer["Sec-WebSocket-Accept"] == Data(digest).base64EncodedString(),
            answer["Upgrade"]?.lowercased() == "websocket", answer["Connection"]?.lowercased() == "upgrade"
        else { throw TimedOut("not upgraded: \(answer)") }
        return RawWebSocket(socket, answer)
    }

    // MARK: Sending

    func send(frame: RawFrame) throws { try socket.send(frame.bytes) }
    func send(text: String) throws { try send(frame: .text(text)) }
    func send(text: [UInt8]) throws { try send(frame: .text(text)) }
    func close(_ code: UInt16 = 1000) throws { try send(frame: .close(code)) }

    // MARK: Receiving

    /// Returns the next frame, or nil at the end of the connection. Throws if the frame is one that a server must not
    /// send.
    func read(within limit: Duration = .seconds(10)) throws -> ServerFrame? {
        let deadline = ContinuousClock.now + limit
        func more(_ count: Int) throws -> [UInt8]? {
            let bytes = try socket.receive(exactly: count, within: max(.zero, deadline - ContinuousClock.now))
            if bytes == nil { closeCode = closeCode ?? 1006 }
            return bytes
        }
        guard let head = try more(2) else { return nil }
        var length = Int(head[1] & 127)
        if head[1] & 0x80 != 0 { throw TimedOut("the server masked a frame (RFC 6455 §5.1)") }
        if length >= 126 {
            guard let long = try more(length == 126 ? 2 : 8) else { return nil }
            length = long.reduce(0) { $0 << 8 | Int($1) }
        }
        guard let payload = try more(length) else { return nil }
        let frame = ServerFrame(opcode: head[0] & 15, fin: head[0] & 0x80 != 0, rsv: head[0] >> 4 & 7, payload: payload)
        guard frame.rsv == 0 else { throw TimedOut("the server sent reserved bits without an extension") }
        if let code = frame.closeCode { closeCode = closeCode ?? code }
        return frame
    }

    /// Answers pings and returns the next text message, or nil when the server closes.
    func readText(within limit: Duration = .seconds(10)) throws -> String? {
        let deadline = ContinuousClock.now + limit
        while let frame = try read(within: max(.zero, deadline - ContinuousClock.now)) {
            switch frame.opcode {
            case 1: return frame.text
            case 8: return nil
            // The server may already be gone; the next read detects it.
            case 9: socket.sendWhatGoes(RawFrame.pong(frame.payload).bytes)
            default: break
            }
        }
        return nil
    }

    /// Reads until the server closes and returns the code; 1006 if there was none.
    @discardableResult
    func readClose(within limit: Duration = .seconds(10)) throws -> UInt16 {
        let deadline = ContinuousClock.now + limit
        while closeCode == nil, try readText(within: max(.zero, deadline - ContinuousClock.now)) != nil {}
        return closeCode ?? 1006
    }
}
