/// Reads bits, most significant first, and never past the end. Missing bits read as 0 and set `isExhausted`, so a parser needs
/// only one check after its last read.
struct BitReader {
    private let bytes: UnsafeRawBufferPointer
    /// Whether to skip the byte with the value 3 that H.264 inserts after two zero bytes (§7.4.1.1,
    /// `emulation_prevention_three_byte`).
    private let skipsPrevention: Bool
    private var position = 0
    private var zeros = 0
    private var current: UInt8 = 0
    private var left = 0
    private(set) var isExhausted = false

    init(_ bytes: UnsafeRawBufferPointer, skipsPrevention: Bool = false) {
        (self.bytes, self.skipsPrevention) = (bytes, skipsPrevention)
    }

    mutating func bit() -> Bool {
        if left == 0 { load() }
        guard left > 0 else { return false }
        left -= 1
        return current >> UInt8(left) & 1 == 1
    }

    /// Reads a number of `count` bits.
    ///
    /// - Parameter count: the number of bits, at most 32.
    mutating func bits(_ count: Int) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count { value = value << 1 | (bit() ? 1 : 0) }
        return value
    }

    mutating func skip(_ count: Int) { for _ in 0..<count where !isExhausted { _ = bit() } }

    /// Reads an unsigned Exp-Golomb number, `ue(v)` (H.264 §9.1). A number of more than 32 bits exhausts the reader,
    /// because no valid frame contains one.
    mutating func exponential() -> UInt32 {
        var zeros = 0
        while !isExhausted, !bit() {
            zeros += 1
            guard zeros < 32 else {
                isExhausted = true
                return 0
            }
        }
        guard !isExhausted else { return 0 }
        return (1 << UInt32(zeros)) - 1 + bits(zeros)
    }

    /// Reads a signed Exp-Golomb number, `se(v)` (H.264 §9.1.1).
    mutating func signedExponential() -> Int64 {
        let code = Int64(exponential())
        return code & 1 == 1 ? (code + 1) / 2 : -code / 2
    }

    private mutating func load() {
        guard position < bytes.count else { return isExhausted = true }
        var byte = bytes[position]
        position += 1
        if skipsPrevention, zeros >= 2, byte == 3 {
            zeros = 0
            guard position < bytes.count else { return isExhausted = true }
            byte = bytes[position]
            position += 1
        }
        zeros = byte == 0 ? zeros + 1 : 0
        (current, left) = (byte, 8)
    }
}
