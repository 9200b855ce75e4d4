import RTC
import TestSupport

/// A packet as the subscriber received it.
struct Arrival {
    /// The extended sequence number.
    var number: Int64
    var timestamp: UInt32
    var picture: UInt16?
    var layerZero: UInt8?
    var temporalLayer: UInt8
    var isLayerSync: Bool
    var payloadType: UInt8
    var tag: PayloadTag
    var at: MediaTime
    var isRetransmission: Bool
    /// The extension elements, by the subscriber's IDs.
    var extensions: [UInt8: [UInt8]]
}

/// A receiving transceiver of a client, which stands for the parts of a browser between the network and the decoder.
final class SimulatedSlot {
    let mid: String
    let kind: MediaKind
    let ssrc: UInt32
    let repairSSRC: UInt32?
    /// The payload types of redundant audio (RFC 2198).
    var redundant: Set<UInt8> = []
    /// The payload types of H.264.
    var h264: Set<UInt8> = []
    /// The ids of extensions that concern the transport. They are not in `arrivals`.
    var transportIDs: Set<UInt8> = []
    private var statistics: ReceiverStatistics
    var missing = NACKGenerator()
    private(set) var arrivals: [Arrival] = []
    private var numbers: Set<Int64> = []
    private(set) var duplicates = 0
    private(set) var unreadable = 0
    private(set) var reports: [RTCP.SenderInfo] = []
    var needsKeyframe = false
    private var firstAt: MediaTime?
    private var keyframeParts: [UInt64: Int] = [:]
    private var hasBegun = false
    private var hasForgotten = false
    var complainedAt: MediaTime?

    init(mid: String, kind: MediaKind, source: RemoteSource) {
        (self.mid, self.kind) = (mid, kind)
        (ssrc, repairSSRC) = (source.ssrc, source.rtxSSRC)
        statistics = ReceiverStatistics(ssrc: source.ssrc, clockRate: kind == .audio ? 48_000 : 90_000)
    }

    func take(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, at now: MediaTime) {
        let isRetransmission = packet.ssrc == repairSSRC
        var payload = UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange])
        let number: Int64
        if isRetransmission {
            guard let original = packet.originalSequenceNumber(in: bytes) else { return unreadable += 1 }
            number = statistics.nearest(original)
            payload = UnsafeRawBufferPointer(rebasing: payload[2...])
        } else {
            number = statistics.receive(
                sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, at: now
            )
        }
        missing.receive(number, at: now)
        if redundant.contains(packet.payloadType) {
            guard let block = primary(payload) else { return unreadable += 1 }
            payload = block
        }
        guard numbers.insert(number).inserted else { return duplicates += 1 }
        let isH264 = h264.contains(packet.payloadType)
        let descriptor = kind == .video && !isH264 ? VP8Descriptor(payload) : nil
        var length = descriptor.map { $0.length + 1 } ?? (isH264 ? 1 : 0)
        // A keyframe begins with ten bytes that contain the picture's size (RFC 6386 §9.1).
        if descriptor?.isKeyframeStart ?? false, payload.count > length + 9, payload[length + 2] == 0x9d { length += 9 }
        guard payload.count > length, let tag = PayloadTag(UnsafeRawBufferPointer(rebasing: payload[length...])) else {
            return unreadable += 1
        }
        var extensions: [UInt8: [UInt8]] = [:]
        packet.forEachHeaderExtension(in: bytes) {
            if !transportIDs.contains($0) { extensions[$0] = Array(bytes[$1]) }
        }
        arrivals.append(
            Arrival(
                number: number, timestamp: packet.timestamp, picture: descriptor?.pictureID,
                layerZero: descriptor?.temporalLayerZeroIndex, temporalLayer: descriptor?.temporalLayer ?? 0,
                isLayerSync: descriptor?.isLayerSync ?? false, payloadType: packet.payloadType, tag: tag, at: now,
                isRetransmission: isRetransmission, extensions: extensions
            )
        )
        firstAt = firstAt ?? now
        guard tag.isKeyframe else { return }
        keyframeParts[UInt64(tag.label) << 32 | UInt64(tag.frame), default: 0] += 1
        guard keyframeParts[UInt64(tag.label) << 32 | UInt64(tag.frame)] == Int(tag.count) else { return }
        (hasBegun, needsKeyframe) = (true, false)
    }

    /// Returns the newest block of redundant audio, after four bytes for each other block and one for its own (RFC 2198 §3).
    private func primary(_ payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var (position, skipped) = (0, 0)
        while position < payload.count, payload[position] & 0x80 != 0, position + 4 <= payload.count {
            skipped += Int(payload.bigEndian32(at: position) & 0x3ff)
            position += 4
        }
        guard position + 1 + skipped <= payload.count else { return nil }
        return UnsafeRawBufferPointer(rebasing: payload[(position + 1 + skipped)...])
    }

    func take(_ report: RTCP.SenderInfo, at now: MediaTime) {
        reports.append(report)
        statistics.receive(senderReport: report.ntp, at: now)
    }

    /// Whether the decoder needs a keyframe, or has received packets for a while without one.
    func isStuck(at now: MediaTime) -> Bool {
        needsKeyframe || !hasBegun && firstAt.map { now - $0 > .milliseconds(300) } ?? false
    }

    func reportBlock(at now: MediaTime) -> RTCP.ReportBlock? { statistics.reportBlock(at: now) }
    func forgetArrivals() { (arrivals, hasForgotten, unreadable) = ([], true, 0) }

    // MARK: Results

    /// The labels of the sources in the order received, without consecutive duplicates.
    var labels: [UInt32] { inOrder.map(\.tag.label).reduce(into: []) { if $0.last != $1 { $0.append($1) } } }
    var inOrder: [Arrival] { arrivals.sorted { $0.number < $1.number } }

    /// The frames of which at least one packet was received, in order.
    var frames: [(label: UInt32, frame: UInt32, isKeyframe: Bool, isComplete: Bool)] {
        var frames: [(label: UInt32, frame: UInt32, isKeyframe: Bool, isComplete: Bool)] = []
        var parts = 0
        for arrival in inOrder {
            let tag = arrival.tag
            if frames.last.map({ $0.label != tag.label || $0.frame != tag.frame }) ?? true {
                frames.append((tag.label, tag.frame, tag.isKeyframe, false))
                parts = 0
            }
            parts += 1
            if parts == Int(tag.count) { frames[frames.count - 1].isComplete = true }
        }
        return frames
    }

    /// Returns descriptions of problems that a decoder or jitter buffer would have. `clock` is the allowed difference
    /// between timestamps and arrival times.
    func faults(clock: MediaInterval = .milliseconds(60)) -> [String] {
        var faults: [String] = []
        let inOrder = inOrder
        guard var last = inOrder.first, let first = inOrder.first else { return [] }
        if kind == .video, !hasForgotten, !first.tag.isKeyframe { faults.append("begins without a keyframe") }
        let rate: Int64 = kind == .audio ? 48_000 : 90_000
        for next in inOrder.dropFirst() {
            if next.number != last.number + 1 { faults.append("\(last.number) is followed by \(next.number)") }
            let step = Int32(bitPattern: next.timestamp &- last.timestamp)
            let isSameFrame = next.tag.label == last.tag.label && next.tag.frame == last.tag.frame
            if isSameFrame ? step != 0 : step <= 0 { faults.append("timestamp step \(step) at \(next.number)") }
            if let was = last.picture, let picture = next.picture, (picture &- was) & 0x7fff != (isSameFrame ? 0 : 1) {
                faults.append("picture \(was) is followed by \(picture)")
            }
            if let was = last.layerZero, let index = next.layerZero,
                index &- was != (isSameFrame || next.temporalLayer > 0 ? 0 : 1)
            {
                faults.append("layer zero \(was) is followed by \(index)")
            }
            if kind == .video, next.tag.label != last.tag.label, !(next.tag.isKeyframe && next.tag.index == 0) {
                faults.append("\(next.tag.label) begins without a keyframe")
            }
            let media = Int64(next.timestamp &- first.timestamp) * 1_000_000 / rate
            let drift = media - (next.at - first.at).nanoseconds / 1000
            if !next.isRetransmission, abs(drift) > clock.nanoseconds / 1000 {
                faults.append("the timestamp of \(next.number) is off by \(drift) µs")
            }
            last = next
        }
        return faults
    }
}
