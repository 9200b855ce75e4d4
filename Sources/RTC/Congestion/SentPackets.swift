/// The times and sizes of the most recent packets that were sent with a transport-wide sequence number
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §2).
///
/// Most paths report all packets within a fraction of a second, so the record is a ring that starts small and doubles when it
/// would overwrite a packet that feedback may still report. It takes four bytes a packet: 256 bytes at first, at most 4 kB.
public struct SentPackets: Sendable {
    /// The maximum number of remembered packets, a power of two. At 1000 packets a second, feedback may be a second late.
    public static let capacity = 1024
    /// The number of packets that are remembered at first, a power of two. It is enough for 250 packets a second if
    /// feedback about them arrives within 250 ms.
    static let initialCapacity = 64
    /// How long a packet is remembered that did not arrive before later ones. It may have been delayed, or the feedback about
    /// it was lost.
    private static let lateness = MediaInterval.seconds(1)
    /// Times are stored in units of 2^16 ns, about 66 µs, in 19 bits: they repeat after 34 s.
    private static let tick: Int64 = 16
    private static let timeMask: UInt32 = 0x7_ffff
    /// Sizes are stored in eleven bits; no datagram is longer.
    private static let sizeMask: UInt32 = 0x7ff
    /// The lowest bits of a record. `hasArrived` also marks records without a packet.
    private static let hasArrived: UInt32 = 1
    private static let wasLost: UInt32 = 2

    /// For each packet, from the highest bit: the time, the size, whether feedback has reported it as lost, and whether it has
    /// reported its arrival.
    private var records = ContiguousArray<UInt32>(repeating: hasArrived, count: initialCapacity)
    /// The number of packets sent so far. Its lowest 16 bits are the sequence number of the next packet.
    public private(set) var count: Int64 = 0
    /// One less than the number of records. It is stored, because the array's count is in another cache line.
    private var mask = initialCapacity - 1
    /// The highest extended number that feedback has reported as arrived or lost; -1 before the first.
    private(set) var newestReported: Int64 = -1

    /// A packet as it was sent.
    struct Packet: Equatable {
        var sentAt: MediaTime
        var bytes: Int
        /// Whether feedback has reported the packet as lost. The packet may still arrive.
        var wasLost: Bool
        /// Whether feedback has already reported the packet's arrival.
        var hasArrived: Bool
    }

    public init() {}

    /// Records a packet that is sent now.
    /// - Returns: the packet's transport-wide sequence number.
    @inline(__always)
    public mutating func add(bytes: Int, at now: MediaTime) -> UInt16 {
        let number = UInt16(truncatingIfNeeded: count)
        let ticks = UInt32(truncatingIfNeeded: now.nanoseconds >> Self.tick)
        let size = min(UInt32(truncatingIfNeeded: bytes), Self.sizeMask)
        if records[place(count)] & Self.hasArrived == 0, mustGrow(now: now) { grow() }
        records[place(count)] = ticks << 13 | size << 2
        count &+= 1
        return number
    }

    @inline(__always)
    private func place(_ number: Int64) -> Int { Int(truncatingIfNeeded: number) & mask }

    /// Returns whether the packet that the next one would overwrite, which has not arrived, may still be reported.
    private func mustGrow(now: MediaTime) -> Bool {
        guard mask + 1 < Self.capacity else { return false }
        return oldest > newestReported || now - packet(oldest, now: now).sentAt < Self.lateness
    }

    private mutating func grow() {
        let former = records
        let formerMask = mask
        mask = 2 * mask + 1
        records = ContiguousArray(repeating: Self.hasArrived, count: mask + 1)
        for number in max(0, count - Int64(former.count))..<count {
            records[place(number)] = former[Int(truncatingIfNeeded: number) & formerMask]
        }
    }

    /// Removes the most recently added packet.
    mutating func removeLast() {
        guard count > 0 else { return }
        count -= 1
        records[place(count)] = Self.hasArrived
    }

    /// Treats all packets sent so far as reported.
    mutating func forgetUnreported() { newestReported = count - 1 }

    /// Reads the memory that `add` needs, so that it is in the cache.
    @inline(__always)
    func prefetch() -> UInt64 { UInt64(records[place(count)]) }

    /// The extended number of the oldest packet that is remembered.
    var oldest: Int64 { max(0, count &- Int64(mask &+ 1)) }

    /// Returns the extended number for a 16-bit number in feedback. The packet may no longer be remembered.
    func nearest(_ number: UInt16) -> Int64 {
        count &- 1 &- Int64(UInt16(truncatingIfNeeded: count &- 1) &- number)
    }

    /// Returns the extended number for a 16-bit number in feedback; nil if no such packet is remembered.
    func extended(_ number: UInt16) -> Int64? {
        let extended = nearest(number)
        return extended >= oldest ? extended : nil
    }

    /// Returns the record of a packet.
    ///
    /// - Parameter number: an extended number from `extended`.
    func packet(_ number: Int64, now: MediaTime) -> Packet {
        packet(records[place(number)], now: now)
    }

    /// Records that feedback has reported a packet's arrival.
    /// - Returns: the packet's previous record.
    @inline(__always)
    mutating func arrived(_ number: Int64, now: MediaTime) -> Packet {
        let index = place(number)
        let record = records[index]
        records[index] = record | Self.hasArrived
        newestReported = max(newestReported, number)
        return packet(record, now: now)
    }

    @inline(__always)
    private func packet(_ record: UInt32, now: MediaTime) -> Packet {
        let age = (UInt32(truncatingIfNeeded: now.nanoseconds >> Self.tick) &- record >> 13) & Self.timeMask
        let ticks = (now.nanoseconds >> Self.tick) - Int64(age)
        return Packet(
            sentAt: MediaTime(nanoseconds: ticks << Self.tick), bytes: Int(record >> 2 & Self.sizeMask),
            wasLost: record & Self.wasLost != 0, hasArrived: record & Self.hasArrived != 0
        )
    }

    /// Records that feedback has reported a packet as lost.
    mutating func markLost(_ number: Int64) {
        records[place(number)] |= Self.wasLost
        newestReported = max(newestReported, number)
    }
}
