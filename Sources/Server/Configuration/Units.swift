/// A number of bytes, written in configuration as `64KiB`.
public struct ByteCount: Hashable, Comparable, Sendable {
    public var bytes: Int

    public init(bytes: Int) { self.bytes = bytes }

    public static func kibibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 10) }
    public static func mebibytes(_ count: Int) -> ByteCount { ByteCount(bytes: count << 20) }

    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }
}

extension ByteCount: CustomStringConvertible {
    /// The size in the largest unit that divides it: `64KiB`, `1MiB`, `1500B`. ``init(_:)`` parses it.
    public var description: String {
        for (unit, scale) in Self.units where bytes != 0 && bytes % scale == 0 { return "\(bytes / scale)\(unit)" }
        return "\(bytes)B"
    }

    /// Parses a whole number and a unit: `B`, `KiB`, `MiB` or `GiB`. Returns nil for anything else. A unit is required, so
    /// that the file is unambiguous.
    public init?(_ text: String) {
        guard let (number, unit) = splitQuantity(text), let scale = Self.units.first(where: { $0.0 == unit })?.1 else {
            return nil
        }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: scale)
        if overflow { return nil }
        self.init(bytes: bytes)
    }

    private static let units: [(String, Int)] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)]
}

/// A number of bits per second, written in configuration as `100Mbit/s`. The prefixes are decimal, as is usual for
/// networks.
public struct Bitrate: Hashable, Sendable, CustomStringConvertible {
    public var bitsPerSecond: Int

    public init(bitsPerSecond: Int) { self.bitsPerSecond = bitsPerSecond }

    /// Parses a whole number and a unit: `kbit/s`, `Mbit/s` or `Gbit/s`. Returns nil for anything else.
    public init?(_ text: String) {
        guard let (number, unit) = splitQuantity(text), let scale = Self.units.first(where: { $0.0 == unit })?.1 else {
            return nil
        }
        let (bits, overflow) = number.multipliedReportingOverflow(by: scale)
        if overflow { return nil }
        self.init(bitsPerSecond: bits)
    }

    /// The bitrate in the largest unit that divides it, or rounded down to whole kbit/s. ``init(_:)`` parses it.
    public var description: String {
        let (unit, scale) = Self.units.first { bitsPerSecond % $0.1 == 0 } ?? ("kbit/s", 1000)
        return "\(bitsPerSecond / scale)\(unit)"
    }

    private static let units: [(String, Int)] = [
        ("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000),
    ]
}

/// The text form of durations in the configuration: a whole number and `ms`, `s`, `m`, `h` or `d`.
enum DurationText {
    private static let units: [(String, Int)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    /// Parses a duration. Returns nil if the format is unexpected, the unit is missing, or the duration exceeds a
    /// hundred years.
    static func parse(_ text: String) -> Duration? {
        guard let (number, unit) = splitQuantity(text), let scale = units.first(where: { $0.0 == unit })?.1 else {
            return nil
        }
        let (milliseconds, overflow) = number.multipliedReportingOverflow(by: scale)
        return overflow || milliseconds > 100 * 366 * 86_400_000 ? nil : .milliseconds(milliseconds)
    }

    /// Returns the duration in the largest unit that gives a whole number above one, or else in seconds. 60 seconds is
    /// `60s`, which is easier to compare with `5s` than `1m` is. A duration that is not a whole number of seconds is
    /// in milliseconds, rounded down.
    static func write(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let milliseconds = Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
        guard milliseconds % 1000 == 0 else { return "\(milliseconds)ms" }
        let coarse = units.first { $0.1 > 1000 && milliseconds % $0.1 == 0 && milliseconds / $0.1 > 1 }
        return coarse.map { "\(milliseconds / $0.1)\($0.0)" } ?? "\(milliseconds / 1000)s"
    }
}

/// Splits a quantity such as `30d` into the number (30) and the unit (`d`). Returns nil if there are no digits, more
/// than 18 digits, or no unit.
private func splitQuantity(_ text: String) -> (Int, String)? {
    let digits = text.prefix { $0.isASCII && $0.isWholeNumber }
    guard (1...18).contains(digits.utf8.count), let number = Int(digits), digits.endIndex != text.endIndex else {
        return nil
    }
    return (number, String(text[digits.endIndex...]))
}

/// Text that must never be logged, such as a key or a password.
///
/// Printing or dumping it, or a value that contains it, shows `[redacted]`. Only ``revealed`` returns the text, so a search
/// for that name finds all uses.
public struct SecretText: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public let revealed: String

    public init(_ text: String) { revealed = text }

    public var description: String { "[redacted]" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }

    /// The number of hexadecimal digits of a generated secret.
    static let generatedLength = 48

    /// Returns a random secret for an API key or a webhook.
    static func generated(using random: inout some RandomNumberGenerator) -> SecretText {
        let digits = Array("0123456789abcdef")
        return SecretText(String((0..<generatedLength).map { _ in digits[Int.random(in: 0..<16, using: &random)] }))
    }
}
