/// The times and sizes of the most recent packets that were sent with a transport-wide sequence number
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01 §2). It takes 4 kB, four bytes a packet, and adding a packet allocates
/// nothing.
public struct SentPackets: Sendable {
    /// The number of remembered packets, a power of two. At 1000 packets a second, feedback may be a second late.
    public static let capacity = 1024
    /// Times are stored in units of 2^16 ns, about 66 µs, in 19 bits: they repeat after 34 s.
    private static let tick: Int64 = 16
    private static let timeMask: UInt32 = 0x7_ffff
    /// Sizes are stored in eleven bits; no datagram is longer.
    private static let sizeMask: UInt32 = 0x7ff

    /// For each packet, from the highest bit: the time, the size, whether feedback has reported it as lost, and whether it has
    /// reported its arrival.
    private var records = ContiguousArray<UInt32>(repeating: 0, count: capacity)
    /// The number of packets sent so far. Its lowest 16 bits are the sequence number of the next packet.
    public private(set) var count: Int64 = 0

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
        records[Int(truncatingIfNeeded: count) & (Self.capacity - 1)] = ticks << 13 | size << 2
        count &+= 1
        return number
    }

    /// Removes the most recently added packet.
    mutating func removeLast() { count = max(0, count - 1) }

    /// Reads the memory that `add` needs, so that it is in the cache.
    @inline(__always)
    func prefetch() -> UInt64 { UInt64(records[Int(truncatingIfNeeded: count) & (Self.capacity - 1)]) }

    /// The extended number of the oldest packet that is remembered.
    var oldest: Int64 { max(0, count &- Int64(Self.capacity)) }

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
        packet(records[Int(truncatingIfNeeded: number) & (Self.capacity - 1)], now: now)
    }

    /// Records that feedback has reported a packet's arrival.
    /// - Returns: the packet's previous record.
    @inline(__always)
    mutating func arrived(_ number: Int64, now: MediaTime) -> Packet {
        let index = Int(truncatingIfNeeded: number) & (Self.capacity - 1)
        let record = records[index]
        records[index] = record | 1
        return packet(record, now: now)
    }

    @inline(__always)
    private func packet(_ record: UInt32, now: MediaTime) -> Packet {
        let age = (UInt32(truncatingIfNeeded: now.nanoseconds >> Self.tick) &- record >> 13) & Self.timeMask
        let ticks = (now.nanoseconds >> Self.tick) - Int64(age)
        return Packet(
            sentAt: MediaTime(nanoseconds: ticks << Self.tick), bytes: Int(record >> 2 & Self.sizeMask),
            wasLost: record & 2 != 0, hasArrived: record & 1 != 0
        )
    }

    mutating func markLost(_ number: Int64) {
        records[Int(truncatingIfNeeded: number) & (Self.capacity - 1)] |= 2
    }
}
