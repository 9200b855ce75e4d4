import Confab

/// One entry of a WebRTC statistics report, independent of its types. The names are those of the W3C's WebRTC
/// statistics.
public struct ReportedStatistics: Equatable, Sendable {
    public var type: String
    public var numbers: [String: Double]
    public var texts: [String: String]

    public init(type: String, numbers: [String: Double], texts: [String: String]) {
        (self.type, self.numbers, self.texts) = (type, numbers, texts)
    }

    private func count(_ name: String) -> UInt64 { UInt64(exactly: numbers[name]?.rounded() ?? 0) ?? 0 }
    private func seconds(_ name: String) -> Duration? {
        numbers[name].flatMap { $0.isFinite && abs($0) < 1_000_000 ? .seconds($0) : nil }
    }

    /// Returns the counters of all RTP streams in a report, which maps ids to entries.
    public static func streams(of report: [String: ReportedStatistics]) -> [Statistic] {
        report.values.compactMap { $0.stream(in: report) }
    }

    private func stream(in report: [String: ReportedStatistics]) -> Statistic? {
        guard type == "inbound-rtp" || type == "outbound-rtp" else { return nil }
        let isReceived = type == "inbound-rtp"
        let kind: TrackKind = texts["kind"] == "audio" ? .audio : .video
        var statistic = Statistic(isReceived ? .received : .sent, kind, mid: texts["mid"], rid: texts["rid"])
        statistic.packets = count(isReceived ? "packetsReceived" : "packetsSent")
        statistic.bytes = count(isReceived ? "bytesReceived" : "bytesSent")
        statistic.frames = count(isReceived ? "framesReceived" : "framesEncoded")
        statistic.keyFrames = count(isReceived ? "keyFramesDecoded" : "keyFramesEncoded")
        if let width = numbers["frameWidth"].flatMap({ Int(exactly: $0) }),
            let height = numbers["frameHeight"].flatMap({ Int(exactly: $0) })
        {
            statistic.size = VideoSize(width: width, height: height)
        }
        // For a sent stream, the other peer reports the loss.
        let reporter = isReceived ? self : texts["remoteId"].flatMap { report[$0] }
        statistic.packetsLost = reporter?.numbers["packetsLost"].flatMap { Int64(exactly: $0.rounded()) } ?? 0
        statistic.jitter = reporter?.seconds("jitter")
        statistic.roundTripTime = reporter?.seconds("roundTripTime")
        statistic.audioLevel = numbers["audioLevel"]
        statistic.availableBitrate = Self.bitrate(
            in: report, isReceived ? "availableIncomingBitrate" : "availableOutgoingBitrate")
        guard kind == .video else { return statistic }
        statistic.frameRate = numbers["framesPerSecond"]
        statistic.limitation = texts["qualityLimitationReason"].map { Statistic.Limitation(rawValue: $0) ?? .other }
        if isReceived {
            statistic.freezes = numbers["freezeCount"].map { _ in count("freezeCount") }
            statistic.freezeDuration = seconds("totalFreezesDuration")
        }
        return statistic
    }

    /// Returns the available bitrate of the selected candidate pair, or the highest one of several; nil if none is
    /// reported.
    private static func bitrate(in report: [String: ReportedStatistics], _ name: String) -> Int? {
        let pairs = report.values.filter { $0.type == "transport" }.compactMap { $0.texts["selectedCandidatePairId"] }
        return pairs.compactMap { report[$0]?.numbers[name] }.compactMap { Int(exactly: $0.rounded()) }.max()
    }
}
