/// Records the arrival times of all packets of one transport, and writes the feedback from which the sender estimates its
/// bandwidth (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// ```swift
/// feedback.receive(number, at: now)
/// while feedback.writeFeedback(sender: ours, media: theirs, to: &writer) { … }   // one packet each time
/// ```
/// The 33 kB of memory are allocated once, when the value is created, and not for each packet.
public struct TransportFeedback: Sendable {
    /// The number of packets that are remembered. It must be a power of two. This is 8 s at 1000 packets a second, while
    /// feedback is sent every 50 to 200 ms.
    public static let window = 8_192
    /// The maximum distance, in sequence numbers, between a late packet and the start of the next feedback. A packet
    /// that is later than this is not reported: reporting a late packet means reporting all packets after it again,
    /// which would cost too much.
    public static let maxReordered: Int64 = 256
    /// The longest feedback packet in bytes, including its header. It fits in a datagram together with a receiver report.
    public static let maxBytes = 1_100

    /// Arrival times in ticks of 250 µs, which wrap after 12.4 days, like the reference time.
    private var arrivals = ContiguousArray<UInt32>(repeating: 0, count: window)
    private var known = ContiguousArray<UInt64>(repeating: 0, count: window / 64)
    private var unwrapper = SequenceUnwrapper()
    /// The first sequence number of the next feedback.
    private var next: Int64 = 0
    private var feedbackCount: UInt8 = 0

    public init() {}

    /// Records the arrival of a packet.
    ///
    /// - Parameter number: the transport-wide sequence number; see `HeaderExtensions.transportSequenceNumber`.
    public mutating func receive(_ number: UInt16, at now: MediaTime) {
        let highest = unwrapper.highest
        let number = unwrapper.unwrap(number)
        if let highest, !unwrapper.restarted, number - highest < Int64(Self.window) {
            if number <= highest {
                guard number > highest - Int64(Self.window), number >= next - Self.maxReordered, !isKnown(number)
                else { return }
                next = min(next, number)
            } else {
                forget(highest + 1..<number)
                next = max(next, number - Int64(Self.window) + 1)
            }
        } else {
            for index in known.indices { known[index] = 0 }
            next = number
        }
        setKnown(number, true)
        arrivals[Self.slot(number)] = UInt32(truncatingIfNeeded: now.nanoseconds / 250_000)
    }

    private static func slot(_ number: Int64) -> Int { Int(truncatingIfNeeded: number) & (window - 1) }

    private func isKnown(_ number: Int64) -> Bool {
        let slot = Self.slot(number)
        return known[slot >> 6] >> UInt64(slot & 63) & 1 != 0
    }

    private mutating func setKnown(_ number: Int64, _ isKnown: Bool) {
        let slot = Self.slot(number)
        let bit: UInt64 = 1 << UInt64(slot & 63)
        if isKnown { known[slot >> 6] |= bit } else { known[slot >> 6] &= ~bit }
    }

    /// Clears the bits of these sequence numbers, whole words at a time, because there may be as many as a whole
    /// window: any packet can be that far ahead of the previous one.
    private mutating func forget(_ numbers: Range<Int64>) {
        var number = numbers.lowerBound
        while number < numbers.upperBound {
            let slot = Self.slot(number)
            if slot & 63 == 0, numbers.upperBound - number >= 64 {
                known[slot >> 6] = 0
                number += 64
            } else {
                setKnown(number, false)
                number += 1
            }
        }
    }

    /// Whether packets have arrived since the most recent feedback.
    public var hasNews: Bool { unwrapper.highest.map { next <= $0 } ?? false }
}

extension TransportFeedback {
    /// Writes one feedback packet about the packets since the previous feedback. Callers repeat the call until it returns
    /// false, because there may be more packets than fit, or a pause that is too long for a delta.
    ///
    /// - Parameters:
    ///   - sender: the local SSRC.
    ///   - media: any SSRC of the transport.
    ///   - writer: must have room for `maxBytes`; otherwise it may overflow.
    /// - Returns: true if a packet was written.
    public mutating func writeFeedback(sender: UInt32, media: UInt32, to writer: inout ByteWriter) -> Bool {
        guard let highest = unwrapper.highest, let first = firstKnown(upTo: highest) else { return false }
        let start = RTCP.begin(.transportLayerFeedback, count: RTCP.transportFeedbackFormat, to: &writer)
        let reference = arrivals[Self.slot(first)] >> 8
        writer.u32(sender)
        writer.u32(media)
        writer.u16(UInt16(truncatingIfNeeded: next))
        let statusCount = writer.count
        writer.u16(0)
        writer.u24(reference)
        writer.u8(feedbackCount)
        feedbackCount &+= 1
        let from = next
        withUnsafeTemporaryAllocation(byteCount: Self.maxBytes, alignment: 2) { memory in
            var deltas = ByteWriter(memory)
            writeStatuses(upTo: highest, reference: reference, start: start, deltas: &deltas, to: &writer)
            writer.append(UnsafeRawBufferPointer(rebasing: memory[..<deltas.count]))
        }
        writer.patch16(UInt16(truncatingIfNeeded: next - from), at: statusCount)
        writer.zeros((4 - (writer.count - start) & 3) & 3)
        RTCP.end(start, in: &writer)
        return true
    }

    private func firstKnown(upTo highest: Int64) -> Int64? {
        var number = next
        while number <= highest {
            if isKnown(number) { return number }
            number += 1
        }
        return nil
    }

    /// Writes the status chunks, and collects in `deltas` the deltas that follow them. Moves `next` past the last
    /// packet that fits.
    private mutating func writeStatuses(
        upTo highest: Int64, reference: UInt32, start: Int, deltas: inout ByteWriter, to writer: inout ByteWriter
    ) {
        var chunks = StatusChunks()
        var previous = reference &<< 8
        while next <= highest {
            var status = PacketStatus.notReceived
            if isKnown(next) {
                let arrival = arrivals[Self.slot(next)]
                let delta = Int32(bitPattern: arrival &- previous)
                guard let large = Int16(exactly: delta) else { break }
                status = UInt8(exactly: delta) == nil ? .largeDelta : .smallDelta
                guard hasRoom(for: status, start: start, deltas: deltas, writer) else { break }
                previous = arrival
                if status == .smallDelta {
                    deltas.u8(UInt8(truncatingIfNeeded: large))
                } else {
                    deltas.u16(UInt16(bitPattern: large))
                }
            } else if !hasRoom(for: status, start: start, deltas: deltas, writer) {
                break
            }
            chunks.add(status, to: &writer)
            next += 1
        }
        chunks.finish(to: &writer)
    }

    /// Returns whether another status and its delta fit. Pending statuses take at most two chunks, one more status may take a
    /// third, and padding takes up to three bytes.
    private func hasRoom(for status: PacketStatus, start: Int, deltas: ByteWriter, _ writer: ByteWriter) -> Bool {
        writer.count - start + deltas.count + status.deltaBytes + 6 + 3 <= Self.maxBytes
    }
}
