import Foundation
import MediaFiles
import TestSupport
import Testing
import Wire

@testable import Broadcasting

@Suite("Streams made of ffmpeg's fragments", .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"))
struct RealMediaTests {
    private static let start = Timestamp(milliseconds: 1_767_323_045_678)

    /// Writes a stream with two runs of an encoder to a folder, and returns its playlist after each change.
    private static func write(_ settings: HLSSettings, to folder: String, runs: [Double]) throws -> (
        playlists: [String], index: String
    ) {
        var stream = HLSStream(settings)
        var playlists: [String] = []
        var now = start
        func apply(_ changes: [HLSChange]) throws {
            for case .store(let file, let pieces) in changes {
                try Data(pieces.joined()).write(to: URL(filePath: "\(folder)/\(file.name)"))
            }
            playlists.append(stream.playlist)
        }
        for seconds in runs {
            for item in try TestMedia.items(try FakeCompositor.fragmentedMP4(seconds: seconds), settings) {
                switch item {
                case .initialization(let initialization): try apply(stream.begin(initialization, at: now))
                case .part(let part):
                    try apply(stream.append(part, at: now, wall: now))
                    now = now + part.duration
                }
            }
        }
        try apply(stream.finish(at: now))
        let index = try #require(stream.index)
        try Data(stream.playlist.utf8).write(to: URL(filePath: "\(folder)/\(HLSFile.playlist)"))
        try Data(index.utf8).write(to: URL(filePath: "\(folder)/\(HLSFile.index)"))
        return (playlists, index)
    }

    @Test(
        "a stream plays without a complaint, and its durations are those of its files",
        arguments: [HLSSettings.standard, .lowLatency, .recordable(maxDuration: .seconds(60), window: .seconds(60))])
    func plays(settings: HLSSettings) throws {
        try TestMedia.withFolder { folder in
            let (playlists, index) = try Self.write(settings, to: folder, runs: [15])
            var checker = PlaylistChecker(folder: folder)
            for playlist in playlists { try checker.check(playlist) }
            #expect(checker.isEnded && checker.segments.count >= 4)
            #expect(index.contains("CODECS=\"avc1.42c0") && index.contains(",mp4a.40.2\",RESOLUTION=160x120"))
            let frames = try TestMedia.run(
                "ffprobe",
                [
                    "-select_streams", "v", "-count_packets", "-show_entries", "stream=nb_read_packets", "-of",
                    "csv=p=0",
                    "\(folder)/\(HLSFile.index)",
                ], level: "warning")
            #expect(frames.first == "375")
            try TestMedia.run("ffmpeg", ["-i", "\(folder)/\(HLSFile.index)", "-f", "null", "-"])
        }
    }

    @Test("another start of the encoder is a discontinuity with another initialization section")
    func discontinuity() throws {
        try TestMedia.withFolder { folder in
            let (playlists, _) = try Self.write(.lowLatency, to: folder, runs: [4, 4])
            var checker = PlaylistChecker(folder: folder)
            for playlist in playlists { try checker.check(playlist) }
            let last = try #require(playlists.last)
            #expect(last.contains("#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"init-2.mp4\"\n#EXT-X-PROGRAM-DATE-TIME:"))
        }
    }

    @Test("bytes that come one by one make the same parts, and mutated bytes never trap")
    func hostile() throws {
        let bytes = try FakeCompositor.fragmentedMP4(seconds: 1)
        let whole = try TestMedia.items(bytes, .standard)
        var segmenter = Segmenter(HLSSettings.standard.segmenting)
        var parts: [Segmenter.Item] = []
        for byte in bytes { parts += try segmenter.take([byte]) }
        #expect(parts == whole && whole.count >= 3)
        print("seed 7")
        var random = SeededGenerator(seed: 7)
        var errors: Set<String> = []
        for _ in 0..<2_000 {
            var damaged = Array(bytes.prefix(Int.random(in: 0...4_000, using: &random)))
            for _ in 0..<Int.random(in: 1...4, using: &random) where !damaged.isEmpty {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            var segmenter = Segmenter(HLSSettings.standard.segmenting)
            do throws(SegmenterError) {
                _ = try segmenter.take(damaged)
            } catch {
                errors.insert(error.code)
                #expect(throws: error) { try segmenter.take([]) }
            }
        }
        #expect(errors.isSuperset(of: ["damaged", "not_this_format", "too_large"]))
    }
}
