import RTC
import Robots

extension FuzzTarget {
    /// A file of video. What is read of it is written again, and read the same.
    static let ivf = FuzzTarget("ivf", longestInput: 600) { input throws(BrokenProperty) in
        guard let file = try? input.withUnsafeBytes({ try IVFFile($0) }) else { return }
        try require(
            file.frames.allSatisfy { !$0.range.isEmpty && $0.range.upperBound <= input.count },
            "a frame is none, or beyond the end: \(file.frames)")
        var again = file.header.bytes
        for frame in file.frames {
            again += IVFFrame.header(time: frame.time, size: frame.range.count) + input[frame.range]
            _ = input[frame.range].withUnsafeBytes { VP8FrameHeader($0) }
        }
        guard let second = try? again.withUnsafeBytes({ try IVFFile($0) }) else {
            throw BrokenProperty(description: "what was written is not read")
        }
        try require(
            second.frames.map(\.time) == file.frames.map(\.time)
                && second.frames.map { Array(again[$0.range]) } == file.frames.map { Array(input[$0.range]) },
            "the frames are others when they were written again")
        try require(!second.isTruncated, "what was written is cut off")
    }

    /// A file of sound, with its checksums as they are and with checksums that fit: no fuzzer guesses one.
    static let ogg = FuzzTarget("ogg", longestInput: 1_200) { input throws(BrokenProperty) in
        try checkOgg(input)
        try checkOgg(withChecksums(input))
    }

    private static func checkOgg(_ input: [UInt8]) throws(BrokenProperty) {
        if let file = try? input.withUnsafeBytes({ try OpusFile($0) }) {
            var time = 0
            for packet in file.packets {
                try require(packet.time == time, "a packet begins at \(packet.time) and not at \(time)")
                try require(
                    (1...OpusPacket.mostSamples).contains(packet.samples)
                        && packet.range.upperBound <= file.bytes.count,
                    "\(packet) is none")
                time += packet.samples
            }
            try require(file.samples == time, "it has \(file.samples) samples and not \(time)")
        }
        guard let file = try? input.withUnsafeBytes({ try OggFile($0, startingWith: OpusHead.magic) }) else { return }
        try require(file.bytes.count <= input.count, "more comes out than went in")
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
            "\(packets) are read as \(second as Any)")
    }

    /// The same file, in which what looks like a page has the checksum of RFC 3533, computed bit by bit.
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

    /// Packets of media as a server may send them, and what a recorder makes of them: files that are whole at any time.
    static let recordings = FuzzTarget("recordings", longestInput: 800) { input throws(BrokenProperty) in
        var reader = InputReader(input)
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
                video.take(packet, at: now, into: &pictures)
            } else {
                audio.take(packet, at: now, into: &sounds)
            }
        }
        video.finish(at: now, into: &pictures)
        audio.finish(at: now, into: &sounds)
        if !pictures.isEmpty {
            let file = try? pictures.withUnsafeBytes { try IVFFile($0) }
            try require(
                file?.isTruncated == false && file?.frames.count == video.frames, "no file of pictures: \(pictures)")
        }
        if !sounds.isEmpty {
            let file = try? sounds.withUnsafeBytes { try OpusFile($0) }
            try require(
                file?.isDamaged == false && file?.packets.count == audio.packets, "no file of sound: \(sounds)")
        }
    }
}
