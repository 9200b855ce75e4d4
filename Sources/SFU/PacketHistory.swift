import RTC

/// The last packets of one video encoding in plain text, for whoever reports one lost (RFC 4585 §6.2.1).
///
/// One copy serves all subscribers. Memory is taken once, when the first packet comes, and a slot is found by the low
/// bits of its sequence number: nothing is allocated or searched for a packet.
final class PacketHistory {
    /// About a second of video at 4 Mbit/s; whoever asks later than that gets a keyframe sooner. A power of two.
    static let capacity = 512
    /// An Ethernet frame holds no longer packet, and browsers send at most 1200 bytes.
    static let slotSize = 1472

    /// What is reported lost later than this would come too late to be seen: a keyframe helps, and a line that comes back after
    /// seconds is not filled with what nobody wants any more.
    static let mostAge = MediaInterval.seconds(1)

    private struct Slot {
        var sequence = Int64.min
        var storedAt = MediaTime(nanoseconds: 0)
        var packet: RTPPacket?
        var length = 0
    }

    private let memory: UnsafeMutableRawBufferPointer
    private var slots = [Slot](repeating: Slot(), count: capacity)

    init() {
        memory = .allocate(byteCount: Self.capacity * Self.slotSize, alignment: 16)
    }

    deinit { memory.deallocate() }

    /// Keeps a copy.
    func store(_ bytes: UnsafeRawBufferPointer, _ packet: RTPPacket, sequence: Int64, now: MediaTime) {
        guard bytes.count <= Self.slotSize else { return }
        let index = Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)
        // A late packet must not push out a newer one.
        guard slots[index].sequence < sequence else { return }
        UnsafeMutableRawBufferPointer(rebasing: memory[(index * Self.slotSize)...]).copyMemory(from: bytes)
        slots[index] = Slot(sequence: sequence, storedAt: now, packet: packet, length: bytes.count)
    }

    /// Whether a packet was here and is of no use any more, rather than one that has not come yet.
    func isPast(_ sequence: Int64) -> Bool {
        slots[Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)].sequence >= sequence
    }

    /// The packet with this number, if it is still here and of use. The bytes are good until the next `store`.
    func packet(_ sequence: Int64, now: MediaTime) -> (UnsafeRawBufferPointer, RTPPacket)? {
        let index = Int(truncatingIfNeeded: sequence) & (Self.capacity - 1)
        guard slots[index].sequence == sequence, let packet = slots[index].packet,
            now - slots[index].storedAt <= Self.mostAge
        else { return nil }
        let start = index * Self.slotSize
        return (UnsafeRawBufferPointer(rebasing: memory[start..<start + slots[index].length]), packet)
    }
}
