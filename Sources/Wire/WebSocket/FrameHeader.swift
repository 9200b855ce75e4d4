/// The header of a WebSocket frame (RFC 6455 §5.2).
public struct FrameHeader: Equatable, Sendable {
    /// The result of parsing a header.
    public enum Outcome: Equatable, Sendable {
        /// The header is not complete yet.
        case incomplete
        /// The header is complete, but the payload may not have arrived yet.
        case header(FrameHeader)
        /// The client violated the protocol. Close the connection with this code and reason.
        case violation(UInt16, String)
    }

    /// The kind of the frame.
    public var opcode: FrameReader.Opcode
    /// Whether this is the last fragment of its message (FIN).
    public var isFinal: Bool
    /// The four bytes of the masking key; nil if the frame is not masked.
    public var mask: [UInt8]?
    /// Length of the payload in bytes.
    public var length: Int
    /// Length of the header in bytes.
    public var size: Int

    /// Parses a header at the start of `bytes`. Reports only violations that must be noticed before the payload arrives.
    /// ``FrameReader`` reports all others.
    ///
    /// - Parameter maxLength: the maximum length of the payload in bytes. A longer payload is a violation with code 1009.
    public static func parse(_ bytes: some RandomAccessCollection<UInt8>, maxLength: Int) -> Outcome {
        guard bytes.count >= 2 else { return .incomplete }
        let byte = { (offset: Int) in bytes[bytes.index(bytes.startIndex, offsetBy: offset)] }
        let (first, second) = (byte(0), byte(1))
        let isMasked = second & 0x80 != 0
        let short = Int(second & 0x7F)
        let lengthSize = short == 126 ? 2 : short == 127 ? 8 : 0
        let size = 2 + lengthSize + (isMasked ? 4 : 0)
        let opcode = FrameReader.Opcode(bits: first & 0x0F)
        if first & 0x70 != 0 { return .violation(1002, "reserved bits must be 0 without an extension") }
        // Reject this now: a control frame must not have an extended length, so there is no need to wait for the rest
        // of the header.
        if opcode.isControl, lengthSize > 0 {
            return .violation(1002, "control frames must not be fragmented or exceed 125 bytes")
        }
        guard bytes.count >= 2 + lengthSize else { return .incomplete }
        var length = UInt64(short)
        if lengthSize > 0 { length = (0..<lengthSize).reduce(0) { $0 << 8 | UInt64(byte(2 + $1)) } }
        guard length >> 63 == 0 else { return .violation(1002, "payload length must be below 2^63") }
        // RFC 6455 §5.2: "the minimal number of bytes MUST be used". If other forms were accepted, two implementations could
        // disagree on the length.
        if lengthSize == 2, length < 126 { return .violation(1002, "payload length must use the shortest form") }
        if lengthSize == 8, length <= 0xFFFF { return .violation(1002, "payload length must use the shortest form") }
        guard length <= UInt64(maxLength) else { return .violation(1009, "the message is too large") }
        guard bytes.count >= size else { return .incomplete }
        let mask = isMasked ? (0..<4).map { byte(2 + lengthSize + $0) } : nil
        return .header(
            FrameHeader(
                opcode: opcode, isFinal: first & 0x80 != 0, mask: mask, length: Int(length), size: size
            )
        )
    }

    /// Returns the header of a frame that the server sends. The frame is final and unmasked, and has a payload of `length`
    /// bytes.
    public static func bytes(of opcode: FrameReader.Opcode, length: Int) -> [UInt8] {
        let first = 0x80 | opcode.bits
        switch length {
        case ..<126: return [first, UInt8(length)]
        case ...0xFFFF: return [first, 126, UInt8(length >> 8), UInt8(length & 0xFF)]
        default: return [first, 127] + (0..<8).map { UInt8(truncatingIfNeeded: length >> (56 - 8 * $0)) }
        }
    }
}

extension FrameReader.Opcode {
    var isControl: Bool { self == .close || self == .ping || self == .pong }

    init(bits: UInt8) {
        switch bits {
        case 0: self = .continuation
        case 1: self = .text
        case 2: self = .binary
        case 8: self = .close
        case 9: self = .ping
        case 10: self = .pong
        default: self = .reserved
        }
    }

    var bits: UInt8 {
        switch self {
        case .continuation: 0
        case .text: 1
        case .binary: 2
        case .close: 8
        case .ping: 9
        case .pong: 10
        // The server never sends this opcode.
        case .reserved: 15
        }
    }
}
