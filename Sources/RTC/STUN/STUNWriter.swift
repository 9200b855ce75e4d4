/// Writes one STUN message into the caller's memory. It adds no SOFTWARE attribute and no padding beyond alignment, so a
/// response is useless for traffic amplification.
///
/// ```swift
/// var writer = STUNWriter(memory, .success, method: STUN.binding, transaction: request.transaction)
/// writer.xorMappedAddress(path.remote)
/// let length = writer.finish(key: password)
/// ```
struct STUNWriter {
    private let memory: UnsafeMutableRawBufferPointer
    private var writer: ByteWriter
    private let transaction: STUNTransaction

    /// Starts a message by writing its header.
    ///
    /// - Parameter memory: the memory for the message; `STUN.maxBytes` bytes are always enough.
    init(
        _ memory: UnsafeMutableRawBufferPointer, _ class: STUN.Class, method: UInt16 = STUN.binding,
        transaction: STUNTransaction
    ) {
        self.memory = memory
        self.transaction = transaction
        writer = ByteWriter(memory)
        writer.u16(STUN.type(`class`, method))
        writer.u16(0)
        writer.u32(STUN.magicCookie)
        writer.u32(transaction.high)
        writer.u64(transaction.low)
    }

    private mutating func attribute(_ type: UInt16, _ value: [UInt8]) {
        writer.u16(type)
        writer.u16(UInt16(truncatingIfNeeded: value.count))
        writer.append(value)
        writer.zeros((4 - value.count % 4) % 4)
    }

    /// Writes USERNAME. It must not be longer than 508 bytes (RFC 8489 §14.3), so two username fragments fit if each
    /// has fewer than 254 bytes, although RFC 8839 §5.4 allows 256.
    mutating func username(_ name: [UInt8]) { attribute(STUN.Attribute.username, name) }

    mutating func priority(_ priority: UInt32) {
        writer.u16(STUN.Attribute.priority)
        writer.u16(4)
        writer.u32(priority)
    }

    mutating func controlling(tieBreaker: UInt64) {
        writer.u16(STUN.Attribute.iceControlling)
        writer.u16(8)
        writer.u64(tieBreaker)
    }

    mutating func controlled(tieBreaker: UInt64) {
        writer.u16(STUN.Attribute.iceControlled)
        writer.u16(8)
        writer.u64(tieBreaker)
    }

    mutating func useCandidate() { attribute(STUN.Attribute.useCandidate, []) }

    mutating func xorMappedAddress(_ address: TransportAddress) {
        writer.u16(STUN.Attribute.xorMappedAddress)
        writer.u16(address.isIPv4 ? 8 : 20)
        writer.u16(address.isIPv4 ? 1 : 2)
        writer.u16(address.port ^ UInt16(truncatingIfNeeded: STUN.magicCookie >> 16))
        if address.isIPv4 {
            writer.u32(address.v4 ^ STUN.magicCookie)
        } else {
            writer.u64(address.high ^ (UInt64(STUN.magicCookie) << 32 | UInt64(transaction.high)))
            writer.u64(address.low ^ transaction.low)
        }
    }

    /// Writes ERROR-CODE with an empty reason phrase, which RFC 8489 §14.8 allows.
    mutating func error(_ code: UInt16) {
        writer.u16(STUN.Attribute.errorCode)
        writer.u16(4)
        writer.u16(0)
        writer.u8(UInt8(truncatingIfNeeded: code / 100))
        writer.u8(UInt8(truncatingIfNeeded: code % 100))
    }

    mutating func unknownAttributes(_ types: [UInt16]) {
        attribute(
            STUN.Attribute.unknownAttributes,
            types.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] })
    }

    /// Writes an attribute of any type.
    mutating func raw(_ type: UInt16, _ value: [UInt8]) { attribute(type, value) }

    /// Writes MESSAGE-INTEGRITY with `key`, FINGERPRINT, and the length field.
    /// - Returns: the message's length; nil if the message did not fit or `key` is empty.
    mutating func finish(key: [UInt8]) -> Int? {
        // MESSAGE-INTEGRITY and FINGERPRINT are each computed over a length field that counts the message only up to and
        // including that attribute.
        writer.patch16(UInt16(truncatingIfNeeded: writer.count + 24 - STUN.headerLength), at: 2)
        guard !writer.overflowed, let code = STUN.integrity(of: written, key: key) else { return nil }
        attribute(STUN.Attribute.messageIntegrity, code)
        return finish()
    }

    /// Writes only FINGERPRINT and the length field. Returns the message's length; nil if the message did not fit.
    mutating func finish() -> Int? {
        writer.patch16(UInt16(truncatingIfNeeded: writer.count + 8 - STUN.headerLength), at: 2)
        let sum = STUN.crc32(written) ^ STUN.fingerprintMask
        writer.u16(STUN.Attribute.fingerprint)
        writer.u16(4)
        writer.u32(sum)
        return writer.overflowed ? nil : writer.count
    }

    private var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<writer.count]) }
}
