/// A number of bits per second.
public struct Bitrate: Hashable, Comparable, Sendable {
    public var bitsPerSecond: Int64

    public init(bitsPerSecond: Int64) { self.bitsPerSecond = bitsPerSecond }

    public static let zero = Bitrate(bitsPerSecond: 0)
    public static func kilobits(_ count: Int64) -> Bitrate { Bitrate(bitsPerSecond: count &* 1000) }

    /// Computes the bitrate of this many bytes in an interval, which must be longer than zero.
    public init(bytes: Int, in interval: MediaInterval) {
        bitsPerSecond = Int64(Double(bytes) * 8e9 / Double(max(1, interval.nanoseconds)))
    }

    /// Returns the number of bytes that this bitrate carries in an interval.
    public func bytes(in interval: MediaInterval) -> Int {
        Int(clamping: Int64(Double(bitsPerSecond) * Double(interval.nanoseconds) / 8e9))
    }

    public static func < (left: Bitrate, right: Bitrate) -> Bool { left.bitsPerSecond < right.bitsPerSecond }
    public static func + (left: Bitrate, right: Bitrate) -> Bitrate {
        Bitrate(bitsPerSecond: left.bitsPerSecond &+ right.bitsPerSecond)
    }
    public static func - (left: Bitrate, right: Bitrate) -> Bitrate {
        Bitrate(bitsPerSecond: left.bitsPerSecond &- right.bitsPerSecond)
    }
    public static func * (bitrate: Bitrate, factor: Double) -> Bitrate {
        Bitrate(bitsPerSecond: Int64(Double(bitrate.bitsPerSecond) * factor))
    }
}
