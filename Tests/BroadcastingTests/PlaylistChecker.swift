import Foundation
import MediaFiles
import Testing

@testable import Broadcasting

/// Checks playlists of one stream, one after another, against RFC 8216 and the files that they name. Shares no code with the playlists.
struct PlaylistChecker {
    let folder: String
    /// All segments that were listed: their durations in seconds, by number.
    private(set) var segments: [Int: Double] = [:]
    private(set) var isEnded = false
    private var sequence = 0
    private var target: Int?

    init(folder: String) { self.folder = folder }

    mutating func check(_ playlist: String) throws {
        #expect(!isEnded, "a playlist follows the end")
        let lines = playlist.split(separator: "\n").map(String.init)
        #expect(lines.first == "#EXTM3U")
        func value(_ tag: String) -> String? {
            lines.first { $0.hasPrefix(tag) }.map { String($0.dropFirst(tag.count)) }
        }
        let target = try #require(value("#EXT-X-TARGETDURATION:").flatMap { Int($0) })
        #expect(self.target == nil || self.target == target)
        self.target = target
        var number = try #require(value("#EXT-X-MEDIA-SEQUENCE:").flatMap { Int($0) })
        #expect(number >= sequence)
        sequence = number
        var map = ""
        var duration: Double?
        for line in lines {
            if line.hasPrefix("#EXT-X-MAP:URI=") { map = String(line.dropFirst(16).dropLast()) }
            if line.hasPrefix("#EXTINF:") { duration = Double(line.dropFirst(8).dropLast()) }
            if line == "#EXT-X-ENDLIST" { isEnded = true }
            guard !line.hasPrefix("#") else { continue }
            let listed = try #require(duration)
            #expect(listed.rounded() <= Double(target))
            if let known = segments[number] {
                #expect(known == listed, "segment \(number) has changed")
            } else {
                segments[number] = listed
                try checkFile(line, map, listed)
            }
            (number, duration) = (number + 1, nil)
        }
    }

    /// Checks that a segment starts with a keyframe, and that its duration is that of its fragments.
    private func checkFile(_ name: String, _ map: String, _ listed: Double) throws {
        let bytes = try [map, name].map { [UInt8](try Data(contentsOf: URL(filePath: "\(folder)/\($0)"))) }
        var reader = FragmentedMP4Reader()
        var (duration, isFirst, leading): (Double, Bool, MP4Initialization.Track?) = (0, true, nil)
        for item in try reader.take(bytes[0] + bytes[1]) {
            switch item {
            case .initialization(let initialization): leading = initialization.leading
            case .fragment(let fragment):
                let track = try #require(leading)
                let run = try #require(fragment.run(of: track.id))
                if isFirst { #expect(run.startsWithSync, "\(name) does not start with a keyframe") }
                isFirst = false
                duration += Double(run.duration) / Double(track.timescale)
            }
        }
        #expect(abs(duration - listed) <= 0.001, "\(name) has \(duration) s instead of \(listed)")
    }
}
