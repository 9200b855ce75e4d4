/// Records which packets of the current source were dropped on purpose, and which of those started a frame. Later
/// packets are numbered as if the dropped ones had never existed. The record covers the most recent 512 sequence
/// numbers, as many as `PacketHistory` stores.
struct DroppedPackets: Sendable {
    /// The number of recent sequence numbers that the record covers.
    static let window: Int64 = 512

    /// One bit per recent sequence number, indexed by the number's low bits. Set if the packet was dropped.
    private var packets = SIMD8<UInt64>()
    /// One bit per recent sequence number. Set if the packet was dropped and started a frame.
    private var pictures = SIMD8<UInt64>()
    /// The sequence number of the most recently dropped packet; `Int64.min` if none was dropped.
    private(set) var last = Int64.min

    mutating func insert(_ sequence: Int64, startsPicture: Bool) {
        if last == .min || sequence - last >= Self.window {
            (packets, pictures) = (.zero, .zero)
        } else {
            for number in last + 1..<max(sequence, last + 1) { set(number, false, false) }
        }
        set(sequence, true, startsPicture)
        last = sequence
    }

    private mutating func set(_ number: Int64, _ isDropped: Bool, _ startsPicture: Bool) {
        let (word, bit) = (Self.word(number), UInt64(1) << UInt64(number & 63))
        packets[word] = isDropped ? packets[word] | bit : packets[word] & ~bit
        pictures[word] = startsPicture ? pictures[word] | bit : pictures[word] & ~bit
    }

    private static func word(_ number: Int64) -> Int { Int(number >> 6) & 7 }

    /// Returns whether the packet is recent enough for the record to show if it was dropped.
    func remembers(_ sequence: Int64) -> Bool { sequence > last || last - sequence < Self.window }

    func contains(_ sequence: Int64) -> Bool {
        sequence <= last && last - sequence < Self.window
            && packets[Self.word(sequence)] >> UInt64(sequence & 63) & 1 == 1
    }

    /// Returns how many packets after this packet were dropped, and how many of those started a frame; zeros if this
    /// packet is older than the record.
    func counts(after sequence: Int64) -> (packets: Int64, pictures: Int64) {
        var (packets, pictures): (Int64, Int64) = (0, 0)
        guard sequence < last, last - sequence < Self.window else { return (0, 0) }
        forEachRun { position, length in
            let wanted = min(Int64(length), position - sequence)
            guard wanted > 0 else { return true }
            packets += Int64(Self.top(self.packets, position, Int(wanted)).nonzeroBitCount)
            pictures += Int64(Self.top(self.pictures, position, Int(wanted)).nonzeroBitCount)
            return false
        }
        return (packets, pictures)
    }

    /// Returns the sequence number at position `count` among the packets that were not dropped, counted backward from `last`
    /// and starting at 0. Returns nil if that packet is older than the record.
    func kept(_ count: Int64) -> Int64? {
        var (left, found): (Int64, Int64?) = (count, nil)
        forEachRun { position, length in
            let bits = Self.top(packets, position, length)
            let kept = Int64(length - bits.nonzeroBitCount)
            if left >= kept {
                left -= kept
                return false
            }
            for index in 0..<length where bits >> UInt64(63 - index) & 1 == 0 {
                if left == 0 {
                    found = position - Int64(index)
                    break
                }
                left -= 1
            }
            return true
        }
        return found
    }

    /// Walks backward from `last` and calls `body` with runs of sequence numbers, each within one word, until `body` returns
    /// true.
    private func forEachRun(_ body: (_ position: Int64, _ length: Int) -> Bool) {
        guard last > .min else { return }
        var (position, left) = (last, Int(Self.window))
        while left > 0 {
            let length = min(Int(position & 63) + 1, left)
            if body(position, length) { return }
            position -= Int64(length)
            left -= length
        }
    }

    /// Returns the bits of `length` sequence numbers from `position` downward. The highest bit belongs to `position`.
    private static func top(_ bits: SIMD8<UInt64>, _ position: Int64, _ length: Int) -> UInt64 {
        let aligned = bits[word(position)] << UInt64(63 - position & 63)
        return length == 64 ? aligned : aligned & ~(UInt64.max >> UInt64(length))
    }
}
