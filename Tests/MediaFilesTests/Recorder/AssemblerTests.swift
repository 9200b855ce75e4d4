import RTC
import Testing

@testable import MediaFiles

/// Cuts Annex B streams and VP9 frames from ffmpeg into RTP payloads, and lets ffmpeg decode what the recorder makes of them.
@Suite("Recording H.264, VP9 and AV1")
struct AssemblerTests {
    /// The payloads of one frame; the last has the marker.
    private typealias Payloads = [[UInt8]]

    private static let maxPayload = 1_100

    private static func encode(_ codec: [String], size: String = "320x240", seconds: Int = 4) throws -> [UInt8] {
        try FFmpegTools.run(
            "ffmpeg", ["-f", "lavfi", "-i", "testsrc=size=\(size):rate=25:duration=\(seconds)"] + codec + ["-"])
    }

    private static let h264 = [
        "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-pix_fmt", "yuv420p", "-g", "50", "-aud", "1",
    ]

    /// Splits an Annex B stream into access units, which begin with a delimiter.
    private static func accessUnits(_ stream: [UInt8]) -> [[[UInt8]]] {
        var units: [[UInt8]] = []
        var start = 0
        var index = 0
        while index + 3 < stream.count {
            guard stream[index] == 0, stream[index + 1] == 0, stream[index + 2] == 1 else {
                index += 1
                continue
            }
            if start > 0 { units.append(trimmed(stream[start..<index])) }
            start = index + 3
            index = start
        }
        units.append(trimmed(stream[start...]))
        var frames: [[[UInt8]]] = []
        for unit in units {
            if unit[0] & 0x1f == 9 { frames.append([]) }
            frames[frames.count - 1].append(unit)
        }
        return frames
    }

    private static func trimmed(_ unit: ArraySlice<UInt8>) -> [UInt8] {
        var unit = unit
        while unit.last == 0 { unit.removeLast() }
        return Array(unit)
    }

    /// Small units together (STAP-A), large ones in fragments (FU-A).
    private static func payloads(_ units: [[UInt8]]) -> Payloads {
        var payloads: Payloads = []
        let small = units.filter { $0.count < 200 }
        if small.count > 1 {
            payloads.append(small.reduce(into: [24]) { $0 += [UInt8($1.count >> 8), UInt8($1.count & 255)] + $1 })
        } else {
            payloads += small
        }
        for unit in units where unit.count >= 200 {
            guard unit.count > maxPayload else {
                payloads.append(unit)
                continue
            }
            let chunks = stride(from: 1, to: unit.count, by: maxPayload).map {
                unit[$0..<min(unit.count, $0 + maxPayload)]
            }
            for (index, chunk) in chunks.enumerated() {
                let flags: UInt8 = (index == 0 ? 0x80 : 0) | (index == chunks.count - 1 ? 0x40 : 0)
                payloads.append([unit[0] & 0xe0 | 28, flags | unit[0] & 0x1f] + chunk)
            }
        }
        return payloads
    }

    private static func vp9Payloads(_ frame: [UInt8], isKeyframe: Bool) -> Payloads {
        let chunks = stride(from: 0, to: frame.count, by: maxPayload).map {
            frame[$0..<min(frame.count, $0 + maxPayload)]
        }
        return chunks.enumerated().map { index, chunk in
            let flags: UInt8 =
                (isKeyframe ? 0 : 0x40) | (index == 0 ? 0x08 : 0) | (index == chunks.count - 1 ? 0x04 : 0)
            return [flags] + chunk
        }
    }

    /// Records frames of 40 ms, without a frame whose index is in `lost`.
    private static func record(
        _ format: VideoPayloadFormat, _ frames: [Payloads], lost: Set<Int> = []
    ) throws -> [(video: RecordedVideo, file: MemoryFile)] {
        var recorder = MediaRecorder(hasAudio: false, hasVideo: true)
        func time(_ frame: Int) -> MediaTime { MediaTime(nanoseconds: Int64(frame) * 40_000_000) }
        let isSupported = recorder.begin(format, isNew: true, now: time(0))
        #expect(isSupported)
        var files: [(video: RecordedVideo, file: MemoryFile)] = []
        func write() throws {
            for output in recorder.takeOutputs() {
                switch output {
                case .begin(let video, at: _): files.append((video, try MemoryFile(video)))
                case .block(let block): files[files.count - 1].file.write(block)
                case .end: files[files.count - 1].file.finish()
                case .requestKeyframe, .size, .lost: break
                }
            }
        }
        var number: Int64 = 0
        for (index, payloads) in frames.enumerated() {
            for (position, payload) in payloads.enumerated() {
                number += 1
                if lost.contains(index) { continue }
                recorder.take(
                    isVideo: true,
                    PacketOrder.Packet(
                        number: number, timestamp: UInt32(index) * 3_600, marker: position == payloads.count - 1,
                        payload: payload, arrival: time(index)), now: time(index))
            }
            recorder.tick(now: time(index))
            try write()
        }
        recorder.finish(now: time(frames.count))
        try write()
        return files
    }

    private static func hashes(_ bytes: [UInt8]) throws -> [String] {
        try FFmpegTools.withFile(bytes) { path in
            let text = try FFmpegTools.run("ffmpeg", ["-i", path, "-f", "framemd5", "-fps_mode", "passthrough", "-"])
            return String(decoding: text, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }.map {
                String($0.split(separator: ",").last ?? "")
            }
        }
    }

    @Test("H.264 in fragments and aggregates decodes to the same frames", .enabled(if: FFmpegTools.areHere))
    func h264() throws {
        let stream = try Self.encode(Self.h264 + ["-f", "h264"])
        let frames = Self.accessUnits(stream).map(Self.payloads)
        #expect(frames.count == 100)
        let files = try Self.record(.h264, frames)
        let file = try #require(files.first)
        #expect(files.count == 1 && file.video.fileExtension == "mkv")
        #expect(try Self.hashes(file.file.bytes) == Self.hashes(stream))
        #expect(try FFmpegTools.probe(file.file.bytes, "stream=codec_name,width,height") == ["h264,320,240"])
    }

    @Test("after a lost frame H.264 continues at the next keyframe", .enabled(if: FFmpegTools.areHere))
    func loss() throws {
        let stream = try Self.encode(Self.h264 + ["-f", "h264"])
        let files = try Self.record(.h264, Self.accessUnits(stream).map(Self.payloads), lost: [20])
        let hashes = try Self.hashes(try #require(files.first).file.bytes)
        #expect(
            hashes == (try Self.hashes(stream)).enumerated().filter { !(20..<50).contains($0.offset) }.map(\.element))
    }

    @Test("H.264 of another size begins another file", .enabled(if: FFmpegTools.areHere))
    func h264Sizes() throws {
        let streams = try ["320x240", "640x480"].map {
            try Self.encode(Self.h264 + ["-f", "h264"], size: $0, seconds: 2)
        }
        let files = try Self.record(.h264, streams.flatMap { Self.accessUnits($0).map(Self.payloads) })
        #expect(files.count == 2)
        for (file, size) in zip(files, ["h264,320,240", "h264,640,480"]) {
            #expect(try FFmpegTools.probe(file.file.bytes, "stream=codec_name,width,height") == [size])
            #expect(try Self.hashes(file.file.bytes).count == 50)
        }
    }

    /// A sequence parameter set that ends with this byte, a picture parameter set and an IDR slice in one payload (STAP-A).
    private static func keyframe(parameters: UInt8) -> [UInt8] {
        let units: [[UInt8]] = [[0x67, 66, 0, 30, parameters], [0x68, 1], [0x65, 1, 2, 3]]
        return units.reduce(into: [24]) { $0 += [0, UInt8($1.count)] + $1 }
    }

    @Test("the files of a stream whose parameters change every two seconds follow each other within a frame")
    func contiguous() {
        var recorder = MediaRecorder(hasAudio: false, hasVideo: true)
        func time(_ frame: Int) -> MediaTime { MediaTime(nanoseconds: Int64(frame) * 40_000_000) }
        _ = recorder.begin(.h264, isNew: true, now: time(0))
        for frame in 0..<500 {
            recorder.take(
                isVideo: true,
                PacketOrder.Packet(
                    number: Int64(frame), timestamp: UInt32(frame) * 3_600, marker: true,
                    payload: Self.keyframe(parameters: UInt8(frame / 50)), arrival: time(frame)), now: time(frame))
        }
        recorder.finish(now: time(500))
        var (starts, ends): ([MediaTime], [MediaTime]) = ([], [])
        for output in recorder.takeOutputs() {
            switch output {
            case .begin(_, at: let time): starts.append(time)
            case .end(at: let time): ends.append(time)
            case .block, .requestKeyframe, .size, .lost: break
            }
        }
        #expect(starts.count == 10 && ends.count == 10)
        for (end, start) in zip(ends, starts.dropFirst()) { #expect((0...40).contains((start - end).milliseconds)) }
    }

    @Test("a publisher that changes the parameters of H.264 with each frame gets ten files, and one more per second")
    func parameterFlood() throws {
        let files = try Self.record(.h264, (0..<1_500).map { [Self.keyframe(parameters: UInt8($0 % 2))] })
        #expect((60...71).contains(files.count), "\(files.count) files in a minute")
        for (file, next) in zip(files, files.dropFirst()) { #expect(file.video != next.video) }
    }

    @Test("VP9 decodes to the same frames", .enabled(if: FFmpegTools.areHere))
    func vp9() throws {
        let ivf = try Self.encode([
            "-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "50", "-f", "ivf",
        ])
        let frames = Self.ivfFrames(ivf).enumerated().map { Self.vp9Payloads($1, isKeyframe: $0 % 50 == 0) }
        let file = try #require(try Self.record(.vp9, frames).first)
        #expect(try Self.hashes(file.file.bytes) == Self.hashes(ivf))
        #expect(file.file.bytes.count > 10_000 && file.video == .vp9)
    }

    /// The frames of an IVF file.
    private static func ivfFrames(_ ivf: [UInt8]) -> [[UInt8]] {
        var frames: [[UInt8]] = []
        var position = 32
        while position + 12 <= ivf.count {
            let size = (0..<4).reduce(0) { $0 | Int(ivf[position + $1]) << (8 * $1) }
            frames.append(Array(ivf[position + 12..<position + 12 + size]))
            position += 12 + size
        }
        return frames
    }

    /// Cuts a temporal unit as senders do: without its delimiter, and without the sizes of units.
    private static func av1Payloads(_ frame: [UInt8], isKeyframe: Bool) throws -> Payloads {
        var units: [[UInt8]] = []
        var rest = frame[...]
        while !rest.isEmpty {
            let unit = try #require(AV1OBU(rest))
            rest = rest.dropFirst(AV1OBU.bytes(unit.header, unit.layers, unit.payload).count)
            guard unit.type != AV1OBU.temporalDelimiter else { continue }
            units.append([unit.header & 0xfd] + (unit.layers.map { [$0] } ?? []) + unit.payload)
        }
        var payloads: Payloads = []
        for unit in units {
            let chunks = stride(from: 0, to: unit.count, by: maxPayload).map {
                unit[$0..<min(unit.count, $0 + maxPayload)]
            }
            for (index, chunk) in chunks.enumerated() {
                let flags: UInt8 = (index > 0 ? 0x80 : 0) | (index < chunks.count - 1 ? 0x40 : 0) | 0x10
                payloads.append([flags | (payloads.isEmpty && isKeyframe ? 0x08 : 0)] + chunk)
            }
        }
        return payloads
    }

    private static func av1(size: String = "320x240", seconds: Int = 2) throws -> [UInt8] {
        try encode(
            ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-g", "25", "-f", "ivf"], size: size,
            seconds: seconds)
    }

    @Test("AV1 decodes to the same frames, and another size begins another file", .enabled(if: FFmpegTools.areHere))
    func av1() throws {
        let sources = [try Self.av1(), try Self.av1(size: "640x480")]
        let frames = try sources.flatMap { source in
            try Self.ivfFrames(source).enumerated().map { try Self.av1Payloads($1, isKeyframe: $0 % 25 == 0) }
        }
        let files = try Self.record(.av1, frames)
        #expect(files.count == 2)
        for (file, source) in zip(files, sources) {
            #expect(try Self.hashes(file.file.bytes) == Self.hashes(source))
            let size = try FFmpegTools.probe(source, "stream=codec_name,width,height")
            #expect(try FFmpegTools.probe(file.file.bytes, "stream=codec_name,width,height") == size)
        }
    }

    @Test("the spatial layers of a VP9 picture become a superframe")
    func superframe() throws {
        var assembler = VP9Assembler()
        let layers: [[UInt8]] = [[UInt8](repeating: 1, count: 10), [UInt8](repeating: 2, count: 300)]
        var frame: AssembledFrame?
        for (index, layer) in layers.enumerated() {
            // L, B and E are set, and the layer byte has SID and D.
            let payload: [UInt8] = [0x2c, UInt8(index << 1) | (index > 0 ? 1 : 0), 0] + layer
            frame = payload.withUnsafeBytes { assembler.assemble($0, timestamp: 5, marker: index == 1) }
        }
        let index: [UInt8] = [0xc9, 10, 0, 44, 1, 0xc9]
        #expect(frame?.bytes == layers[0] + layers[1] + index && frame?.isKeyframe == true)
    }

    @Test(
        "malformed H.264 payloads are a loss",
        arguments: [[28], [24], [24, 0, 5, 1], [25, 1, 2], [28, 0x00, 1, 2], [0, 1]] as [[UInt8]])
    func malformed(_ payload: [UInt8]) {
        var assembler = H264Assembler()
        let good: [[UInt8]] = [[0x67, 66, 0, 10, 1], [0x68, 1, 2], [0x65, 1, 2, 3]]
        for (index, unit) in good.enumerated() {
            let frame = unit.withUnsafeBytes { assembler.assemble($0, timestamp: 1, marker: index == 2) }
            #expect((frame != nil) == (index == 2))
        }
        #expect(!assembler.needsKeyframe)
        #expect(payload.withUnsafeBytes { assembler.assemble($0, timestamp: 2, marker: true) } == nil)
        #expect(assembler.needsKeyframe)
    }
}
