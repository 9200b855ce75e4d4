import TestSupport
import Testing

@testable import RTC

/// Reads picture sizes from the first bytes of frames that libvpx and x264 encoded.
@Suite("Picture size from a keyframe") struct PictureSizeTests {
    @Test(
        "is read from the VP8 header",
        arguments: [
            ("10c3009d012a0005d0020847", 1280, 720), ("1034009d012a8002680101c7", 640, 360),
            ("7010009d012a4201b6000047", 322, 182), ("70b7019d012a800738040bc7", 1920, 1080),
            // The upper two bits of each dimension are the scaling (RFC 6386 §9.1).
            ("10c3009d012a0045d0c20847", 1280, 720),
        ] as [(String, UInt16, UInt16)])
    func vp8(_ text: String, _ width: UInt16, _ height: UInt16) {
        let payload = octets("90 80 01" + text)
        #expect(size(.vp8, payload) == PictureSize(width: width, height: height))
        for count in 0..<13 { #expect(size(.vp8, Array(payload.prefix(count))) == nil) }
    }

    @Test(
        "is read from the VP9 header",
        arguments: [
            ("82498342004ff02cf6003824", 1280, 720), ("a24983420009fe059ec00704", 1280, 720),
            ("824983420027f01676003824", 640, 360), ("a24983420004fe02cec00704", 640, 360),
            ("824983420014100b56003824", 322, 182), ("a2498342000282016ac00704", 322, 182),
            ("824983420077f04376003824", 1920, 1080), ("a2498342000efe086ec00704", 1920, 1080),
        ] as [(String, UInt16, UInt16)])
    func vp9(_ text: String, _ width: UInt16, _ height: UInt16) {
        let payload = octets("0c" + text)
        #expect(size(.vp9, payload) == PictureSize(width: width, height: height))
        for count in 0..<10 { #expect(size(.vp9, Array(payload.prefix(count))) == nil) }
    }

    @Test("is the size of the highest layer if the VP9 descriptor lists layers")
    func vp9Layers() {
        let payload = octets("2a 10 00 38 0140 00b4 0280 0168 01 00" + "824983420014100b56003824")
        #expect(size(.vp9, payload) == PictureSize(width: 640, height: 360))
    }

    static let sets: [(String, UInt16, UInt16)] = [
        ("6742c01fd9005005bb011000000300100000030020f1832480", 1280, 720),
        ("6764001facd9405005bb011000000300100000030020f1831960", 1280, 720),
        ("67f4001f919b280a00b76022000003000200000300041e30632c", 1280, 720),
        ("6742c016d900a02ff97011000003000100000300020f162e48", 640, 360),
        ("67640016acd940a02ff97011000003000100000300020f162d96", 640, 360),
        ("67f40016919b281405ff1380880000030008000003001078b16cb0", 640, 360),
        ("6742c00bd901519e226c044000000300400000030083c50a92", 322, 182),
        ("6764000cacd941519e226c044000000300400000030083c50a6580", 322, 182),
        ("67f4000c919b282a33c7c5e022000003000200000300041e28532c", 322, 182),
        ("6742c028d900780227e5c044000003000400000300083c60c920", 1920, 1080),
        ("67640028acd940780227e5c044000003000400000300083c60c658", 1920, 1080),
        ("67f40028919b280f0044fc4e022000000300200000030041e30632c0", 1920, 1080),
        // An interlaced video.
        ("6764001eacd940b424d8088000000300800000190f8a14cb", 720, 576),
    ]

    @Test("is read from H.264's sequence parameter set, alone or aggregated", arguments: sets)
    func h264(_ text: String, _ width: UInt16, _ height: UInt16) {
        let unit = octets(text)
        #expect(size(.h264, unit) == PictureSize(width: width, height: height))
        let aggregated = octets("78 0002 09f0") + [0, UInt8(unit.count)] + unit + octets("0002 68ce")
        #expect(size(.h264, aggregated) == PictureSize(width: width, height: height))
        for count in 0..<8 { #expect(size(.h264, Array(unit.prefix(count))) == nil) }
    }

    @Test("is nil for other frames, for empty sizes and for sizes that are too large")
    func none() {
        #expect(size(.vp8, octets("90 80 01 11c3009d012a0005d0020847")) == nil)
        #expect(size(.vp8, octets("90 80 01 10c3009d012b0005d0020847")) == nil)
        #expect(size(.vp8, octets("90 80 01 10c3009d012a0000d0020847")) == nil)
        #expect(size(.vp8, octets("90 80 01 10c3009d012a000500000847")) == nil)
        // The maximum is 16 383 in VP8 and 65 536 in VP9.
        #expect(size(.vp8, octets("90 80 01 10c3009d012affffffff0847")) == PictureSize(width: 16383, height: 16383))
        #expect(size(.vp9, octets("0c 82498342 0ffffffff6003824")) == nil)
        #expect(size(.h264, octets("65 8880")) == nil)
        // Only zeros, which encode a number with more than 32 bits.
        #expect(size(.h264, octets("6742c01f") + [UInt8](repeating: 0, count: 40)) == nil)
        // Cropping by 2^31 columns, which would result in a negative size.
        #expect(size(.h264, octets("6742c01f d9 0000000080000000") + [UInt8](repeating: 0xff, count: 40)) == nil)
        #expect(size(.av1, octets("18 0a0b00000042abbfc3")) == nil)
    }

    @Test("never traps on random bytes", arguments: [3, 4] as [UInt64])
    func anything(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let known =
            Self.sets.map { octets($0.0) } + ["90800110c3009d012a0005d0020847", "0c82498342004ff02cf6"].map(octets)
        for _ in 0..<20_000 {
            var bytes = known.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            for format in VideoPayloadFormat.allCases {
                guard let size = size(format, bytes) else { continue }
                #expect(size.width > 0 && size.height > 0 && size.area <= 16384 * 16384, "seed \(seed)")
            }
        }
    }

    private func size(_ format: VideoPayloadFormat, _ payload: [UInt8]) -> PictureSize? {
        parsing(payload) { format.pictureSize($0) }
    }
}
