/// Judges a client's WebSocket frames and puts fragments together (RFC 6455 §5 and §7), as a value. What stands before a
/// payload was read and judged by `FrameHeader`.
public struct FrameReader: Sendable {
    public enum Opcode: Equatable, Sendable {
        case continuation, text, binary, close, ping, pong, reserved
    }

    public struct Frame: Equatable, Sendable {
        public var opcode: Opcode
        public var isFinal: Bool
        public var hasReservedBits: Bool
        public var isMasked: Bool
        /// Unmasked.
        public var payload: [UInt8]

        public init(opcode: Opcode, isFinal: Bool, hasReservedBits: Bool, isMasked: Bool, payload: [UInt8]) {
            self.opcode = opcode
            self.isFinal = isFinal
            self.hasReservedBits = hasReservedBits
            self.isMasked = isMasked
            self.payload = payload
        }
    }

    public enum Output: Equatable, Sendable {
        case nothing
        case text([UInt8])
        case ping([UInt8])
        case pong
        /// The other end closes, with this code (1005 when it gave none).
        case close(UInt16)
        /// The other end broke the rules: close with this code.
        case violation(UInt16, String)
    }

    /// The largest message put together, in bytes.
    public let limit: Int
    private var message: [UInt8] = []
    private var isFragmented = false

    public init(limit: Int) { self.limit = limit }

    public mutating func read(_ frame: Frame) -> Output {
        guard frame.isMasked else { return .violation(1002, "client frames are masked") }
        guard !frame.hasReservedBits else { return .violation(1002, "no extension was agreed that uses reserved bits") }
        switch frame.opcode {
        case .reserved: return .violation(1002, "reserved opcode")
        case .ping, .pong, .close:
            guard frame.isFinal, frame.payload.count <= 125 else {
                return .violation(1002, "control frames are short and whole")
            }
            return control(frame)
        case .binary: return .violation(1003, "messages are text")
        case .text:
            guard !isFragmented else { return .violation(1002, "a message began inside another") }
            return append(frame)
        case .continuation:
            guard isFragmented else { return .violation(1002, "nothing to continue") }
            return append(frame)
        }
    }

    private func control(_ frame: Frame) -> Output {
        switch frame.opcode {
        case .ping: return .ping(frame.payload)
        case .pong: return .pong
        default: break
        }
        if frame.payload.isEmpty { return .close(1005) }
        guard frame.payload.count >= 2 else { return .violation(1002, "a close code has two bytes") }
        let code = UInt16(frame.payload[0]) << 8 | UInt16(frame.payload[1])
        guard Self.mayBeSent(code) else { return .violation(1002, "not a close code") }
        guard String(validating: frame.payload.dropFirst(2), as: UTF8.self) != nil else {
            return .violation(1007, "the close reason is not UTF-8")
        }
        return .close(code)
    }

    /// RFC 6455 §7.4: some codes are only ever reported, never sent; the unassigned are reserved.
    public static func mayBeSent(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    private mutating func append(_ frame: Frame) -> Output {
        guard message.count + frame.payload.count <= limit else { return .violation(1009, "the message is too large") }
        isFragmented = !frame.isFinal
        if frame.isFinal, message.isEmpty { return .text(frame.payload) }
        message += frame.payload
        guard frame.isFinal else { return .nothing }
        defer { message = [] }
        return .text(message)
    }
}
