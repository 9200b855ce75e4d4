import Foundation
import MediaFiles
import TestSupport
import Testing

@testable import Broadcasting

/// Fragmented MP4 that ffmpeg makes: 25 pictures per second, and a tone.
enum TestMedia {
    static let hasFFmpeg = ChildProgram.path("ffmpeg") != nil && ChildProgram.path("ffprobe") != nil

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
