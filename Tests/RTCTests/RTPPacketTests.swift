import TestSupport
import Testing

@testable import RTC

@Suite struct RTPPacketTests {
    private static let plain = "80 e0 1234 56789abc def01234"

    @Test func theHeaderFieldsAreRead() throws {
        let bytes = octets(Self.plain + "010203")
        let packet = try #require(parsing(bytes) { RTPPacket($0) })
        #expect(packet.marker)
        #expect(packet.payloadType == 96)
        #expect(packet.sequenceNumber == 0x1234)
        #expect(packet.timestamp == 0x5678_9abc)
        #expect(packet.ssrc == 0xdef0_1234)
        #expect(packet.headerLength == 12)
        #expect(packet.payloadRange == 12..<15)
        #expect(packet.extensionProfile == 0)
        #expect(packet.extensionRange.isEmpty)
        #expect(!packet.hasPadding)
    }

    @Test(arguments: [
        // Packets with CSRCs, with an extension, with padding, and with all of them.
        ("82 60 1234 56789abc def01234 00000001 00000002 ff", 20..<21, 0..<0),
        ("90 60 1234 56789abc def01234 bede0001 10aa0000 ff", 20..<21, 16..<20),
        ("90 60 1234 56789abc def01234 bede0000 ff", 16..<17, 16..<16),
        ("a0 60 1234 56789abc def01234 ffff 0002", 12..<14, 0..<0),
        ("b1 60 1234 56789abc def01234 00000001 10000001 0102aabb ff 000003", 24..<25, 20..<24),
        // A packet with only padding, and a packet without payload.
        ("a0 60 1234 56789abc def01234 00000004", 12..<12, 0..<0),
        ("80 60 1234 56789abc def01234", 12..<12, 0..<0),
    ])
    func thePayloadAndTheExtensionAreFound(_ text: String, _ payload: Range<Int>, _ extended: Range<Int>) throws {
        let packet = try #require(parsing(octets(text)) { RTPPacket($0) })
        #expect(packet.payloadRange == payload)
        #expect(packet.headerLength == payload.lowerBound)
        #expect(packet.extensionRange == extended)
    }

    @Test(arguments: [
        "", "80", "80 60 1234 56789abc def012",
        // Versions 0, 1 and 3.
        "00 60 1234 56789abc def01234", "40 60 1234 56789abc def01234", "c0 60 1234 56789abc def01234",
        // CSRCs that extend beyond the end.
        "81 60 1234 56789abc def01234 000000", "8f 60 1234 56789abc def01234 00000001",
        // An extension without a length, and with a length beyond the end.
        "90 60 1234 56789abc def01234", "90 60 1234 56789abc def01234 bede00",
        "90 60 1234 56789abc def01234 bede0001 10aa00", "90 60 1234 56789abc def01234 bedeffff 10aa0000",
        "9f 60 1234 56789abc def01234 bede0001 10aa0000",
        // Padding of zero bytes, and longer than the payload.
        "a0 60 1234 56789abc def01234 00", "a0 60 1234 56789abc def01234 02", "a0 60 1234 56789abc def01234 aaff",
        "a0 60 1234 56789abc def01234", "b0 60 1234 56789abc def01234 bede0001 10aa0001",
    ])
    func malformedPacketsAreRejected(_ text: String) {
        #expect(parsing(octets(text)) { RTPPacket($0) } == nil)
    }

    @Test(
        arguments: [
            ("bede0002 10aa 21bbcc 000000", [(1, "aa"), (2, "bbcc")]),
            // Padding between elements, and an element of sixteen bytes.
            (
                "bede0006 0010aa00 2f000102 03040506 0708090a 0b0c0d0e 0f000000",
                [(1, "aa"), (2, "000102030405060708090a0b0c0d0e0f")]
            ),
            // ID 15, padding with a length, and a length beyond the end stop the iteration.
            ("bede0002 10aa f0bb 30cc 0000", [(1, "aa")]),
            ("bede0002 10aa 01bb 30cc 0000", [(1, "aa")]),
            ("bede0001 10aa 32bb", [(1, "aa")]),
            ("bede0001 10aa 3000", [(1, "aa"), (3, "00")]),
            ("bede0001 10aa 0030", [(1, "aa")]),
            // The two-byte form: empty elements, IDs above 14, application bits.
            ("10000002 0100 0f01aa 100000", [(1, ""), (15, "aa"), (16, "")]),
            ("100f0002 0202aabb ff01cc00", [(2, "aabb"), (255, "cc")]),
            ("10000001 0103aabb", []),
            ("10000001 0101aa07", [(1, "aa")]),
            // Extensions with an unknown profile.
            ("beef0001 10aa0000", []),
            ("20000001 0101aa00", []),
        ] as [(String, [(UInt8, String)])])
    func theElementsOfAnExtensionAreFound(_ text: String, _ expected: [(UInt8, String)]) throws {
        let whole = octets("90 60 1234 56789abc def01234" + text)
        let found = try #require(elements(of: whole + [0xff]))
        #expect(found.map(\.id) == expected.map(\.0))
        #expect(found.map(\.bytes) == expected.map { octets($0.1) })
        for (id, bytes) in expected {
            let range = parsing(whole) { memory in RTPPacket(memory)?.headerExtension(id, in: memory) }
            #expect(range.map { Array(whole[$0]) } == octets(bytes))
        }
        #expect(parsing(whole) { memory in RTPPacket(memory)?.headerExtension(9, in: memory) } == nil)
    }

    @Test func anElementIsNotReadFromOtherBytes() throws {
        let whole = octets("90 60 1234 56789abc def01234 bede0001 10aa0000")
        let packet = try #require(parsing(whole) { RTPPacket($0) })
        #expect(parsing(Array(whole.dropLast())) { packet.headerExtension(1, in: $0) } == nil)
    }

    @Test func aRetransmissionContainsTheOriginalSequenceNumber() throws {
        let bytes = octets(Self.plain + "abcd 01")
        #expect(parsing(bytes) { memory in RTPPacket(memory)?.originalSequenceNumber(in: memory) } == 0xabcd)
        let short = octets(Self.plain + "ab")
        #expect(parsing(short) { memory in RTPPacket(memory)?.originalSequenceNumber(in: memory) } == nil)
    }
}

@Suite struct RTPHeaderWriterTests {
    private func add(_ bytes: UnsafeRawBufferPointer, id: UInt8, to writer: inout RTPHeaderWriter) -> Bool {
        writer.addExtension(id: id, bytes: bytes)
    }

    @Test func aHeaderIsReadAsItWasWritten() throws {
        let bytes = try #require(header())
        #expect(bytes == octets("80 e0 1234 56789abc def01234"))
        let packet = try #require(parsing(bytes) { RTPPacket($0) })
        #expect(packet.headerLength == 12)
    }

    @Test func theOneByteFormRejectsWhatItCannotEncode() throws {
        let bytes = try #require(
            header { writer in
                #expect(answer(of: &writer) { $0.addAudioLevel(.init(level: 30, voice: true), id: 1) })
                #expect(!answer(of: &writer) { $0.addExtension(id: 15, value: 1, length: 1) })
                #expect(!answer(of: &writer) { $0.addExtension(id: 0, value: 1, length: 1) })
                #expect(!parsing([]) { add($0, id: 2, to: &writer) })
                #expect(!parsing([UInt8](repeating: 1, count: 17)) { add($0, id: 2, to: &writer) })
                #expect(!answer(of: &writer) { $0.addExtension(id: 2, value: 1, length: 5) })
                #expect(answer(of: &writer) { $0.addTransportSequenceNumber(0xabcd, id: 14) })
            })
        #expect(Array(bytes.dropFirst(12)) == octets("bede0002 109e e1abcd 000000"))
        #expect(bytes[0] == 0x90)
    }

    @Test func theTwoByteFormTakesAnyLength() throws {
        let long = [UInt8](0...254)
        let bytes = try #require(
            header(twoByteExtensions: true) { writer in
                #expect(parsing([]) { add($0, id: 200, to: &writer) })
                #expect(parsing(long) { add($0, id: 3, to: &writer) })
                #expect(!parsing(long + [1]) { add($0, id: 4, to: &writer) })
                #expect(answer(of: &writer) { $0.addAbsoluteSendTime(0x01_0203, id: 5) })
            })
        let found = try #require(elements(of: bytes))
        #expect(found.map(\.id) == [200, 3, 5])
        #expect(found.map(\.bytes) == [[], long, [1, 2, 3]])
    }

    @Test func aHeaderThatDoesNotFitIsNotWritten() throws {
        func fill(_ writer: inout RTPHeaderWriter) {
            writer.addExtension(id: 1, value: 7, length: 1)
            writer.addExtension(id: 2, value: 7, length: 4)
        }
        let whole = try #require(header(fill))
        #expect(whole.count == 24)
        for capacity in 0..<200 {
            guard let bytes = header(capacity: capacity, fill) else {
                #expect(capacity < 27)
                continue
            }
            #expect(bytes == whole)
        }
    }

    @Test func randomExtensionsRoundTrip() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("RTP header extensions: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let twoBytes = Bool.random(using: &random)
            let wanted = (0..<Int.random(in: 0...8, using: &random)).map { _ in
                let length = Int.random(in: twoBytes ? 0...40 : 1...16, using: &random)
                return (
                    id: UInt8.random(in: 1...(twoBytes ? 255 : 14), using: &random),
                    bytes: (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
                )
            }
            let bytes = try #require(
                header(twoByteExtensions: twoBytes) { writer in
                    for element in wanted { parsing(element.bytes) { writer.addExtension(id: element.id, bytes: $0) } }
                })
            let found = try #require(elements(of: bytes + [1, 2, 3]))
            #expect(found.map(\.id) == wanted.map(\.id), "seed \(seed)")
            #expect(found.map(\.bytes) == wanted.map(\.bytes), "seed \(seed)")
        }
    }
}

@Suite struct RTPHeaderExtensionsTests {
    @Test func anAudioLevelIsAByte() {
        let level = parsing([0x9e]) { HeaderExtensions.AudioLevel($0) }
        #expect(level == .init(level: 30, voice: true))
        #expect(level?.byte == 0x9e)
        #expect(parsing([]) { HeaderExtensions.AudioLevel($0) } == nil)
    }

    @Test func truncatedNumbersAreRejected() {
        #expect(parsing([1, 2, 3]) { HeaderExtensions.absoluteSendTime($0) } == 0x01_0203)
        #expect(parsing([1, 2]) { HeaderExtensions.absoluteSendTime($0) } == nil)
        #expect(parsing([1, 2]) { HeaderExtensions.transportSequenceNumber($0) } == 0x0102)
        #expect(parsing([1]) { HeaderExtensions.transportSequenceNumber($0) } == nil)
        #expect(parsing([3]) { HeaderExtensions.videoOrientation($0) } == 3)
        #expect(parsing([]) { HeaderExtensions.videoOrientation($0) } == nil)
    }

    @Test(arguments: ["0", "a", "audio-0", "12345678", "123456789", "{0123456789abcd}"])
    func labelsFromPacketsAndFromTextAreEqual(_ text: String) throws {
        let label = try #require(SDESLabel(text))
        #expect(parsing(Array(text.utf8)) { SDESLabel($0) } == label)
        #expect(label.description == text)
        #expect(label.withBytes { Array($0) } == Array(text.utf8))
        #expect(SDESLabel(text + "\u{1}") == nil)
    }

    @Test(arguments: ["", "12345678901234567", "a b", "é", "a\u{0}"])
    func invalidLabelsAreRejected(_ text: String) {
        #expect(SDESLabel(text) == nil)
    }

    @Test func labelsOfZerosDifferByTheirLength() {
        #expect(SDESLabel("0") != SDESLabel("00"))
    }

    @Test func allFormsOfAnNTPTimeAgree() {
        let origin = NTPTime(0xe000_0000_0000_0000)
        let time = NTPTime(MediaTime(nanoseconds: 1_500_000_000), origin: origin)
        #expect(time.value == 0xe000_0001_8000_0000)
        #expect(time.middle32 == 0x0001_8000)
        #expect(time.absoluteSendTime == 0x06_0000)
        #expect(NTPTime(MediaTime(nanoseconds: -500_000_000), origin: origin).value == 0xdfff_ffff_8000_0000)
        #expect(time - origin == .milliseconds(1_500))
        #expect(origin - time == .milliseconds(-1_500))
        #expect(MediaInterval.milliseconds(1_500).ntpShort == 0x1_8000)
        #expect(MediaInterval(ntpShort: 0x1_8000) == .milliseconds(1_500))
        #expect(MediaInterval.milliseconds(-1).ntpShort == 0)
        #expect(MediaInterval.seconds(70_000).ntpShort == .max)
        for extreme in [Int64.min, .max] {
            _ = NTPTime(MediaTime(nanoseconds: extreme), origin: origin)
            _ = MediaInterval(nanoseconds: extreme).ntpShort
            _ = NTPTime(UInt64(bitPattern: extreme)) - NTPTime(0)
        }
    }
}
