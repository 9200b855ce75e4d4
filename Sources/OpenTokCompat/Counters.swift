import Confab
import Foundation

/// The summed counters of a stream's audio or video.
struct Counters: Equatable {
    var lost: Int64 = 0
    var packets: UInt64 = 0
    var bytes: UInt64 = 0
    /// When the counters were read, in milliseconds since 1970.
    var time = Date().milliseconds
}

extension Date {
    var milliseconds: Double { timeIntervalSince1970 * 1000 }
}

extension [Statistic] {
    /// Returns the counters of audio or video, summed over all layers and subscribers; nil if nothing of this kind is
    /// sent or received.
    func sum(_ kind: TrackKind) -> Counters? {
        let ours = filter { $0.kind == kind }
        // Ignore a kind without packets: a pair of transceivers has both kinds, even for a stream with only one.
        guard ours.contains(where: { $0.packets > 0 }) else { return nil }
        return ours.reduce(into: Counters()) { sum, statistic in
            sum.lost &+= statistic.packetsLost
            sum.packets &+= statistic.packets
            sum.bytes &+= statistic.bytes
        }
    }

    var audioLevel: Float? { first { $0.kind == .audio }?.audioLevel.map { Float($0) } }

    /// The statistics as a JSON array, with the names of the W3C's WebRTC statistics.
    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return (try? encoder.encode(map(Report.init))).map { String(decoding: $0, as: UTF8.self) } ?? "[]"
    }
}

/// A statistic as an `RTCStats` dictionary.
private struct Report: Encodable {
    var type: String
    var kind: String
    var mid, rid: String?
    var packetsSent, packetsReceived, bytesSent, bytesReceived: UInt64?
    var packetsLost: Int64
    var jitter, roundTripTime, audioLevel: Double?
    var framesSent, framesReceived: UInt64?
    var frameWidth, frameHeight: Int?

    init(_ statistic: Statistic) {
        let isSent = statistic.flow == .sent
        (type, kind) = (isSent ? "outbound-rtp" : "inbound-rtp", statistic.kind.rawValue)
        (mid, rid, packetsLost) = (statistic.mid, statistic.rid, statistic.packetsLost)
        if isSent {
            (packetsSent, bytesSent) = (statistic.packets, statistic.bytes)
        } else {
            (packetsReceived, bytesReceived) = (statistic.packets, statistic.bytes)
        }
        if statistic.kind == .video {
            if isSent { framesSent = statistic.frames } else { framesReceived = statistic.frames }
        }
        (frameWidth, frameHeight) = (statistic.size?.width, statistic.size?.height)
        (jitter, roundTripTime) = (statistic.jitter?.seconds, statistic.roundTripTime?.seconds)
        audioLevel = statistic.audioLevel
    }
}

extension Duration {
    fileprivate var seconds: Double { self / .seconds(1) }
}

/// Repeats a measurement once a second, from when `run` is called with true until it is called with false.
@MainActor final class Meter {
    private var task: Task<Void, Never>?

    deinit { task?.cancel() }

    func run(_ isWanted: Bool, _ measure: @escaping @MainActor @Sendable () async -> Void) {
        guard isWanted != (task != nil) else { return }
        task?.cancel()
        task = nil
        guard isWanted else { return }
        task = Task {
            while (try? await ContinuousClock().sleep(for: .seconds(1))) != nil { await measure() }
        }
    }
}
