import COpenSSL

/// The test that decides, once per process, whether the library is used.
extension IPsecMB {
    /// Whether the library encrypts and decrypts as OpenSSL does, for all lengths of a payload in an Ethernet frame, and
    /// rejects a wrong tag.
    func agreesWithOpenSSL() -> Bool {
        let key = [UInt8](1...16)
        guard let ours = GCMKey(key, .sealing, library: self) else { return false }
        defer { ours.free() }
        guard let opener = GCMKey(key, .opening, library: self) else { return false }
        defer { opener.free() }
        guard let theirs = GCMKey(key, .sealing, library: nil) else { return false }
        defer { theirs.free() }
        let plain = (0..<1500).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 3) }
        return keepsToItsState(key)
            && (0...plain.count).allSatisfy { length in
                let nonce = (UInt64(length) &* 0x9e37_79b9_7f4a_7c15, UInt64(length))
                let header = Array(plain.suffix(12 + 4 * (length % 8)))
                let payload = Array(plain[..<length])
                guard var packet = theirs.sealed(payload, header: header, nonce: nonce) else { return false }
                guard ours.sealed(payload, header: header, nonce: nonce) == packet else { return false }
                guard opener.opened(packet, header: header, nonce: nonce) == payload else { return false }
                packet[length % packet.count] ^= 1
                return opener.opened(packet, header: header, nonce: nonce) == nil
            }
    }

    /// Whether the library writes no more than `CONFAB_MB_STATE_SIZE` bytes of intermediate results.
    func keepsToItsState(_ key: [UInt8] = [UInt8](1...16)) -> Bool {
        let pattern: UInt8 = 0xa5
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: scheduleSize + 4096, alignment: Self.alignment)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: pattern)
        guard let schedule = memory.baseAddress else { return false }
        functions.expand(key, schedule)
        let state = schedule + scheduleSize
        var (body, tag) = ([UInt8](repeating: 1, count: 1001), [UInt8](repeating: 0, count: GCMKey.tagLength))
        let (length, tagLength) = (UInt64(body.count), UInt64(tag.count))
        body.withUnsafeMutableBytes { body in
            let bytes = body.baseAddress
            functions.encrypt(schedule, state, bytes, bytes, length, key, key, 12, &tag, tagLength)
            functions.decrypt(schedule, state, bytes, bytes, length, key, key, 12, &tag, tagLength)
        }
        return memory[(scheduleSize + Int(CONFAB_MB_STATE_SIZE))...].allSatisfy { $0 == pattern }
    }
}

extension GCMKey {
    /// Returns the encrypted payload with its tag; nil if OpenSSL fails.
    func sealed(_ payload: [UInt8], header: [UInt8], nonce: Nonce) -> [UInt8]? {
        var packet = payload + [UInt8](repeating: 0, count: Self.tagLength)
        let isSealed = packet.withUnsafeMutableBytes { packet in
            guard let base = packet.baseAddress else { return false }
            let body = UnsafeRawBufferPointer(start: base, count: payload.count)
            let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
            return header.withUnsafeBytes { seal(nonce, data: $0, prefix: nothing, body, out: base) }
        }
        return isSealed ? packet : nil
    }

    /// Returns the decrypted payload of a packet that ends with its tag; nil if the tag is wrong.
    func opened(_ packet: [UInt8], header: [UInt8], nonce: Nonce) -> [UInt8]? {
        var packet = packet
        let length = packet.count - Self.tagLength
        let isOpened = packet.withUnsafeMutableBytes { packet in
            guard let base = packet.baseAddress else { return false }
            return header.withUnsafeBytes { open(nonce, data: $0, body: base, length: length, tag: base + length) }
        }
        return isOpened ? Array(packet[..<length]) : nil
    }
}
