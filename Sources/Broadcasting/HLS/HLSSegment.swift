import Foundation
import MediaFiles
import Wire

/// A segment in a playlist, without its bytes.
struct HLSSegment: Hashable, Sendable {
    struct Part: Hashable, Sendable {
        let duration: Duration
        let isIndependent: Bool
    }

    /// The media sequence number.
    let number: Int
    /// The number of its initialization section.
    let initialization: Int
    /// Whether another encoder made the segment before it.
    let isDiscontinuous: Bool
    /// When its first frame was shown.
    let time: Timestamp
    /// The number of its first part.
    let firstPart: Int
    var parts: [Part] = []
    var duration: Duration = .zero
    /// In bytes.
    var size = 0

    init(number: Int, initialization: Int, isDiscontinuous: Bool, time: Timestamp, firstPart: Int) {
        (self.number, self.initialization, self.isDiscontinuous) = (number, initialization, isDiscontinuous)
        (self.time, self.firstPart) = (time, firstPart)
    }

    /// The files that belong to it alone.
    func files(_ settings: HLSSettings) -> [HLSFile] {
        let partFiles = settings.partTarget == nil ? [] : parts.indices.map { HLSFile.part(firstPart + $0) }
        return partFiles + [.segment(number)]
    }

    /// The lines before the first segment of a playlist.
    static func header(_ settings: HLSSettings, first: Int, discontinuities: Int) -> String {
        var text = """
            #EXTM3U
            #EXT-X-VERSION:7
            #EXT-X-TARGETDURATION:\(settings.targetDuration)
            #EXT-X-INDEPENDENT-SEGMENTS

            """
        if let part = settings.partTarget {
            // Both at least three times as long as what they count (draft-pantos-hls-rfc8216bis §4.4.3.8).
            let hold = "PART-HOLD-BACK=\(seconds(part * 3)),HOLD-BACK=\(settings.targetDuration * 3).0"
            text += "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,\(hold)\n"
            text += "#EXT-X-PART-INF:PART-TARGET=\(seconds(part))\n"
        }
        if settings.window == .everything { text += "#EXT-X-PLAYLIST-TYPE:EVENT\n" }
        text += "#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        text += "#EXT-X-DISCONTINUITY-SEQUENCE:\(discontinuities)\n"
        return text
    }

    /// The lines of this segment.
    ///
    /// - Parameters:
    ///   - previous: the segment before it in the playlist; nil for the first.
    ///   - isComplete: false if more parts will come.
    func lines(
        after previous: HLSSegment?, _ settings: HLSSettings, hasParts: Bool = true, isComplete: Bool = true
    ) -> String {
        var text = isDiscontinuous ? "#EXT-X-DISCONTINUITY\n" : ""
        if previous?.initialization != initialization {
            text += "#EXT-X-MAP:URI=\"\(HLSFile.initialization(initialization).name)\"\n"
        }
        if previous == nil || isDiscontinuous { text += "#EXT-X-PROGRAM-DATE-TIME:\(Self.date(time))\n" }
        if settings.partTarget != nil, hasParts {
            for (index, part) in parts.enumerated() {
                let name = HLSFile.part(firstPart + index).name
                let independent = part.isIndependent ? ",INDEPENDENT=YES" : ""
                text += "#EXT-X-PART:DURATION=\(Self.seconds(part.duration)),URI=\"\(name)\"\(independent)\n"
            }
        }
        if isComplete { text += "#EXTINF:\(Self.seconds(duration)),\n\(HLSFile.segment(number).name)\n" }
        return text
    }

    /// Writes a duration in seconds, rounded to five decimals.
    static func seconds(_ duration: Duration) -> String {
        let (whole, attoseconds) = duration.components
        let units = whole * 100_000 + (attoseconds + 5_000_000_000_000) / 10_000_000_000_000
        return "\(units / 100_000).\(HLSFile.padded(Int(units % 100_000), to: 5))"
    }

    /// Writes a time of day, such as `2026-01-02T03:04:05.678Z`.
    private static func date(_ time: Timestamp) -> String {
        Date(timeIntervalSince1970: Double(time.milliseconds) / 1_000)
            .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }
}

/// The bit rates of a stream.
struct HLSTraffic: Hashable, Sendable {
    private var peak = 0
    private var bytes = 0
    private var duration: Duration = .zero

    mutating func take(_ segment: HLSSegment) {
        peak = max(peak, Self.bitrate(segment.size, segment.duration))
        bytes += segment.size
        duration += segment.duration
    }

    /// Returns the multivariant playlist.
    func index(of initialization: MP4Initialization, _ settings: HLSSettings) -> String {
        let bandwidth = max(peak, settings.bitrate)
        let average = duration > .zero ? Self.bitrate(bytes, duration) : bandwidth
        let codecs = initialization.tracks.map(\.codec).joined(separator: ",")
        var line = "#EXT-X-STREAM-INF:BANDWIDTH=\(bandwidth),AVERAGE-BANDWIDTH=\(average),CODECS=\"\(codecs)\""
        let leading = initialization.leading
        if leading.kind == .video {
            line += ",RESOLUTION=\(leading.width)x\(leading.height),FRAME-RATE=\(settings.frameRate).000"
        }
        return "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n\(line)\n\(HLSFile.playlist)\n"
    }

    /// Returns bits per second. Segments are shorter than a minute and smaller than a gigabyte.
    private static func bitrate(_ bytes: Int, _ duration: Duration) -> Int {
        let milliseconds = max(1, Int(duration.wholeMilliseconds))
        return bytes * 8 / milliseconds * 1_000 + bytes * 8 % milliseconds * 1_000 / milliseconds
    }
}
