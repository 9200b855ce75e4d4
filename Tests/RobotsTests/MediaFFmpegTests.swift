import Foundation
import RTC
import TestSupport
import Testing

@testable import MediaFiles
@testable import Peers
@testable import Robots

/// Checks our files with another implementation. The sample is packetized and recorded, and ffmpeg decodes the
/// recording.
@Suite("ffmpeg", .enabled(if: FFmpeg.isHere, "ffmpeg is not installed; scripts/browser-setup does that"))
struct MediaFFmpegTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "confab-ffmpeg-\(UUID())")

    private func recorded(pictures: ((inout [PacketOrder.Packet]) -> Void)? = nil) throws -> [UInt8] {
        let track = try #require(MediaClip.sample.video)
        var packets = vp8Packets(track.items.map { Array(track.bytes[$0.range]) })
        pictures?(&packets)
        var (order, recording) = (FrameOrder(.video), VideoRecording())
        var bytes: [UInt8] = []
        for packet in packets {
            for frame in order.take(packet, at: MediaTime(nanoseconds: 0)) {
                recording.take(frame.bytes, at: frame.time, into: &bytes)
            }
        }
        return bytes
    }

    private func write(_ bytes: [UInt8], _ name: String) throws -> String {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appending(path: name)
        try Data(bytes).write(to: file)
        return file.path
    }

    @Test("decodes recorded video without errors, and the center of the picture is teal")
    func picture() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try write(try recorded(), "picture.ivf")
        let size = 320 * 240 * 3
        let raw = try FFmpeg.run(["-i", path, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"])
        #expect(raw.count == 60 * size)
        let middle = 59 * size + (120 * 320 + 160) * 3
        let (red, green, blue) = (raw[middle], raw[middle + 1], raw[middle + 2])
        #expect(red < 60 && green > 130 && blue > 130, "\(red), \(green), \(blue)")
    }

    @Test("decodes a recording truncated by killing the program")
    func cutOff() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = try write(Array(try recorded().dropLast(10)), "picture.ivf")
        let raw = try FFmpeg.run(
            ["-i", path, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], allowsErrors: true)
        #expect(raw.count == 59 * 320 * 240 * 3)
    }

    @Test("decodes recorded audio with its gaps filled, and finds the tone")
    func sound() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let track = try #require(MediaClip.sample.audio)
        var recording = AudioRecording(serial: 1)
        var bytes: [UInt8] = []
        for (number, item) in track.items.enumerated() where !(50..<60).contains(number) {
            recording.take(Array(track.bytes[item.range]), at: .milliseconds(20 * number), into: &bytes)
        }
        recording.finish(into: &bytes)
        let path = try write(bytes, "sound.ogg")
        let raw = try FFmpeg.run(["-i", path, "-f", "s16le", "-ac", "1", "-ar", "48000", "-"])
        // The recording has four seconds, minus the 80 ms of pre-skip.
        #expect(abs(raw.count / 2 - (192_000 - 3_840)) <= 960, "\(raw.count / 2) samples")
        let loudest = stride(from: 0, to: raw.count - 1, by: 2).map { index in
            abs(Int(Int16(truncatingIfNeeded: Int(raw[index]) | Int(raw[index + 1]) << 8)))
        }.max()
        #expect((loudest ?? 0) > 3_000)
    }
}

enum FFmpeg {
    static let isHere = ChildProgram.path("ffmpeg") != nil

    /// Returns ffmpeg's standard output. Error output fails the test unless it is allowed.
    static func run(_ arguments: [String], allowsErrors: Bool = false) throws -> [UInt8] {
        let result = try ChildProgram.run("ffmpeg", ["-hide_banner", "-nostdin", "-v", "error"] + arguments)
        #expect(result.status == 0 && (result.standardError.isEmpty || allowsErrors), "ffmpeg: \(result.standardError)")
        return result.output
    }
}
