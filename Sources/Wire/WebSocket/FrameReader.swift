/// Checks a client's WebSocket frames and assembles fragments into messages (RFC 6455 §5 and §7). Does no I/O. ``FrameHeader``
/// parses and checks the header that precedes the payload.
public struct FrameReader: Sendable {
    /// The kind of a frame (RFC 6455 §5.2).
    public enum Opcode: Equatable, Sendable {
        /// Another fragment of the current message.
        case continuation
        /// A text message, or its first fragment.
        case text
        /// A binary message, or its first fragment. Only Engine.IO uses binary messages.
        case binary
        /// The close handshake, with an optional code and reason.
        case close
        /// A request for a pong with the same payload.
        case ping
        /// The answer to a ping.
        case pong
        /// Any opcode that RFC 6455 does not define.
        case reserved
    }

    /// One frame as received from a client.
    public struct Frame: Equatable, Sendable {
        /// The kind of the frame.
        public var opcode: Opcode
        /// Whether this is the last fragment of its message (FIN).
        public var isFinal: Bool
        /// Whether RSV1, RSV2 or RSV3 is set. This is a violation, because no extension was negotiated.
        public var hasReservedBits: Bool
        /// Whether the frame was masked, as every client frame must be.
        public var isMasked: Bool
        /// The payload, already unmasked.
        public var payload: [UInt8]

        public init(opcode: Opcode, isFinal: Bool, hasReservedBits: Bool, isMasked: Bool, payload: [UInt8]) {
            self.opcode = opcode
            self.isFinal = isFinal
            self.hasReservedBits = hasReservedBits
            self.isMasked = isMasked
            self.payload = payload
        }
    }

    /// The result of handling a frame.
    public enum Output: Equatable, Sendable {
        /// The frame is a fragment; the message is not complete yet.
        case nothing
        /// A complete message. The reader does not check that it is UTF-8.
        case text([UInt8])
        /// A complete binary message.
        case binary([UInt8])
        /// A ping. Answer with a pong that contains the same payload.
        case ping([UInt8])
        /// A pong, with any payload.
        case pong
        /// The client closes the connection with this code (1005 if the client sent none).
        case close(UInt16)
        /// The client violated the protocol. Close the connection with this code and reason.
        case violation(UInt16, String)
    }

    /// The maximum size of a message with all its fragments, in bytes. A longer message is a violation with code 1009.
    public let limit: Int
    /// Whether binary messages are accepted. If not, a binary message is a violation with code 1003.
    public let acceptsBinary: Bool
    private var message: [UInt8] = []
    private var isFragmented = false
    private var isBinary = false

    public init(limit: Int, acceptsBinary: Bool = false) { (self.limit, self.acceptsBinary) = (limit, acceptsBinary) }

    /// Processes the next frame.
    public mutating func read(_ frame: Frame) -> Output {
        guard frame.isMasked else { return .violation(1002, "client frames must be masked") }
        guard !frame.hasReservedBits else { return .violation(1002, "reserved bits must be 0 without an extension") }
        switch frame.opcode {
        case .reserved: return .violation(1002, "reserved opcode")
        case .ping, .pong, .close:
            guard frame.isFinal, frame.payload.count <= 125 else {
                return .violation(1002, "control frames must not be fragmented or exceed 125 bytes")
            }
            return control(frame)
        case .binary where !acceptsBinary: return .violation(1003, "only text messages are supported")
        case .text, .binary:
            guard !isFragmented else { return .violation(1002, "a new message began before the last one ended") }
            isBinary = frame.opcode == .binary
            return append(frame)
        case .continuation:
            guard isFragmented else { return .violation(1002, "continuation frame without a message") }
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
        guard frame.payload.count >= 2 else { return .violation(1002, "a close code must have two bytes") }
        let code = UInt16(frame.payload[0]) << 8 | UInt16(frame.payload[1])
        guard Self.mayBeSent(code) else { return .violation(1002, "invalid close code") }
        guard String(validating: frame.payload.dropFirst(2), as: UTF8.self) != nil else {
            return .violation(1007, "the close reason must be UTF-8")
        }
        return .close(code)
    }

    /// Whether an endpoint may send this close code (RFC 6455 §7.4). Some codes are only for local use, and unassigned codes
    /// are reserved.
    public static func mayBeSent(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }

    private mutating func append(_ frame: Frame) -> Output {
        guard message.count + frame.payload.count <= limit else { return .violation(1009, "the message is too large") }
        isFragmented = !frame.isFinal
        if frame.isFinal, message.isEmpty { return isBinary ? .binary(frame.payload) : .text(frame.payload) }
        message += frame.payload
        guard frame.isFinal else { return .nothing }
        defer { message = [] }
        return isBinary ? .binary(message) : .text(message)
    }
}
