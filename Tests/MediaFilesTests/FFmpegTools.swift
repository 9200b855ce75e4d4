import Foundation
import TestSupport
import Testing

/// Runs `ffmpeg` and `ffprobe`, which judge the files that these tests write.
enum FFmpegTools {
    static let areHere = ChildProgram.path("ffmpeg") != nil && ChildProgram.path("ffprobe") != nil

    /// Returns the standard output of `ffprobe` or `ffmpeg`. A failure fails the test, and so does an error line
    /// unless errors are allowed.
    static func run(_ name: String, _ arguments: [String], allowsErrors: Bool = false) throws -> [UInt8] {
        let result = try ChildProgram.run(name, ["-hide_banner", "-v", "error"] + arguments)
        let errors = result.standardError
        #expect(result.status == 0 && (errors.isEmpty || allowsErrors), "\(name): \(errors)")
        return result.output
    }

    /// Calls `body` with the path of a temporary file with these bytes.
    static func withFile<Value>(_ bytes: [UInt8], _ body: (String) throws -> Value) throws -> Value {
        let file = FileManager.default.temporaryDirectory.appending(path: "confab-recording-\(UUID()).webm")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(bytes).write(to: file)
        return try body(file.path)
    }

    /// Returns the entries that ffprobe prints for a file, one per line.
    static func probe(_ bytes: [UInt8], _ entries: String, stream: String? = nil, allowsErrors: Bool = false) throws
        -> [String]
    {
        try withFile(bytes) { path in
            let selection = stream.map { ["-select_streams", $0] } ?? []
            let text = try run(
                "ffprobe", selection + ["-show_entries", entries, "-of", "csv=p=0", path], allowsErrors: allowsErrors)
            return String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
        }
    }
}
