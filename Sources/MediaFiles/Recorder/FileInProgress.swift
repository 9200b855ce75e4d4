import RTC

/// The file that a stream is being written to: its times, and audio without gaps.
struct FileInProgress: Sendable {
    /// The codec in the header of a file that begins with audio alone. Browsers send it unless they are asked for another one.
    static let assumedVideo = RecordedVideo.vp8
    /// 20 ms of silence (RFC 6716): CELT, fullband, one frame.
    static let silence: [UInt8] = [0xf8, 0xff, 0xfe]
    /// The duration of `silence`.
    static let silenceLength = MediaInterval.milliseconds(20)
    /// How long a gap is filled with packets that decoders conceal, before silence follows. Longer concealment sounds strange.
    static let maxConcealed = MediaInterval.milliseconds(100)

    /// nil until the file has video.
    var video: RecordedVideo?
    /// The time of the file's first block.
    let start: MediaTime
    /// The time of the last video frame.
    private(set) var lastVideo: MediaTime?
    /// The end of the audio so far.
    private var audioEnd: MediaTime
    /// How much of the current gap was filled with packets that decoders conceal.
    private var concealed = MediaInterval.zero
    /// The first byte of the last audio packet that was received; nil before it.
    private var configuration: UInt8?

    init(video: RecordedVideo?, start: MediaTime) { (self.video, self.start, audioEnd) = (video, start, start) }

    /// Whether the file's header fits this video.
    func accepts(_ video: RecordedVideo) -> Bool { video == self.video ?? Self.assumedVideo }

    /// Writes a block. Drops audio that more than half overlaps with audio that was written: it came too late and was replaced by
    /// silence, or the audio is corrected to an earlier time.
    mutating func write(_ block: TimedBlock, _ outputs: inout [MediaRecorder.Output]) {
        guard block.isVideo else {
            let length = Self.length(block.bytes)
            guard audioEnd - block.time <= MediaInterval(nanoseconds: length.nanoseconds / 2) else { return }
            (configuration, concealed) = (block.bytes.first, .zero)
            audioEnd = block.time + length
            return append(block.bytes, isVideo: false, at: block.time, isKeyframe: true, &outputs)
        }
        lastVideo = block.time
        append(block.bytes, isVideo: true, at: block.time, isKeyframe: block.isKeyframe, &outputs)
    }

    /// Fills audio up to a time, with whole packets.
    ///
    /// - Parameters:
    ///   - isMuted: whether no audio is expected, so that nothing is concealed.
    ///   - beforeAudio: whether audio follows at this time. It then may overlap by half a packet.
    mutating func fill(
        to time: MediaTime, isMuted: Bool, beforeAudio: Bool = false, _ outputs: inout [MediaRecorder.Output]
    ) {
        while true {
            let concealment = isMuted ? nil : self.concealment
            let packet = concealment ?? Self.silence
            let length = Self.length(packet)
            let needed = beforeAudio ? MediaInterval(nanoseconds: length.nanoseconds / 2) : length
            guard time - audioEnd >= needed else { return }
            if concealment != nil { concealed = MediaInterval(nanoseconds: concealed.nanoseconds + length.nanoseconds) }
            append(packet, isVideo: false, at: audioEnd, isKeyframe: true, &outputs)
            audioEnd = audioEnd + length
        }
    }

    /// A packet without data, which decoders treat like a lost one (RFC 6716 §3.2.1); nil if the gap is too long for it.
    private var concealment: [UInt8]? {
        guard let configuration, concealed < Self.maxConcealed else { return nil }
        return [configuration & 0xfc]
    }

    mutating func end(_ outputs: inout [MediaRecorder.Output]) {
        outputs.append(.end(at: max(audioEnd, lastVideo ?? audioEnd)))
    }

    private func append(
        _ bytes: [UInt8], isVideo: Bool, at time: MediaTime, isKeyframe: Bool,
        _ outputs: inout [MediaRecorder.Output]
    ) {
        let milliseconds = (time + .microseconds(500) - start).milliseconds
        outputs.append(
            .block(
                WebMWriter.Block(
                    isVideo: isVideo, time: max(0, milliseconds), isKeyframe: isKeyframe, bytes: bytes)))
    }

    private static func length(_ packet: [UInt8]) -> MediaInterval {
        let samples = packet.withUnsafeBytes { OpusPacket.samples($0) } ?? 0
        return MediaInterval(nanoseconds: Int64(samples) * 1_000_000_000 / Int64(OpusPacket.clockRate))
    }
}
