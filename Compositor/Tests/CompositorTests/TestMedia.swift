import Foundation
import LiveComposing
import MediaFiles
import TestSupport
import Testing

/// Media that ffmpeg makes for the tests, in a temporary folder.
struct TestMedia {
    static let hasFFmpeg = ChildProgram.path("ffmpeg") != nil && ChildProgram.path("ffprobe") != nil

    let folder = FileManager.default.temporaryDirectory.appending(path: "confab-compositor-\(UUID())").path

    /// Calls `body` with a folder, and removes it afterwards.
    static func with(_ body: (TestMedia) throws -> Void) throws {
        let media = TestMedia()
        try FileManager.default.createDirectory(atPath: media.folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: media.folder) }
        try body(media)
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    func bytes(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path(name)))) }

    /// Runs ffmpeg or ffprobe. Returns what it wrote to its standard output.
    @discardableResult
    func run(_ arguments: [String], _ name: String = "ffmpeg") throws -> ChildProgram.Result {
        let common = name == "ffmpeg" ? ["-nostdin", "-v", "error", "-y"] : ["-v", "error"]
        let result = try ChildProgram.run(name, common + arguments)
        #expect(result.status == 0 && result.standardError.isEmpty, "\(name) says: \(result.standardError)")
        return result
    }

    /// An image of one brightness.
    static func gray(_ brightness: Int, size: String = "320x180", seconds: Double) -> String {
        "color=black:s=\(size):r=25:d=\(seconds),format=yuv420p,lutyuv=y=\(brightness):u=128:v=128"
    }

    private static let encoders: [CompositorCodec: [String]] = [
        .vp8: ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"],
        .vp9: ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-row-mt", "0"],
        .av1: ["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"],
    ]

    /// Encodes an image of ffmpeg's `lavfi`, with a keyframe each second. Returns the messages of its frames.
    func video(_ image: String, _ codec: CompositorCodec = .vp8, of stream: UInt32, at start: Duration = .zero) throws
        -> [CompositorInput]
    {
        let name = "\(UUID()).ivf"
        let options =
            try #require(Self.encoders[codec]) + ["-b:v", "500k", "-g", "25", "-keyint_min", "25", "-threads", "1"]
        try run(["-f", "lavfi", "-i", image] + options + [path(name)])
        let bytes = try bytes(name)
        let file = try bytes.withUnsafeBytes { try IVFFile($0) }
        return file.frames.enumerated().map { index, frame in
            // Of VP8, the frame says it itself. The others have a keyframe where it was requested.
            let isKeyframe = codec == .vp8 ? bytes[frame.range.lowerBound] & 1 == 0 : index % 25 == 0
            return .video(
                stream: stream, at: start + .milliseconds(40 * index), isKeyframe: isKeyframe, Array(bytes[frame.range])
            )
        }
    }

    /// Encodes an image as H.264 with start codes. Each frame begins with an access unit delimiter.
    func h264(_ image: String, of stream: UInt32) throws -> [CompositorInput] {
        try run(
            ["-f", "lavfi", "-i", image, "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "25"]
                + ["-x264-params", "aud=1:scenecut=0", "-f", "h264", path("x.h264")])
        let bytes = try bytes("x.h264")
        let starts = bytes.indices.dropLast(5).filter { Array(bytes[$0..<$0 + 5]) == [0, 0, 0, 1, 9] }
        return zip(starts, starts.dropFirst() + [bytes.count]).enumerated().map { index, range in
            .video(
                stream: stream, at: .milliseconds(40 * index), isKeyframe: index % 25 == 0,
                Array(bytes[range.0..<range.1]))
        }
    }

    /// Encodes sound of ffmpeg's `lavfi`. Returns the messages of its packets.
    func audio(_ sound: String, of stream: UInt32, at start: Duration = .zero) throws -> [CompositorInput] {
        let name = "\(UUID()).ogg"
        try run(["-f", "lavfi", "-i", sound, "-c:a", "libopus", "-b:a", "64k", path(name)])
        let bytes = try bytes(name)
        let file = try bytes.withUnsafeBytes { try OpusFile($0) }
        return file.packets.map { packet in
            .audio(
                stream: stream, at: start + .microseconds(packet.time * 1_000 / 48), Array(file.bytes[packet.range]))
        }
    }

    /// A flash of 40 ms and a beep of 200 ms at each whole second.
    func flashes(of stream: UInt32, at start: Duration = .zero, seconds: Double) throws -> [CompositorInput] {
        let flash = "drawbox=t=fill:c=white:enable='lt(mod(t,1),0.039)'"
        return try video("\(Self.gray(16, seconds: seconds)),\(flash)", of: stream, at: start)
            + audio("aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.2)':s=48000:d=\(seconds)", of: stream, at: start)
    }
}

extension CompositorInput {
    /// The time of a frame or packet, or of a layout.
    var time: Duration {
        switch self {
        case .video(_, let time, _, _), .audio(_, let time, _), .layout(_, let time), .config(_, let time),
            .stop(let time):
            time
        case .open, .close: .zero
        }
    }
}

/// A composed file, judged by ffmpeg.
struct ComposedFile {
    /// The images as planes of YUV 4:4:4, a tenth of the width and the height.
    private let images: [UInt8]
    private let (width, height): (Int, Int)
    /// At 48 kHz.
    let samples: [Int16]
    /// What ffprobe says about the tracks.
    let tracks: String

    init(_ bytes: [UInt8], _ media: TestMedia, width: Int, height: Int) throws {
        (self.width, self.height) = (width / 10, height / 10)
        let file = media.path("composed.mp4")
        try Data(bytes).write(to: URL(filePath: file))
        tracks = try media.run(
            [
                "-count_packets", "-show_entries",
                "stream=codec_name,profile,level,width,height,nb_read_packets,channels",
            ]
                + ["-of", "compact=p=0", file], "ffprobe"
        ).text
        images = try media.run(
            ["-i", file, "-an", "-vf", "scale=\(width / 10):\(height / 10):flags=area", "-f", "rawvideo"]
                + ["-fps_mode", "passthrough", "-pix_fmt", "yuv444p", "-"]
        ).output
        let sound = try media.run(["-i", file, "-vn", "-f", "s16le", "-ac", "1", "-ar", "48000", "-"]).output
        samples = stride(from: 0, to: sound.count - 1, by: 2).map {
            Int16(bitPattern: UInt16(sound[$0]) | UInt16(sound[$0 + 1]) << 8)
        }
    }

    /// The frames of the video.
    var frames: Int { images.count / (3 * width * height) }

    /// Returns the brightness at a pixel of the canvas, 16…235 as the codec has it.
    func brightness(_ frame: Int, _ x: Int, _ y: Int) -> Int {
        let offset = frame * 3 * width * height + y / 10 * width + x / 10
        return images.indices.contains(offset) ? Int(images[offset]) : -1
    }

    func shows(_ brightness: Int, _ frame: Int, _ x: Int, _ y: Int) -> Bool {
        abs(self.brightness(frame, x, y) - brightness) <= 4
    }

    /// The times in seconds at which it becomes loud after silence.
    var onsets: [Double] { soundOnsets(samples) }

    /// Returns the greatest distance of a flash at a pixel from its beep, in seconds, and the number of flashes.
    ///
    /// - Parameter count: only the first frames are looked at. They must be 40 ms apart.
    func lipSync(_ x: Int, _ y: Int, frames count: Int = .max) -> (worst: Double, flashes: Int) {
        let flashes = (0..<min(frames, count)).filter { brightness($0, x, y) > 150 && brightness($0 - 1, x, y) <= 150 }
        let onsets = onsets
        let distances = flashes.map { flash in
            onsets.map { abs($0 - Double(flash) / 25) }.min() ?? 9
        }
        return (distances.max() ?? 9, flashes.count)
    }
}
