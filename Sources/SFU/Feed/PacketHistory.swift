import RTC

/// The most recent packets of one video encoding, unencrypted, for retransmission to subscribers that report losses (RFC 4585
/// §6.2.1).
///
/// All subscribers share one history. Its memory is allocated once, when the first packet arrives. A packet's slot is
/// determined by the low bits of its sequence number, so neither storing nor finding a packet allocates or searches.
final class PacketHistory {
    /// The number of packets stored, about a second of video at 4 Mbit/s. For older losses, a keyframe is faster. Must be a
    /// power of two.
    static let capacity = 512
    /// The maximum size of a stored packet in bytes, the longest that fits in an Ethernet frame. Browsers send at most 1200
    /// bytes.
    static let slotSize = 1472

    /// The maximum age of a packet that is retransmitted, counted from its arrival at the server. Even a packet that
    /// was sent only after `WaitingPackets.longest` can be retransmitted for about a second. An older packet would
    /// arrive too late to be shown, and a keyframe is needed instead. The limit also keeps a network path that
    /// recovers after seconds from filling with outdated packets.
    static let maxAge = MediaInterval.milliseconds(1800)

    /// The entry of one stored packet; its bytes are in `memory`.
    private struct Slot {
        var sequence = Int64.min
        var storedAt = MediaTime(nanoseconds: 0)
        var packet: RTPPacket?
        var length = 0
        var isRecovered = false
    }

    private let memory: UnsafeMutableRawBufferPointer
    private var slots = [Slot](repeating: Slot(), count: capacity)

    init() {
        memory = .allocate(byteCount: Self.capacity * Self.slotSize, alignment: 16)
    }

    deinit { memory.deallocate() }

    /// Stores a copy of a packet. Ignores packets that are longer than `slotSize`, or older than the packet in their
    /// slot.
    /// - Parameter isRecovered: whether the packet arrived as a retransmission.
    func store(
        _ bytes: UnsafeRawBufferPointer, _ packet: RTPPacket, sequence: Int64, isRecovered: Bool, now: MediaTime
    ) {
        guard bytes.count <= Self.slotSize else { return }
        let index = Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)
        // A late packet must not overwrite a newer one.
        guard slots[index].sequence < sequence else { return }
        UnsafeMutableRawBufferPointer(rebasing: memory[(index * Self.slotSize)...]).copyMemory(from: bytes)
        slots[index] = Slot(
            sequence: sequence, storedAt: now, packet: packet, length: bytes.count, isRecovered: isRecovered)
    }

    /// Returns whether this packet, or a later one in the same slot, was stored. False if the packet has not been
    /// received yet.
    func isPast(_ sequence: Int64) -> Bool {
        slots[Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)].sequence >= sequence
    }

    /// Returns when the packet that occupies this sequence number's slot was stored. That packet may have another
    /// sequence number.
    func storedAt(_ sequence: Int64) -> MediaTime {
        slots[Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)].storedAt
    }

    /// Returns whether the packet that occupies this sequence number's slot arrived as a retransmission. That packet
    /// may have another sequence number.
    func isRecovered(_ sequence: Int64) -> Bool {
        slots[Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)].isRecovered
    }

    /// Returns the packet with this extended sequence number, if it is stored and recent enough. Its bytes are valid until the
    /// next `store`.
    func packet(_ sequence: Int64, now: MediaTime) -> (UnsafeRawBufferPointer, RTPPacket)? {
        let index = Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)
        guard slots[index].sequence == sequence, let packet = slots[index].packet,
            now - slots[index].storedAt <= Self.maxAge
        else { return nil }
        let start = index * Self.slotSize
        return (UnsafeRawBufferPointer(rebasing: memory[start..<start + slots[index].length]), packet)
    }
}

/// A packet of the history, and the sequence number under which it was sent to a subscriber.
struct StoredPacket {
    var number: UInt16
    /// The extended sequence number at the publisher.
    var sequence: Int64
    var bytes: UnsafeRawBufferPointer
    var packet: RTPPacket
}
