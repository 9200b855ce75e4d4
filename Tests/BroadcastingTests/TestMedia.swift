import Foundation
import MediaFiles
import TestSupport
import Testing

@testable import Broadcasting

/// Fragmented MP4 that ffmpeg makes: 25 pictures per second, and a tone.
enum TestMedia {
    static let hasFFmpeg = ChildProgram.path("ffmpeg") != nil && ChildProgram.path("ffprobe") != nil

    /// Returns the bytes of a stream with a keyframe each 48 pictures, in fragments of about 400 ms.
    static func fragments(seconds: Double, keyframes: Int = 48) throws -> [UInt8] {
        try withFolder { folder in
            let path = "\(folder)/out.mp4"
            try run(
                "ffmpeg",
                [
                    "-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=\(seconds)", "-f", "lavfi", "-i",
                    "sine=1000:r=48000:d=\(seconds)", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g",
                    "\(keyframes)", "-keyint_min", "\(keyframes)", "-sc_threshold", "0", "-c:a", "aac", "-b:a", "48k",
                    "-ac", "1", "-movflags", "empty_moov+default_base_moof+frag_keyframe", "-frag_duration", "400000",
                    path,
                ])
            return [UInt8](try Data(contentsOf: URL(filePath: path)))
        }
    }

    /// Returns what a segmenter returns for the bytes.
    static func items(_ bytes: [UInt8], _ settings: HLSSettings) throws -> [Segmenter.Item] {
        var segmenter = Segmenter(settings.segmenting)
        return try segmenter.take(bytes)
    }

    /// Calls `body` with the path of a temporary folder.
    static func withFolder<Value>(_ body: (String) throws -> Value) throws -> Value {
        let folder = FileManager.default.temporaryDirectory.appending(path: "confab-broadcast-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        return try body(folder)
    }

    /// Runs ffmpeg or ffprobe. Each complaint fails the test.
    @discardableResult
    static func run(_ name: String, _ arguments: [String], level: String = "error") throws -> [String] {
        let result = try ChildProgram.run(name, ["-hide_banner", "-v", level] + arguments)
        #expect(result.status == 0 && result.standardError.isEmpty, "\(name): \(result.standardError)")
        return result.lines
    }
}
