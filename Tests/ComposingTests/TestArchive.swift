import Foundation
import MediaFiles
import Testing

@testable import Composing

/// A temporary folder with an archive whose files ffmpeg makes. Each stream has one brightness, by which it is recognized.
struct TestArchive {
    static let hasFFmpeg = FFmpegInstallation.locate("ffmpeg") != nil

    let folder = FileManager.default.temporaryDirectory.appending(path: "confab-compose-\(UUID())").path

    /// Calls `body` with an archive, and removes the folder afterwards.
    static func with(_ body: (TestArchive) async throws -> Void) async throws {
        let archive = TestArchive()
        try FileManager.default.createDirectory(atPath: archive.folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: archive.folder) }
        try await body(archive)
    }

    func path(_ name: String) -> String { "\(folder)/\(name)" }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: path(name)))
    }

    func bytes(_ name: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(filePath: path(name)))) }

    func ffmpeg(_ arguments: [String], sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let outcome = try await ChildProcess.run(
            try #require(FFmpegInstallation.locate("ffmpeg")), ["-nostdin", "-v", "error", "-y"] + arguments,
            directory: folder, limits: .init(processor: 300, seconds: 300, nice: 0))
        #expect(outcome.isSuccess, "ffmpeg says: \(outcome.standardError)", sourceLocation: sourceLocation)
    }

    /// The brightness of a stream's picture. A decoder's error is at most 3.
    static func brightness(_ index: Int) -> Int { 40 + 8 * index }

    /// The brightness of a flash, and of black.
    static let (white, black) = (235, 16)

    static func gray(_ brightness: Int, size: String = "160x120", rate: Int = 25, seconds: Double) -> String {
        "color=black:s=\(size):r=\(rate):d=\(seconds),format=yuv420p,lutyuv=y=\(brightness):u=128:v=128"
    }

    static let vp8 = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "300k", "-g", "50"]
    static let opus = ["-c:a", "libopus", "-b:a", "32k"]
    /// A beep of 200 ms at each whole second.
    static func beeps(seconds: Double) -> String {
        "aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,1),0.2)':s=48000:d=\(seconds)"
    }

    /// Makes a file of one brightness, without sound.
    func make(_ name: String, _ brightness: Int, size: String = "160x120", rate: Int = 25, seconds: Double) async throws
    {
        let picture = Self.gray(brightness, size: size, rate: rate, seconds: seconds)
        try await ffmpeg(["-f", "lavfi", "-i", picture] + Self.vp8 + [name])
    }

    /// Makes a file with a flash of 40 ms and a beep at each whole second.
    func makeFlashes(_ name: String, seconds: Double) async throws {
        let flash = "drawbox=t=fill:c=white:enable='lt(mod(t,1),0.039)'"
        try await ffmpeg(
            ["-f", "lavfi", "-i", "\(Self.gray(Self.black, seconds: seconds)),\(flash)", "-f", "lavfi", "-i"]
                + [Self.beeps(seconds: seconds)] + Self.vp8 + Self.opus + [name])
    }

    /// Makes the same picture and sound as two files, of one codec each.
    func makeFlashes(_ picture: String, _ sound: String, seconds: Double) async throws {
        try await makeFlashes("both.webm", seconds: seconds)
        for (name, stream) in [(picture, "0:v"), (sound, "0:a")] {
            try await ffmpeg(["-i", "both.webm", "-map", stream, "-c", "copy", name])
        }
    }

    /// Writes a file as the server's recorder does: blocks in the order of their times.
    func record(_ name: String, picture: String, sound: String, isFinished: Bool) throws {
        let (pictureBytes, soundBytes) = (try bytes(picture), try bytes(sound))
        let frames = try pictureBytes.withUnsafeBytes { try IVFFile($0) }
        let packets = try soundBytes.withUnsafeBytes { try OpusFile($0) }
        // 25 frames a second, and samples at 48 kHz.
        var blocks = frames.frames.enumerated().map { index, frame in
            let bytes = Array(pictureBytes[frame.range])
            return WebMWriter.Block(
                isVideo: true, time: Int64(index) * 40, isKeyframe: bytes[0] & 1 == 0, bytes: bytes)
        }
        blocks += packets.packets.map {
            WebMWriter.Block(
                isVideo: false, time: Int64($0.time / 48), isKeyframe: true, bytes: Array(packets.bytes[$0.range]))
        }
        var writer = try #require(WebMWriter(video: .vp8, date: 0, application: "Confab"))
        var file: [UInt8] = []
        for block in blocks.sorted(by: { $0.time < $1.time }) {
            for edit in writer.write(block) { edit.apply(to: &file) }
        }
        if isFinished { for edit in writer.finish() { edit.apply(to: &file) } }
        try write(file, to: name)
    }

    func compose(
        _ log: ArchiveLog, _ options: ComposeOptions = ComposeOptions(), ffmpeg: String = "ffmpeg"
    ) async throws -> ComposeJob.Result {
        try write(log.bytes, to: ArchiveFileName.log)
        return try await job(options, ffmpeg: ffmpeg).run()
    }

    func job(_ options: ComposeOptions = ComposeOptions(), ffmpeg: String = "ffmpeg") -> ComposeJob {
        var job = ComposeJob(folder: folder, options: options)
        (job.ffmpeg, job.nice, job.overwrites) = (ffmpeg, 0, true)
        job.options.preset = .ultrafast
        return job
    }

    /// The composed pictures, each a tenth of the width and the height.
    func pictures(canvas: ArchiveCanvas = ArchiveCanvas()) async throws -> ComposedPictures {
        let (width, height) = (canvas.width / 10, canvas.height / 10)
        try await ffmpeg([
            "-i", ArchiveFileName.composed, "-vf", "scale=\(width):\(height):flags=area", "-f", "rawvideo", "-pix_fmt",
            "yuv444p", "pictures",
        ])
        return ComposedPictures(bytes: try bytes("pictures"), width: width, height: height)
    }

    /// The composed sound: samples at 48 kHz.
    func samples() async throws -> [Int16] {
        try await ffmpeg(["-i", ArchiveFileName.composed, "-vn", "-f", "s16le", "-ac", "1", "-ar", "48000", "samples"])
        let bytes = try bytes("samples")
        return stride(from: 0, to: bytes.count - 1, by: 2).map {
            Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8)
        }
    }

    /// A program in place of ffmpeg: a shell script, in which `$real` is ffmpeg.
    func script(_ text: String) throws -> String {
        let real = try #require(FFmpegInstallation.locate("ffmpeg"))
        let file = path("fake-ffmpeg")
        try write(Array("#!/bin/sh\nreal=\(real)\n\(text)\n".utf8), to: "fake-ffmpeg")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: file)
        return file
    }
}

/// Pictures of a composed file, of which only the brightness is used.
struct ComposedPictures: CustomTestStringConvertible {
    let bytes: [UInt8]
    let width: Int
    let height: Int

    var testDescription: String { "\(count) pictures of \(width)x\(height)" }
    var count: Int { bytes.count / (3 * width * height) }

    /// Returns the brightness at a pixel of the canvas.
    func brightness(_ frame: Int, _ x: Int, _ y: Int) -> Int {
        let offset = frame * 3 * width * height + min(height - 1, y / 10) * width + min(width - 1, x / 10)
        return bytes.indices.contains(offset) ? Int(bytes[offset]) : -1
    }

    func shows(_ brightness: Int, _ frame: Int, _ x: Int, _ y: Int) -> Bool {
        abs(self.brightness(frame, x, y) - brightness) <= 3
    }
}
