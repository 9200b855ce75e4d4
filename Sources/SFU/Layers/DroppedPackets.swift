/// Records the packets of the current source that were dropped on purpose, and which of them started a picture. Later
/// packets are numbered as if these had never existed. It covers the last 512 sequence numbers, as many as `PacketHistory`.
struct DroppedPackets: Sendable {
    /// How far back it remembers, in packets of the source.
    static let window: Int64 = 512

    /// A bit for each of the last sequence numbers, at the index of its low bits.
    private var packets = SIMD8<UInt64>()
    /// A bit for each of these that started a picture.
    private var pictures = SIMD8<UInt64>()
    /// The last dropped packet; `Int64.min` before the first.
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

    /// Whether the packet is recent enough to know if it was dropped.
    func remembers(_ sequence: Int64) -> Bool { sequence > last || last - sequence < Self.window }

    func contains(_ sequence: Int64) -> Bool {
        sequence <= last && last - sequence < Self.window
            && packets[Self.word(sequence)] >> UInt64(sequence & 63) & 1 == 1
    }

    /// Returns how many packets and pictures after this packet were dropped.
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

    /// Returns the packet that was not dropped and has `count` other packets between itself and `last` that were not
    /// dropped; nil if it is too old.
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

    /// Calls `body` with runs of numbers backward from `last`, each within one word, until it returns true.
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

    /// Returns the bits of `length` numbers from `position` downward, with `position` as the highest bit.
    private static func top(_ bits: SIMD8<UInt64>, _ position: Int64, _ length: Int) -> UInt64 {
        let aligned = bits[word(position)] << UInt64(63 - position & 63)
        return length == 64 ? aligned : aligned & ~(UInt64.max >> UInt64(length))
    }
}
