/// What stands before a frame's payload (RFC 6455 §5.2).
public struct FrameHeader: Equatable, Sendable {
    public enum Outcome: Equatable, Sendable {
        case incomplete
        case header(FrameHeader)
        /// The other end broke the rules: close with this code.
        case violation(UInt16, String)
    }

    public var opcode: FrameReader.Opcode
    public var isFinal: Bool
    public var mask: [UInt8]?
    /// Of the payload, in bytes.
    public var length: Int
    /// Of the header itself.
    public var size: Int

    /// Reads a header from the beginning of the bytes; judges only what must not be waited for.
    ///
    /// - Parameter most: the longest payload that is taken.
    public static func parse(_ bytes: some RandomAccessCollection<UInt8>, most: Int) -> Outcome {
        guard bytes.count >= 2 else { return .incomplete }
        let byte = { (offset: Int) in bytes[bytes.index(bytes.startIndex, offsetBy: offset)] }
        let (first, second) = (byte(0), byte(1))
        let isMasked = second & 0x80 != 0
        let short = Int(second & 0x7F)
        let lengthSize = short == 126 ? 2 : short == 127 ? 8 : 0
        let size = 2 + lengthSize + (isMasked ? 4 : 0)
        let opcode = FrameReader.Opcode(bits: first & 0x0F)
        if first & 0x70 != 0 { return .violation(1002, "no extension was agreed that uses reserved bits") }
        // A control frame cannot be long, whatever follows.
        if opcode.isControl, lengthSize > 0 { return .violation(1002, "control frames are short and whole") }
        guard bytes.count >= 2 + lengthSize else { return .incomplete }
        var length = UInt64(short)
        if lengthSize > 0 { length = (0..<lengthSize).reduce(0) { $0 << 8 | UInt64(byte(2 + $1)) } }
        guard length >> 63 == 0 else { return .violation(1002, "a length has 63 bits") }
        // "The minimal number of bytes MUST be used": two spellings of one frame are two readings of one stream.
        if lengthSize == 2, length < 126 { return .violation(1002, "a length is written as short as it goes") }
        if lengthSize == 8, length <= 0xFFFF { return .violation(1002, "a length is written as short as it goes") }
        guard length <= UInt64(most) else { return .violation(1009, "the message is too large") }
        guard bytes.count >= size else { return .incomplete }
        let mask = isMasked ? (0..<4).map { byte(2 + lengthSize + $0) } : nil
        return .header(
            FrameHeader(
                opcode: opcode, isFinal: first & 0x80 != 0, mask: mask, length: Int(length), size: size
            )
        )
    }

    /// The header of a server's frame: whole and unmasked.
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
        // We write none.
        case .reserved: 15
        }
    }
}
