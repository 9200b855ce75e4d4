import COpenSSL

/// A STUN message in a datagram, with all lengths checked. The message points into the datagram and must not outlive
/// it. Its content is not verified until `isAuthentic` returns true. Absent attributes are nil.
public struct STUNMessage {
    public let `class`: STUN.Class
    /// The method; 1 is Binding.
    public let method: UInt16
    public let transaction: STUNTransaction
    /// The USERNAME attribute, never empty.
    public private(set) var username: UnsafeRawBufferPointer?
    /// The PRIORITY attribute (RFC 8445 §7.1.1).
    public private(set) var priority: UInt32?
    public private(set) var useCandidate = false
    /// The tie-breaker in ICE-CONTROLLING (RFC 8445 §7.1.3).
    public private(set) var controlling: UInt64?
    /// The tie-breaker in ICE-CONTROLLED (RFC 8445 §7.1.3).
    public private(set) var controlled: UInt64?
    /// The XOR-MAPPED-ADDRESS attribute, decoded.
    public private(set) var mappedAddress: TransportAddress?
    /// The XOR-RELAYED-ADDRESS attribute of a response, decoded (RFC 8656 §18.5).
    public private(set) var relayedAddress: TransportAddress?
    /// The ERROR-CODE attribute, 300 to 699.
    public private(set) var errorCode: UInt16?
    /// The first `STUN.maxUnknown` comprehension-required attributes that are unknown (RFC 8489 §6.3.1).
    public private(set) var unknown: [UInt16] = []
    /// Whether FINGERPRINT was present. A message with a wrong fingerprint is rejected.
    public private(set) var hasFingerprint = false

    private let bytes: UnsafeRawBufferPointer
    /// The bytes of the REALM and NONCE attributes.
    private var realmBytes: UnsafeRawBufferPointer?
    private var nonceBytes: UnsafeRawBufferPointer?
    /// The offset of the MESSAGE-INTEGRITY attribute.
    private var integrity: Int?

    /// Parses a datagram.
    ///
    /// - Returns: nil unless the datagram is exactly one well-formed message of RFC 8489.
    public init?(_ datagram: UnsafeRawBufferPointer) {
        guard datagram.count >= STUN.headerLength, datagram.count <= STUN.maxBytes,
            datagram[0] & 0xc0 == 0,
            datagram.bigEndian32(at: 4) == STUN.magicCookie,
            datagram.count % 4 == 0,
            Int(datagram.bigEndian16(at: 2)) == datagram.count - STUN.headerLength
        else { return nil }
        let type = datagram.bigEndian16(at: 0)
        guard let `class` = STUN.Class(rawValue: (type >> 4) & 1 | (type >> 7) & 2) else { return nil }
        self.class = `class`
        method = type & 0xf | (type >> 1) & 0x70 | (type >> 2) & 0xf80
        transaction = STUNTransaction(
            high: datagram.bigEndian32(at: 8),
            low: UInt64(datagram.bigEndian32(at: 12)) << 32 | UInt64(datagram.bigEndian32(at: 16)))
        bytes = datagram
        guard readAttributes() else { return nil }
    }

    private mutating func readAttributes() -> Bool {
        var reader = ByteReader(bytes)
        guard reader.skip(STUN.headerLength) else { return false }
        var count = 0
        while !reader.isAtEnd {
            count += 1
            let start = reader.position
            guard count <= STUN.maxAttributes, !hasFingerprint,  // FINGERPRINT must be the last (RFC 8489 §14.7).
                let type = reader.u16(), let length = reader.u16(), let value = reader.take(Int(length)),
                reader.skip((4 - Int(length) % 4) % 4)
            else { return false }
            // Attributes after MESSAGE-INTEGRITY are not protected, so ignore them (RFC 8489 §14.5).
            if integrity != nil, type != STUN.Attribute.fingerprint { continue }
            guard read(type, value, at: start) else { return false }
        }
        return true
    }

    private mutating func read(_ type: UInt16, _ value: UnsafeRawBufferPointer, at start: Int) -> Bool {
        switch type {
        case STUN.Attribute.username:
            // USERNAME has fewer than 509 bytes (RFC 8489 §14.3). If an attribute appears twice, the first counts (§14).
            guard !value.isEmpty, value.count < 509 else { return false }
            if username == nil { username = value }
        case STUN.Attribute.messageIntegrity:
            guard value.count == 20 else { return false }
            integrity = start
        case STUN.Attribute.fingerprint:
            guard value.count == 4 else { return false }
            let sum = STUN.crc32(UnsafeRawBufferPointer(rebasing: bytes[..<start])) ^ STUN.fingerprintMask
            guard value.bigEndian32(at: 0) == sum else { return false }
            hasFingerprint = true
        case STUN.Attribute.xorMappedAddress:
            guard let address = readAddress(value) else { return false }
            if mappedAddress == nil { mappedAddress = address }
        case STUN.Attribute.errorCode:
            guard value.count >= 4, (3...6).contains(value[2] & 7), value[3] < 100 else { return false }
            errorCode = UInt16(value[2] & 7) * 100 + UInt16(value[3])
        default: return readICE(type, value)
        }
        return true
    }

    private mutating func readICE(_ type: UInt16, _ value: UnsafeRawBufferPointer) -> Bool {
        var reader = ByteReader(value)
        switch type {
        case STUN.Attribute.priority:
            guard value.count == 4 else { return false }
            priority = reader.u32()
        case STUN.Attribute.useCandidate:
            guard value.isEmpty else { return false }
            useCandidate = true
        case STUN.Attribute.iceControlling:
            guard value.count == 8 else { return false }
            controlling = reader.u64()
        case STUN.Attribute.iceControlled:
            guard value.count == 8 else { return false }
            controlled = reader.u64()
        case STUN.Attribute.realm:
            if realmBytes == nil { realmBytes = value }
        case STUN.Attribute.nonce:
            if nonceBytes == nil { nonceBytes = value }
        // Requests with this attribute are for TURN servers, so in a request it is unknown.
        case STUN.Attribute.xorRelayedAddress where `class` == .success:
            guard let address = readAddress(value) else { return false }
            if relayedAddress == nil { relayedAddress = address }
        case STUN.Attribute.messageIntegritySHA256, STUN.Attribute.unknownAttributes:
            break
        default:
            if type < 0x8000, unknown.count < STUN.maxUnknown { unknown.append(type) }
        }
        return true
    }

    /// Decodes XOR-MAPPED-ADDRESS (RFC 8489 §14.2). Returns nil if its family or length is invalid.
    private func readAddress(_ value: UnsafeRawBufferPointer) -> TransportAddress? {
        guard value.count >= 8 else { return nil }
        let port = value.bigEndian16(at: 2) ^ UInt16(truncatingIfNeeded: STUN.magicCookie >> 16)
        let first = value.bigEndian32(at: 4) ^ STUN.magicCookie
        switch (value[1], value.count) {
        case (1, 8): return TransportAddress(v4: first, port: port)
        case (2, 20):
            let second = value.bigEndian32(at: 8) ^ transaction.high
            let low = UInt64(value.bigEndian32(at: 12)) << 32 | UInt64(value.bigEndian32(at: 16))
            return TransportAddress(
                high: UInt64(first) << 32 | UInt64(second), low: low ^ transaction.low, port: port)
        default: return nil
        }
    }

    public var hasIntegrity: Bool { integrity != nil }
    /// A copy of the REALM attribute; empty if there is none.
    var realm: [UInt8] { realmBytes.map(Array.init) ?? [] }
    /// A copy of the NONCE attribute; empty if there is none.
    var nonce: [UInt8] { nonceBytes.map(Array.init) ?? [] }

    /// Returns whether MESSAGE-INTEGRITY is present and correct for `key`, an ICE password (RFC 8489 §14.5).
    public func isAuthentic(_ key: [UInt8]) -> Bool {
        guard let integrity, integrity >= STUN.headerLength, integrity + 24 <= bytes.count else { return false }
        // The HMAC covers the message up to MESSAGE-INTEGRITY, with a length field as if that attribute were the last.
        return withUnsafeTemporaryAllocation(byteCount: integrity, alignment: 8) { covered in
            covered.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<integrity]))
            let length = UInt16(truncatingIfNeeded: integrity + 24 - STUN.headerLength)
            covered.storeBytes(of: length.bigEndian, toByteOffset: 2, as: UInt16.self)
            guard let code = STUN.integrity(of: UnsafeRawBufferPointer(covered), key: key) else { return false }
            let theirs = UnsafeRawBufferPointer(rebasing: bytes[(integrity + 4)..<(integrity + 24)])
            return code.withUnsafeBytes { CRYPTO_memcmp($0.baseAddress, theirs.baseAddress, 20) == 0 }
        }
    }

    /// Returns whether USERNAME is present and equals `name`.
    public func isAddressed(to name: [UInt8]) -> Bool { username?.elementsEqual(name) ?? false }
}

extension STUN {
    /// Returns the 20-byte HMAC-SHA1 of `bytes`. Returns nil if OpenSSL fails, or if `key` is empty, which an ICE
    /// password never is.
    static func integrity(of bytes: UnsafeRawBufferPointer, key: [UInt8]) -> [UInt8]? {
        guard !key.isEmpty, let count = Int32(exactly: key.count) else { return nil }
        var code = [UInt8](repeating: 0, count: 20)
        let made = key.withUnsafeBytes { key in
            code.withUnsafeMutableBufferPointer {
                confab_hmac_sha1(key.baseAddress, count, bytes.baseAddress, bytes.count, $0.baseAddress)
            }
        }
        return made == 1 ? code : nil
    }
}
