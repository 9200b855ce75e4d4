import RTC

/// What comes into one transceiver of a robot that receives, and what of it is missing.
struct MediaReception {
    let kind: MediaKind
    let ssrc: UInt32
    let repairSSRC: UInt32?
    /// Whose packets these must be; those of others are counted.
    var expected: UInt64?
    private(set) var packets = 0
    private(set) var bytes = 0
    private(set) var repeats = 0
    private(set) var repeatBytes = 0
    /// Packets that came twice, though nobody asked for them again.
    private(set) var duplicates = 0
    /// Packets that are marked as somebody else's.
    private(set) var foreign = 0
    /// Packets without a mark that can be read.
    private(set) var unmarked = 0
    private(set) var first: UInt32?
    private(set) var last: UInt32 = 0
    private var numbers: Set<UInt32> = []
    private(set) var lastAt: MediaTime?
    /// Between two packets, since this was set back.
    var longestGap = MediaInterval.zero
    /// From being sent to being received, of packets that came at once.
    private(set) var latencies: [MediaInterval] = []

    private var unwrapper = SequenceUnwrapper()
    private var nacks = NACKGenerator()

    init(_ kind: MediaKind, _ source: RemoteSource) {
        (self.kind, ssrc, repairSSRC) = (kind, source.ssrc, source.rtxSSRC)
    }

    /// Numbers of the publisher that did not come between the first that did and `end`, which was not sent any more.
    func missing(before end: UInt32) -> Int {
        guard let first, end > first else { return 0 }
        return Int(end - first) - numbers.count
    }

    var count: Int { numbers.count }

    mutating func take(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, now: MediaTime) {
        let isRepeat = packet.ssrc == repairSSRC
        var payload = UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange])
        if isRepeat {
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
        read(payload, isRepeat: isRepeat, now: now)
    }

    private mutating func read(_ payload: UnsafeRawBufferPointer, isRepeat: Bool, now: MediaTime) {
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
            if !isRepeat { duplicates += 1 }
            return
        }
        if first == nil { first = count }
        // What is repeated from before the beginning is not part of it.
        if count < first ?? 0 { numbers.remove(count) }
        last = max(last, count)
        if !isRepeat { latencies.append(MediaInterval(nanoseconds: now.nanoseconds - Int64(bitPattern: sent))) }
    }

    /// Asks for what is missing.
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
