import TestSupport
import Testing

@testable import RTC

@Suite struct PayloadTests {
    @Test(
        arguments: [
            // Minimal descriptors, descriptors with a 7-bit or 15-bit picture ID, with one other field, and with all
            // fields.
            ("10 00", 1, nil, nil, nil, nil, true),
            ("10 01", 1, nil, nil, nil, nil, false),
            ("00 00", 1, nil, nil, nil, nil, false),
            ("11 00", 1, nil, nil, nil, nil, false),
            ("90 80 7f 00", 3, 0x7f, nil, nil, nil, true),
            ("90 80 ffff 00", 4, 0x7fff, nil, nil, nil, true),
            ("90 40 07 00", 3, nil, 7, nil, nil, true),
            ("90 20 e0 01", 3, nil, nil, 3, nil, false),
            ("90 10 1f 01", 3, nil, nil, nil, 31, false),
            ("b0 f0 8123 2a 65 00", 6, 0x123, 0x2a, 1, 5, true),
            ("90 00 00", 2, nil, nil, nil, nil, true),
        ] as [(String, Int, UInt16?, UInt8?, UInt8?, UInt8?, Bool)])
    func vp8DescriptorsAreRead(
        _ text: String, _ length: Int, _ picture: UInt16?, _ index: UInt8?, _ layer: UInt8?, _ key: UInt8?,
        _ isKeyframe: Bool
    ) throws {
        let bytes = octets(text)
        let descriptor = try #require(parsing(bytes) { VP8Descriptor($0) })
        #expect(descriptor.length == length)
        #expect(descriptor.pictureID == picture)
        #expect(descriptor.temporalLayerZeroIndex == index)
        #expect(descriptor.temporalLayer == layer)
        #expect(descriptor.keyIndex == key)
        #expect(descriptor.isKeyframeStart == isKeyframe)
        #expect(parsing(bytes) { VideoPayloadFormat.vp8.isKeyframeStart($0) } == isKeyframe)
        for count in 0...length {
            #expect(parsing(Array(bytes.prefix(count))) { VP8Descriptor($0) } == nil, "\(count) bytes of \(text)")
        }
        #expect(rewritten(descriptor, picture ?? 1, index ?? 1) == Array(bytes.prefix(length)))
    }

    private func rewritten(
        _ descriptor: VP8Descriptor, _ picture: UInt16, _ index: UInt8, room: Int = VP8Descriptor.maxLength
    ) -> [UInt8] {
        var memory = [UInt8](repeating: 0xee, count: room)
        let length = memory.withUnsafeMutableBytes {
            descriptor.rewrite(into: $0, pictureID: picture, temporalLayerZeroIndex: index)
        }
        return Array(memory.prefix(length))
    }

    @Test func rewritingAVP8DescriptorKeepsItsLength() throws {
        let long = try #require(parsing(octets("b0 f0 8123 2a 65 00")) { VP8Descriptor($0) })
        #expect(rewritten(long, 0xffff, 0xfe) == octets("b0 f0 ffff fe 65"))
        #expect(rewritten(long, 5, 6) == octets("b0 f0 8005 06 65"))
        #expect(rewritten(long, 5, 6, room: 5) == [])
        let short = try #require(parsing(octets("90 80 7f 00")) { VP8Descriptor($0) })
        #expect(rewritten(short, 0x1234, 9) == octets("90 80 34"))
        let bare = try #require(parsing(octets("10 00")) { VP8Descriptor($0) })
        #expect(rewritten(bare, 1, 1) == [0x10])
    }

    @Test(
        arguments: [
            ("08 00", 1, nil, nil, nil, nil, true),
            ("48 00", 1, nil, nil, nil, nil, false),
            ("00 00", 1, nil, nil, nil, nil, false),
            ("88 7f 00", 2, 0x7f, nil, nil, nil, true),
            ("88 ffff 00", 3, 0x7fff, nil, nil, nil, true),
            // Descriptors with layers, in non-flexible and flexible mode. The second spatial layer does not begin a
            // picture.
            ("28 32 09 00", 3, nil, 1, 1, 9, false),
            ("28 10 09 00", 3, nil, 0, 0, 9, true),
            ("38 10 00", 2, nil, 0, 0, nil, true),
            // Descriptors with one and two references.
            ("78 10 02 00", 3, nil, 0, 0, nil, false),
            ("58 03 05 06 00", 4, nil, nil, nil, nil, false),
            // Descriptors with scalability structures, without and with sizes and pictures.
            ("0a 00 00", 2, nil, nil, nil, nil, true),
            ("0a 30 00010002 00030004 00", 10, nil, nil, nil, nil, true),
            ("0a 08 02 04 aa 0c aabbcc 00", 9, nil, nil, nil, nil, true),
            ("8e 8123 18 00010002 01 00 ff", 10, 0x123, nil, nil, nil, true),
        ] as [(String, Int, UInt16?, UInt8?, UInt8?, UInt8?, Bool)])
    func vp9DescriptorsAreRead(
        _ text: String, _ length: Int, _ picture: UInt16?, _ temporal: UInt8?, _ spatial: UInt8?, _ index: UInt8?,
        _ isKeyframe: Bool
    ) throws {
        let bytes = octets(text)
        let descriptor = try #require(parsing(bytes) { VP9Descriptor($0) })
        #expect(descriptor.length == length)
        #expect(descriptor.pictureID == picture)
        #expect(descriptor.temporalLayer == temporal)
        #expect(descriptor.spatialLayer == spatial)
        #expect(descriptor.temporalLayerZeroIndex == index)
        #expect(descriptor.isKeyframeStart == isKeyframe)
        #expect(parsing(bytes) { VideoPayloadFormat.vp9.isKeyframeStart($0) } == isKeyframe)
        for count in 0...length {
            #expect(parsing(Array(bytes.prefix(count))) { VP9Descriptor($0) } == nil, "\(count) bytes of \(text)")
        }
    }

    @Test func vp9RefersToAtMostThreePictures() {
        #expect(parsing(octets("58 03 05 07 08 00")) { VP9Descriptor($0) } == nil)
    }

    @Test(arguments: [
        // Single units: a slice, an IDR slice, the parameter sets.
        ("61 aa", false), ("65 aa", true), ("67 aa", true), ("68 aa", true), ("66 aa", false),
        // Aggregated: slices, and parameter sets with an IDR slice.
        ("78 0002 61aa 0001 61", false), ("78 0002 67aa 0001 68 0001 65", true), ("78 0001 61 0001 65", true),
        // Fragments: the beginning of an IDR slice, its middle, its end, and the beginning of another slice.
        ("7c 85 aa", true), ("7c 05 aa", false), ("7c 45 aa", false), ("7c 81 aa", false), ("7c 87 aa", true),
    ])
    func h264KeyframeStartsAreFound(_ text: String, _ isKeyframe: Bool) throws {
        let payload = try #require(parsing(octets(text)) { H264Payload($0) })
        #expect(payload.isKeyframeStart == isKeyframe)
        #expect(parsing(octets(text)) { VideoPayloadFormat.h264.isKeyframeStart($0) } == isKeyframe)
    }

    @Test(arguments: [
        "", "60", "79 0001 65", "7a 65", "7d 85 aa", "7f aa", "78", "78 00", "78 0000", "78 0001", "78 0002 67",
        "78 ffff 67", "78 0001 67 00", "78 0001 67 0000", "7c", "7c 85",
    ])
    func truncatedOrInterleavedH264IsRejected(_ text: String) {
        #expect(parsing(octets(text)) { H264Payload($0) } == nil)
    }

    @Test(
        arguments: [
            ("18 0a", true, false, false, 1), ("10 0a", false, false, false, 1), ("80 0a", false, true, false, 0),
            ("78 0a", true, false, true, 3),
        ] as [(String, Bool, Bool, Bool, UInt8)])
    func av1SequenceStartsAreFound(
        _ text: String, _ isKeyframe: Bool, _ continues: Bool, _ isContinued: Bool, _ elements: UInt8
    ) throws {
        let header = try #require(parsing(octets(text)) { AV1AggregationHeader($0) })
        #expect(header.isKeyframeStart == isKeyframe)
        #expect(header.continues == continues)
        #expect(header.isContinued == isContinued)
        #expect(header.elements == elements)
        #expect(parsing(octets(text)) { VideoPayloadFormat.av1.isKeyframeStart($0) } == isKeyframe)
    }

    @Test(arguments: ["", "18", "98 0a"]) func contradictoryAV1HeadersAreRejected(_ text: String) {
        #expect(parsing(octets(text)) { AV1AggregationHeader($0) } == nil)
    }

    @Test func theMandatoryFieldsOfADependencyDescriptorAreRead() throws {
        let plain = try #require(parsing(octets("c5 abcd")) { DependencyDescriptor($0) })
        #expect(plain.isFrameStart && plain.isFrameEnd && plain.templateID == 5 && plain.frameNumber == 0xabcd)
        #expect(!plain.isKeyframeStart && !plain.hasTemplateStructure && !plain.hasActiveDecodeTargets)
        let key = try #require(parsing(octets("80 0001 80")) { DependencyDescriptor($0) })
        #expect(key.isKeyframeStart && key.hasTemplateStructure && !key.hasActiveDecodeTargets)
        let targets = try #require(parsing(octets("80 0001 40")) { DependencyDescriptor($0) })
        #expect(!targets.isKeyframeStart && targets.hasActiveDecodeTargets)
        let later = try #require(parsing(octets("00 0001 80")) { DependencyDescriptor($0) })
        #expect(!later.isKeyframeStart)
        for count in 0..<3 {
            #expect(parsing([UInt8](repeating: 0xff, count: count)) { DependencyDescriptor($0) } == nil)
        }
    }

    @Test func randomPayloadsNeverTrap() {
        let seed = UInt64.random(in: 0 ... .max)
        print("payloads: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            parsing(bytes) { payload in
                for format in VideoPayloadFormat.allCases { _ = format.isKeyframeStart(payload) }
                _ = DependencyDescriptor(payload)
                if let descriptor = VP9Descriptor(payload) { #expect(descriptor.length < bytes.count, "seed \(seed)") }
            }
            guard let descriptor = parsing(bytes, { VP8Descriptor($0) }) else { continue }
            let same = rewritten(descriptor, descriptor.pictureID ?? 0, descriptor.temporalLayerZeroIndex ?? 0)
            #expect(same == Array(bytes.prefix(descriptor.length)), "seed \(seed)")
        }
    }
}
