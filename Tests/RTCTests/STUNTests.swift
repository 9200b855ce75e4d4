import COpenSSL
import TestSupport
import Testing

@testable import RTC

@Suite struct STUNTests {
    private static let password = Array("VOkJxbRl1RmTxUk/WvJxBt".utf8)

    /// RFC 5769 §2.1, with the padding of its erratum (spaces, which must be ignored).
    private static let request = bytes(
        """
        000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff80290008932ff9b1
        51263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf
        """)
    /// RFC 5769 §2.2.
    private static let answer4 = bytes(
        """
        0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a64300080014
        2b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96
        """)
    /// RFC 5769 §2.3.
    private static let answer6 = bytes(
        """
        010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000140002a1470113a9faa5d3f179bc25f4b5
        bed2b9d900080014a382954e4be67bf11784c97c8292c275bfe3ed4180280004c8fb0b4c
        """)

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    private func write(
        _ class: STUN.Class = .request, key: [UInt8]? = password, _ body: (inout STUNWriter) -> Void = { _ in }
    ) -> [UInt8] {
        var memory = [UInt8](repeating: 0xaa, count: STUN.maxBytes)
        let count = memory.withUnsafeMutableBytes { memory in
            var writer = STUNWriter(memory, `class`, transaction: STUNTransaction(high: 1, low: 2))
            body(&writer)
            return if let key { writer.finish(key: key) } else { writer.finish() }
        }
        return Array(memory.prefix(count ?? 0))
    }

    @Test func theRequestOfRFC5769IsRead() throws {
        try Self.request.withUnsafeBytes { bytes in
            let message = try #require(STUNMessage(bytes))
            #expect(message.class == .request && message.method == 1)
            #expect(message.transaction == STUNTransaction(high: 0xb7e7_a701, low: 0xbc34_d686_fa87_dfae))
            #expect(message.priority == 0x6e00_01ff)
            #expect(message.controlled == 0x932f_f9b1_5126_3b36 && message.controlling == nil)
            #expect(message.isAddressed(to: Array("evtj:h6vY".utf8)))
            #expect(message.hasFingerprint && message.unknown.isEmpty)
            #expect(message.isAuthentic(Self.password))
            #expect(!message.isAuthentic(Array("VOkJxbRl1RmTxUk/WvJxBT".utf8)) && !message.isAuthentic([]))
            let name = try #require(STUN.username(of: bytes))
            #expect(name.local.elementsEqual("evtj".utf8) && name.remote.elementsEqual("h6vY".utf8))
        }
    }

    @Test func theResponsesOfRFC5769AreRead() throws {
        try Self.answer4.withUnsafeBytes {
            let message = try #require(STUNMessage($0))
            #expect(message.class == .success && message.isAuthentic(Self.password))
            #expect(message.mappedAddress == TransportAddress(v4: 0xc000_0201, port: 32853))
            #expect(STUN.username(of: $0) == nil)
        }
        try Self.answer6.withUnsafeBytes {
            let message = try #require(STUNMessage($0))
            #expect(message.isAuthentic(Self.password))
            let address = TransportAddress(high: 0x2001_0db8_1234_5678, low: 0x0011_2233_4455_6677, port: 32853)
            #expect(message.mappedAddress == address)
        }
    }

    @Test func writtenMessagesAreReadBack() throws {
        let address = TransportAddress(high: 0x2001_0db8_0000_0001, low: 7, port: 40000)
        let written = write {
            $0.username(Array("server:client".utf8))
            $0.priority(77)
            $0.controlling(tieBreaker: 1 << 63)
            $0.useCandidate()
            $0.xorMappedAddress(address)
            $0.error(487)
        }
        try written.withUnsafeBytes {
            let message = try #require(STUNMessage($0))
            #expect(message.isAuthentic(Self.password) && message.hasFingerprint)
            #expect(message.isAddressed(to: Array("server:client".utf8)))
            #expect(message.priority == 77 && message.controlling == 1 << 63 && message.useCandidate)
            #expect(message.mappedAddress == address && message.errorCode == 487)
        }
    }

    @Test func aTruncatedMessageIsRejected() {
        for original in [Self.request, Self.answer4, Self.answer6] {
            for count in 0..<original.count {
                Array(original.prefix(count)).withUnsafeBytes { #expect(STUNMessage($0) == nil, "\(count) bytes") }
            }
            (original + [0, 0, 0, 0]).withUnsafeBytes { #expect(STUNMessage($0) == nil) }
        }
    }

    @Test func anyFlippedBitIsDetected() {
        for original in [Self.request, Self.answer4, Self.answer6] {
            for bit in 0..<original.count * 8 {
                var turned = original
                turned[bit / 8] ^= 1 << UInt8(bit % 8)
                turned.withUnsafeBytes {
                    guard let message = STUNMessage($0) else { return }
                    // The flipped bit removed FINGERPRINT or MESSAGE-INTEGRITY.
                    #expect(!message.hasFingerprint, "bit \(bit)")
                    #expect(bit >= (original.count - 8) * 8 || !message.isAuthentic(Self.password), "bit \(bit)")
                }
            }
        }
        // In a message without FINGERPRINT, MESSAGE-INTEGRITY detects the change.
        let bare = write { $0.username(Array("a:b".utf8)) }.dropLast(8)
        var original = Array(bare)
        original[3] -= 8
        original.withUnsafeBytes { #expect(STUNMessage($0)?.isAuthentic(Self.password) == true) }
        for bit in 0..<original.count * 8 {
            var turned = original
            turned[bit / 8] ^= 1 << UInt8(bit % 8)
            turned.withUnsafeBytes {
                #expect(STUNMessage($0)?.isAuthentic(Self.password) != true, "bit \(bit)")
            }
        }
    }

    @Test(arguments: [1, 24, 64, 65, 256])
    func theIntegrityIsThatOfOpenSSL(length: Int) {
        let (key, message) = ([UInt8](repeating: 0x5a, count: length), [UInt8](0..<100))
        var code = [UInt8](repeating: 0, count: 20)
        var written: UInt32 = 0
        _ = HMAC(EVP_sha1(), key, Int32(length), message, message.count, &code, &written)
        #expect(written == 20 && message.withUnsafeBytes { STUN.integrity(of: $0, key: key) } == code)
    }

    @Test func attributesAfterMessageIntegrityAreIgnored() throws {
        var message = Array(write(key: Self.password).dropLast(8))
        message += [0x00, 0x25, 0x00, 0x00]  // USE-CANDIDATE, not covered by MESSAGE-INTEGRITY.
        message[3] = UInt8(message.count - STUN.headerLength)
        try message.withUnsafeBytes {
            let read = try #require(STUNMessage($0))
            #expect(read.isAuthentic(Self.password) && !read.useCandidate)
        }
    }

    @Test func wrongLengthsAreRejected() {
        var long = write(key: nil) { $0.raw(0x8022, [1, 2, 3, 4]) }
        (long[22], long[23]) = (0xff, 0xff)
        long.withUnsafeBytes { #expect(STUNMessage($0) == nil) }
        for (type, length) in [
            (STUN.Attribute.priority, 3), (STUN.Attribute.useCandidate, 4), (STUN.Attribute.iceControlling, 7),
            (STUN.Attribute.iceControlled, 0), (STUN.Attribute.xorMappedAddress, 4), (STUN.Attribute.errorCode, 3),
            (STUN.Attribute.messageIntegrity, 0), (STUN.Attribute.username, 0), (STUN.Attribute.username, 600),
        ] {
            let wrong = write(key: nil) { $0.raw(type, [UInt8](repeating: 1, count: length)) }
            wrong.withUnsafeBytes { #expect(STUNMessage($0) == nil, "\(type) of \(length) bytes") }
        }
        let many = write(key: nil) { writer in for _ in 0..<40 { writer.raw(0x8022, []) } }
        many.withUnsafeBytes { #expect(STUNMessage($0) == nil) }
    }

    @Test func unknownRequiredAttributesAreListed() {
        let message = write { writer in
            for type in [0x7001, 0xc057, 0x0003, 0x8001] { writer.raw(UInt16(type), [9]) }
        }
        message.withUnsafeBytes { #expect(STUNMessage($0)?.unknown == [0x7001, 0x0003]) }
        let many = write { writer in for type in 0..<20 { writer.raw(0x7000 + UInt16(type), []) } }
        many.withUnsafeBytes { #expect(STUNMessage($0)?.unknown.count == STUN.maxUnknown) }
    }

    @Test func randomDatagramsNeverTrap() {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100_000 {
            var datagram = Self.request
            switch random.next() % 3 {
            case 0:
                let count = Int.random(in: 0...200, using: &random)
                datagram = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            case 1:
                for _ in 0...3 {
                    datagram[Int.random(in: 8..<108, using: &random)] = .random(in: 0...255, using: &random)
                }
            default:
                // Use random attributes. Leave out FINGERPRINT, because its check would fail first.
                datagram = Array(datagram.prefix(20)) + (0..<80).map { _ in UInt8.random(in: 0...48, using: &random) }
                datagram[3] = 80
            }
            datagram.withUnsafeBytes { bytes in
                if let message = STUNMessage(bytes) { _ = message.isAuthentic(Self.password) }
                _ = STUN.username(of: bytes)
            }
        }
    }
}
