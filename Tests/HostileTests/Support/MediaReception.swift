import RTC

/// The packets that one transceiver of a robot has received, and those that are missing.
struct MediaReception {
    let kind: MediaKind
    let ssrc: UInt32
    let repairSSRC: UInt32?
    /// The publisher's mark that these packets must have. Others are counted as foreign.
    var expected: UInt64?
    private(set) var packets = 0
    private(set) var bytes = 0
    private(set) var repeats = 0
    private(set) var repeatBytes = 0
    /// The number of duplicate packets that were not requested.
    private(set) var duplicates = 0
    /// The number of packets with another publisher's mark.
    private(set) var foreign = 0
    /// The number of packets without a readable mark.
    private(set) var unmarked = 0
    private(set) var first: UInt32?
    private(set) var last: UInt32 = 0
    private var numbers: Set<UInt32> = []
    private(set) var lastAt: MediaTime?
    /// The longest time between two packets since the last reset.
    var longestGap = MediaInterval.zero
    /// The delays from sending to receiving. Retransmissions are not included.
    private(set) var latencies: [MediaInterval] = []

    private var unwrapper = SequenceUnwrapper()
    private var nacks = NACKGenerator()

    init(_ kind: MediaKind, _ source: RemoteSource) {
        (self.kind, ssrc, repairSSRC) = (kind, source.ssrc, source.rtxSSRC)
    }

    /// Returns the number of the publisher's packets that did not arrive, from the first received packet up to, but not
    /// including, `end`.
    func missing(before end: UInt32) -> Int {
        guard let first, end > first else { return 0 }
        return Int(end - first) - numbers.count
    }

    var count: Int { numbers.count }

    mutating func take(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, now: MediaTime) {
        let isRetransmission = packet.ssrc == repairSSRC
        var payload = UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange])
        if isRetransmission {
            repeats += 1
            repeatBytes += bytes.count
            guard let original = packet.originalSequenceNumber(in: bytes) else { return }
            nacks.receive(unwrapper.nearest(original), at: now)
            payload = UnsafeRawBufferPointer(rebasing: payload[2...])
        } else {
            packets += 1
            self.bytes += bytes.count
            let number = unwrapper.unwrap(packet.sequenceNumber)
            if kind == .video { nacks.receive(number, at: now) }
            if let lastAt { longestGap = max(longestGap, now - lastAt) }
            lastAt = now
        }
        read(payload, isRetransmission: isRetransmission, now: now)
    }

    private mutating func read(_ payload: UnsafeRawBufferPointer, isRetransmission: Bool, now: MediaTime) {
        var reader = ByteReader(payload)
        let skipped = kind == .video ? (VP8Descriptor(payload)?.length ?? 0) + 1 : 1
        guard reader.skip(skipped), let mark = reader.u64(), let count = reader.u32(), let sent = reader.u64() else {
            unmarked += 1
            return
        }
        guard let expected else { return }
        guard mark == expected else {
            foreign += 1
            return
        }
        guard numbers.insert(count).inserted else {
            if !isRetransmission { duplicates += 1 }
            return
        }
        if first == nil { first = count }
        // Retransmissions from before the first packet do not count.
        if count < first ?? 0 { numbers.remove(count) }
        last = max(last, count)
        if !isRetransmission { latencies.append(MediaInterval(nanoseconds: now.nanoseconds - Int64(bitPattern: sent))) }
    }

    /// Requests missing packets.
    mutating func complain(over line: MediaLine, now: MediaTime) {
        guard kind == .video, nacks.outstanding > 0 else { return }
        var lost: [UInt16] = []
        nacks.forEachDue(at: now, roundTrip: .milliseconds(30)) { lost.append($0) }
        guard !lost.isEmpty else { return }
        line.sendControl { writer in
            RTCP.writeReceiverReport(sender: 1, blocks: [], to: &writer)
            RTCP.writeNACK(sender: 1, media: ssrc, lost: lost, to: &writer)
        }
    }
}
