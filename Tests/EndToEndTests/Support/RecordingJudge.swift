import Foundation
import Testing

/// Runs `ffprobe` and `ffmpeg`, which judge recordings.
enum RecordingJudge {
    static let isHere = ["ffmpeg", "ffprobe"].allSatisfy { path($0) != nil }

    private static func path(_ name: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Returns the lines that a program prints, and whether it succeeded without a complaint.
    private static func run(_ name: String, _ arguments: [String]) throws -> (lines: [String], isGood: Bool) {
        let process = Process()
        process.executableURL = URL(filePath: try #require(path(name)))
        process.arguments = ["-hide_banner", "-v", "error"] + arguments
        let (output, complaints) = (Pipe(), Pipe())
        process.standardInput = FileHandle.nullDevice
        (process.standardOutput, process.standardError) = (output, complaints)
        try process.run()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        let complaint = try complaints.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        let lines = String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline).map(String.init)
        if !complaint.isEmpty { print(String(decoding: complaint, as: UTF8.self)) }
        return (lines, process.terminationStatus == 0 && complaint.isEmpty)
    }

    /// The codecs of a file's tracks.
    static func codecs(_ file: String) throws -> [String] {
        try run("ffprobe", ["-show_entries", "stream=codec_name", "-of", "csv=p=0", file]).lines
    }

    /// The length of a file in seconds.
    static func duration(_ file: String) throws -> Double? {
        try run("ffprobe", ["-show_entries", "format=duration", "-of", "csv=p=0", file]).lines.first.flatMap(
            Double.init)
    }

    /// Whether all of a file can be decoded. Frames keep their times in milliseconds: with a guessed frame rate, two frames that arrived
    /// together would get one time, and ffmpeg would complain.
    static func decodes(_ file: String) throws -> Bool {
        try run("ffmpeg", ["-i", file, "-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "null", "-"]).isGood
    }
}
