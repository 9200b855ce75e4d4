import MediaFiles
import RTC

extension FuzzTarget {
    /// Fuzzes the IVF parser. An accepted file must survive parsing, encoding and parsing again.
    static let ivf = FuzzTarget("ivf", longestInput: 600) { input throws(BrokenProperty) in
        guard let file = try? input.withUnsafeBytes({ try IVFFile($0) }) else { return }
        try require(
            file.frames.allSatisfy { !$0.range.isEmpty && $0.range.upperBound <= input.count },
            "a frame is empty or beyond the end: \(file.frames)")
        var again = file.header.bytes
        for frame in file.frames {
            again += IVFFrame.header(time: frame.time, size: frame.range.count) + input[frame.range]
            _ = input[frame.range].withUnsafeBytes { VP8FrameHeader($0) }
        }
        guard let second = try? again.withUnsafeBytes({ try IVFFile($0) }) else {
            throw BrokenProperty(description: "the encoded file cannot be parsed")
        }
        try require(
            second.frames.map(\.time) == file.frames.map(\.time)
                && second.frames.map { Array(again[$0.range]) } == file.frames.map { Array(input[$0.range]) },
            "the frames are read back differently")
        try require(!second.isTruncated, "the encoded file is truncated")
    }

    /// Fuzzes the Ogg parser. The input is used with its own checksums and with corrected ones, because a fuzzer cannot guess a
    /// checksum.
    static let ogg = FuzzTarget("ogg", longestInput: 1_200) { input throws(BrokenProperty) in
        try checkOgg(input)
        try checkOgg(withChecksums(input))
    }

    private static func checkOgg(_ input: [UInt8]) throws(BrokenProperty) {
        if let file = try? input.withUnsafeBytes({ try OpusFile($0) }) {
            var time = 0
            for packet in file.packets {
                try require(packet.time == time, "a packet starts at \(packet.time) instead of \(time)")
                try require(
                    (1...OpusPacket.maxSamples).contains(packet.samples)
                        && packet.range.upperBound <= file.bytes.count,
                    "\(packet) is invalid")
                time += packet.samples
            }
            try require(file.samples == time, "the file has \(file.samples) samples instead of \(time)")
        }
        guard let file = try? input.withUnsafeBytes({ try OggFile($0, startingWith: OpusHead.magic) }) else { return }
        try require(file.bytes.count <= input.count, "the output is longer than the input")
        let packets = file.packets.map { Array(file.bytes[$0]) }
        var writer = OggWriter(serial: 1)
        var again: [UInt8] = []
        for packet in packets {
            _ = packet.withUnsafeBytes { writer.append($0, granulePosition: 0) }
            again += writer.page()
        }
        guard !packets.isEmpty else { return }
        let second = try? again.withUnsafeBytes { try OggFile($0, startingWith: OpusHead.magic) }
        try require(
            second?.packets.map { Array(second?.bytes[$0] ?? []) } == packets && second?.isDamaged == false,
            "\(packets) are read back as \(second as Any)")
    }

    /// Corrects the checksums of everything that looks like a page. Computes them bit by bit (RFC 3533).
    private static func withChecksums(_ input: [UInt8]) -> [UInt8] {
        var bytes = input
        var offset = 0
        while offset + 27 <= bytes.count {
            guard bytes[offset..<offset + 4].elementsEqual(Array("OggS".utf8)) else {
                offset += 1
                continue
            }
            let body = offset + 27 + Int(bytes[offset + 26])
            guard body <= bytes.count else { break }
            let end = body + bytes[offset + 27..<body].reduce(0) { $0 + Int($1) }
            guard end <= bytes.count else { break }
            for index in 22..<26 { bytes[offset + index] = 0 }
            var checksum: UInt32 = 0
            for byte in bytes[offset..<end] {
                checksum ^= UInt32(byte) << 24
                for _ in 0..<8 { checksum = checksum << 1 ^ (checksum >> 31 == 1 ? 0x04c1_1db7 : 0) }
            }
            for index in 0..<4 { bytes[offset + 22 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(8 * index)) }
            offset = end
        }
        return bytes
    }

    /// Fuzzes the recovery of recordings after a crash. What it finishes must be finished: a second pass changes nothing.
    static let recovery = FuzzTarget("webm-recovery", longestInput: 1_200) { input throws(BrokenProperty) in
        guard let finished = WebMRecovery.finish(input) else { return }
        try require(WebMRecovery.finish(finished) == finished, "a second pass changes the file")
    }

    /// Fuzzes recordings of media packets from a server. The recorded file must be valid at any time.
    static let recordings = FuzzTarget("recordings", longestInput: 800) { input throws(BrokenProperty) in
        var reader = InputReader(input)
        var (frames, packets) = (FrameOrder(.video), FrameOrder(.audio))
        var (video, audio) = (VideoRecording(), AudioRecording(serial: 1))
        var (pictures, sounds): ([UInt8], [UInt8]) = ([], [])
        var number: Int64 = 0x1_0000
        var timestamp: UInt32 = 0
        var now = MediaTime(nanoseconds: 0)
        while !reader.isEmpty {
            let what = reader.byte()
            number &+= Int64(Int8(bitPattern: reader.byte()) / 16) &+ (what & 0x40 == 0 ? 1 : 0x1_0000)
            timestamp &+= UInt32(reader.byte()) << UInt32(what & 31)
            now = MediaTime(nanoseconds: now.nanoseconds &+ Int64(reader.byte()) * 4_000_000)
            let packet = PacketOrder.Packet(
                number: number, timestamp: timestamp, marker: what & 0x80 != 0,
                payload: reader.bytes(Int(reader.byte() & 31)))
            if what & 0x20 == 0 {
                for frame in frames.take(packet, at: now) { video.take(frame.bytes, at: frame.time, into: &pictures) }
            } else {
                for frame in packets.take(packet, at: now) { audio.take(frame.bytes, at: frame.time, into: &sounds) }
            }
        }
        for frame in frames.finish(at: now) { video.take(frame.bytes, at: frame.time, into: &pictures) }
        for frame in packets.finish(at: now) { audio.take(frame.bytes, at: frame.time, into: &sounds) }
        audio.finish(into: &sounds)
        if !pictures.isEmpty {
            let file = try? pictures.withUnsafeBytes { try IVFFile($0) }
            try require(
                file?.isTruncated == false && file?.frames.count == video.frames, "invalid video file: \(pictures)")
        }
        if !sounds.isEmpty {
            let file = try? sounds.withUnsafeBytes { try OpusFile($0) }
            try require(
                file?.isDamaged == false && file?.packets.count == audio.packets, "invalid audio file: \(sounds)")
        }
    }
}
