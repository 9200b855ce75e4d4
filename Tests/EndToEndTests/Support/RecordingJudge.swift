import Foundation
import TestSupport
import Testing

/// Runs `ffprobe` and `ffmpeg`, which judge recordings.
enum RecordingJudge {
    static let isHere = ["ffmpeg", "ffprobe"].allSatisfy { ChildProgram.path($0) != nil }

    /// Returns the lines that a program prints, and whether it succeeded without a complaint.
    private static func run(_ name: String, _ arguments: [String]) throws -> (lines: [String], isGood: Bool) {
        let result = try ChildProgram.run(name, ["-hide_banner", "-v", "error"] + arguments)
        if !result.standardError.isEmpty { print(result.standardError) }
        return (result.lines, result.status == 0 && result.standardError.isEmpty)
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
