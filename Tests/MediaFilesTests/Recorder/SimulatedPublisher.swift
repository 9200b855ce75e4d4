import RTC
import TestSupport
import Testing

@testable import MediaFiles

/// A publisher that sends made-up frames over a network with losses to a `MediaRecorder`, in simulated time.
///
/// Each frame and each audio packet contains the time at which it was captured, so tests can compare it with its time in the file.
struct SimulatedPublisher {
    /// What the publisher sends, and what the network does. Times are in milliseconds.
    struct Script {
        var videoStart: Int64 = 0
        var audioStart: Int64 = 0
        /// How fast the publisher's clock and the clock of its sound card are.
        var clock = 1.0
        var card = 1.0
        /// The time between the sender reports of audio. libwebrtc sends one each five seconds, and for video each second.
        var audioReportInterval: Int64 = 5_000
        /// The share of packets that are lost at first. Video is retransmitted 100 ms later, audio is not.
        var loss = 0.0
        /// Whether everything that is sent at this time is lost for good.
        var isOutage: (Int64) -> Bool = { _ in false }
        var isAudioMuted: (Int64) -> Bool = { _ in false }
        var size: (Int64) -> PictureSize = { _ in PictureSize(width: 320, height: 240) }
        var sendsKeyframes = true
        /// Whether the frame at this time is a keyframe although none was requested.
        var isKeyframe: (Int64) -> Bool = { _ in false }
        var hasAudio = true
    }

    /// A file that the recorder has made.
    struct File {
        var video: RecordedVideo
        var start: Int64
        var blocks: [WebMWriter.Block] = []
        var end: Int64?
        var memory: MemoryFile

        var videoBlocks: [WebMWriter.Block] { blocks.filter(\.isVideo) }
        var audioBlocks: [WebMWriter.Block] { blocks.filter { !$0.isVideo } }
    }

    private struct Flight {
        var arrival: Int64
        var isVideo: Bool
        var packet: PacketOrder.Packet
    }

    var script: Script
    private(set) var recorder: MediaRecorder
    private(set) var files: [File] = []
    /// The times of requests for keyframes, in milliseconds.
    private(set) var requests: [Int64] = []
    private(set) var sizes: [PictureSize] = []
    private(set) var losses: [MediaInterval] = []
    private(set) var now: Int64 = 0
    private var random: SeededGenerator
    private var flights: [Flight] = []
    private var wantsKeyframe = false
    private var numbers: (video: Int64, audio: Int64) = (100, 200)
    private var isMuted = false

    init(_ script: Script, seed: UInt64) {
        self.script = script
        random = SeededGenerator(seed: seed)
        recorder = MediaRecorder(hasAudio: script.hasAudio, hasVideo: true)
        _ = recorder.begin(.vp8, isNew: true, now: time(0))
        _ = recorder.begin(nil, isNew: true, now: time(0))
    }

    /// Runs until this time.
    mutating func run(until end: Int64) throws {
        while now < end {
            send()
            flights.sort { $0.arrival < $1.arrival }
            while let flight = flights.first, flight.arrival <= now * 1_000 {
                flights.removeFirst()
                recorder.take(isVideo: flight.isVideo, flight.packet, now: time(now))
            }
            if now % 20 == 0 { recorder.tick(now: time(now)) }
            try collect()
            now += 10
        }
    }

    mutating func finish() throws {
        recorder.finish(now: time(now))
        try collect()
    }

    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * 1_000_000) }

    private mutating func send() {
        if now % 40 == 0, now >= script.videoStart { sendFrame() }
        let muted = script.isAudioMuted(now)
        if muted != isMuted {
            isMuted = muted
            recorder.setForwarded(isVideo: false, !muted, now: time(now))
            if !muted { _ = recorder.begin(nil, isNew: false, now: time(now)) }
        }
        if now % 20 == 0, now >= script.audioStart, !muted, script.hasAudio {
            numbers.audio += 1
            dispatch(isVideo: false, numbers.audio, marker: false, [0xf8] + stamp())
        }
        report()
    }

    private mutating func sendFrame() {
        let isKeyframe = (wantsKeyframe || script.isKeyframe(now)) && script.sendsKeyframes
        if isKeyframe { wantsKeyframe = false }
        var frame: [UInt8] = isKeyframe ? [0x10, 0, 0, 0x9d, 0x01, 0x2a] : [0x11, 0, 0]
        if isKeyframe {
            frame.append(littleEndian: script.size(now).width)
            frame.append(littleEndian: script.size(now).height)
        }
        frame += [UInt8](repeating: 7, count: isKeyframe ? 3_000 : 900) + stamp()
        var packetizer = VP8Packetizer(pictureID: 1)
        var payloads: [(payload: [UInt8], marker: Bool)] = []
        frame.withUnsafeBytes { packetizer.cut($0) { payloads.append((Array($0), $1)) } }
        for (payload, marker) in payloads {
            numbers.video += 1
            dispatch(isVideo: true, numbers.video, marker: marker, payload)
        }
    }

    /// The current time in the eight last bytes of a frame.
    private func stamp() -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: now >> (56 - 8 * $0)) } }

    static func stamp(of bytes: [UInt8]) -> Int64 { bytes.suffix(8).reduce(0) { $0 << 8 | Int64($1) } }

    private func timestamp(isVideo: Bool) -> UInt32 {
        let ticks = Double(now) * (isVideo ? 90 * script.clock : 48 * script.card)
        return UInt32(truncatingIfNeeded: Int64(ticks.rounded()) + (isVideo ? 1_000_000 : 4_294_000_000))
    }

    private mutating func dispatch(isVideo: Bool, _ number: Int64, marker: Bool, _ payload: [UInt8]) {
        guard !script.isOutage(now) else { return }
        let isLost = Double.random(in: 0..<1, using: &random) < script.loss
        if isLost, !isVideo { return }
        let delay = Int64.random(in: 20_000...50_000, using: &random) + (isLost ? 100_000 : 0)
        let arrival = now * 1_000 + delay
        let packet = PacketOrder.Packet(
            number: number, timestamp: timestamp(isVideo: isVideo), marker: marker, payload: payload,
            arrival: MediaTime(nanoseconds: arrival * 1_000))
        flights.append(Flight(arrival: arrival, isVideo: isVideo, packet: packet))
    }

    private mutating func report() {
        let ntp = NTPTime(0xe000_0000_0000_0000) + MediaInterval(nanoseconds: Int64(Double(now) * script.clock * 1e6))
        for isVideo in [true, false] {
            let (start, interval) =
                isVideo ? (script.videoStart, 1_000) : (script.audioStart, script.audioReportInterval)
            guard now > start, (now - start) % interval == 500 else { continue }
            let arrival = now * 1_000 + Int64.random(in: 20_000...50_000, using: &random)
            recorder.report(
                isVideo: isVideo, ntp: ntp, timestamp: timestamp(isVideo: isVideo),
                arrival: MediaTime(nanoseconds: arrival * 1_000))
        }
    }

    private mutating func collect() throws {
        for output in recorder.takeOutputs() {
            switch output {
            case .begin(let video, let start):
                files.append(File(video: video, start: start.nanoseconds / 1_000_000, memory: try MemoryFile(video)))
            case .block(let block):
                files[files.count - 1].blocks.append(block)
                files[files.count - 1].memory.write(block)
            case .end(let end):
                files[files.count - 1].end = end.nanoseconds / 1_000_000
                files[files.count - 1].memory.finish()
            case .requestKeyframe:
                requests.append(now)
                wantsKeyframe = true
            case .size(let size, at: _): sizes.append(size)
            case .lost(let interval, at: _): losses.append(interval)
            }
        }
    }
}
