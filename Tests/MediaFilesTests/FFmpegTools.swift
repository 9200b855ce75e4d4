import Foundation
import Testing

/// Runs `ffmpeg` and `ffprobe`, which judge the files that these tests write.
enum FFmpegTools {
    static let areHere = path("ffmpeg") != nil && path("ffprobe") != nil

    private static func path(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Returns the standard output of `ffprobe` or `ffmpeg`. A failure fails the test, and so does an error line
    /// unless it may complain.
    static func run(_ name: String, _ arguments: [String], mayComplain: Bool = false) throws -> [UInt8] {
        let process = Process()
        process.executableURL = URL(filePath: try #require(path(name)))
        process.arguments = ["-hide_banner", "-v", "error"] + arguments
        let (output, complaints) = (Pipe(), Pipe())
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = complaints
        try process.run()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        let said = try complaints.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(
            process.terminationStatus == 0 && (said.isEmpty || mayComplain),
            "\(name) says: \(String(decoding: said, as: UTF8.self))")
        return [UInt8](bytes)
    }

    /// Calls `body` with the path of a temporary file with these bytes.
    static func withFile<Value>(_ bytes: [UInt8], _ body: (String) throws -> Value) throws -> Value {
        let file = FileManager.default.temporaryDirectory.appending(path: "confab-recording-\(UUID()).webm")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(bytes).write(to: file)
        return try body(file.path)
    }

    /// Returns the entries that ffprobe prints for a file, one per line.
    static func probe(_ bytes: [UInt8], _ entries: String, stream: String? = nil, mayComplain: Bool = false) throws
        -> [String]
    {
        try withFile(bytes) { path in
            let selection = stream.map { ["-select_streams", $0] } ?? []
            let text = try run(
                "ffprobe", selection + ["-show_entries", entries, "-of", "csv=p=0", path], mayComplain: mayComplain)
            return String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
        }
    }
}
