import MediaFiles
import RTC

extension FuzzTarget {
    /// Fuzzes recordings of streams with packets, reports and mutes in any order. Each file must begin and end once, contain blocks
    /// between them, and be complete.
    static let mediaRecorder = FuzzTarget("media-recorder", longestInput: 800) { input throws(BrokenProperty) in
        var script = RecorderScript(InputReader(input))
        while try script.step() {}
        try script.finish()
    }
}

/// Reads events for a recorder from the input of a fuzzer.
private struct RecorderScript {
    private var reader: InputReader
    private var recorder: MediaRecorder
    private var now = MediaTime(nanoseconds: 1_000_000_000)
    private var (video, audio) = (
        (number: Int64(1_000), timestamp: UInt32(0)), (number: Int64(1_000), timestamp: UInt32(0))
    )
    private var writer: WebMWriter?
    private var file: [UInt8] = []

    init(_ reader: InputReader) {
        self.reader = reader
        let first = self.reader.byte()
        recorder = MediaRecorder(hasAudio: first & 1 == 0, hasVideo: first & 2 == 0)
    }

    /// - Returns: false at the end of the input.
    mutating func step() throws(BrokenProperty) -> Bool {
        guard !reader.isEmpty else { return false }
        let what = reader.byte()
        now = now + .milliseconds(Int64(reader.byte()) * 4)
        let isOn = what & 0x80 != 0
        switch what & 7 {
        case 0, 1, 2:
            Self.advance(&video, what, reader.byte())
            recorder.take(isVideo: true, packet(video, marker: isOn), now: now)
        case 3, 4:
            Self.advance(&audio, what, reader.byte())
            recorder.take(isVideo: false, packet(audio, marker: isOn), now: now)
        case 5:
            let formats = VideoPayloadFormat.allCases.map(Optional.some) + [nil]
            _ = recorder.begin(formats[Int(what >> 3 & 7) % formats.count], isNew: isOn, now: now)
        case 6:
            let isVideo = what & 0x40 == 0
            recorder.report(
                isVideo: isVideo, ntp: NTPTime(0xe000_0000_0000_0000 + UInt64(reader.byte()) << 30),
                timestamp: isVideo ? video.timestamp : audio.timestamp, arrival: now)
        default:
            if what & 0x40 == 0 { recorder.setForwarded(isVideo: what & 0x20 == 0, isOn, now: now) }
            recorder.tick(now: now)
        }
        try write()
        return true
    }

    private static func advance(_ track: inout (number: Int64, timestamp: UInt32), _ what: UInt8, _ by: UInt8) {
        track.number &+= what & 0x40 == 0 ? 1 : Int64(Int8(bitPattern: by))
        if what & 0x20 != 0 { track.timestamp &+= UInt32(by) << UInt32(what >> 2 & 14) }
    }

    private mutating func packet(_ track: (number: Int64, timestamp: UInt32), marker: Bool) -> PacketOrder.Packet {
        PacketOrder.Packet(
            number: track.number, timestamp: track.timestamp, marker: marker,
            payload: reader.bytes(Int(reader.byte() & 63)), arrival: now)
    }

    mutating func finish() throws(BrokenProperty) {
        recorder.finish(now: now)
        try write()
        try require(writer == nil, "a file has no end")
    }

    private mutating func write() throws(BrokenProperty) {
        for output in recorder.takeOutputs() {
            switch output {
            case .begin(let video, at: _):
                try require(writer == nil, "a file begins in another one")
                writer = WebMWriter(video: video, date: 0, application: "fuzz")
                try require(writer != nil, "\(video) cannot be written")
                file = []
            case .block(let block):
                try require(block.time >= 0 && !block.bytes.isEmpty, "\(block) is not in the file")
                guard let edits = writer?.write(block) else { throw BrokenProperty(description: "a block has no file") }
                for edit in edits { edit.apply(to: &file) }
            case .end:
                for edit in writer?.finish() ?? [] { edit.apply(to: &file) }
                writer = nil
                try require(file.isEmpty || WebMRecovery.finish(file) == file, "the file is not complete")
            case .requestKeyframe, .size, .lost: break
            }
        }
    }
}
