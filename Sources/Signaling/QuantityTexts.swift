import Wire

extension Duration {
    /// The duration in one unit, rounded up, such as "5 minutes". For error messages.
    package var roundedText: String {
        let seconds = Swift.max(1, (wholeMilliseconds + 999) / 1000)
        let units: [(Int64, String)] = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
        let (size, unit) = units.first { seconds >= $0.0 } ?? (1, "second")
        let count = (seconds + size - 1) / size
        return "\(count) \(unit)\(count == 1 ? "" : "s")"
    }
}

extension Int {
    /// This number of bytes in the largest unit that divides it, such as "20 MiB", or in bytes if none does. For error
    /// messages.
    var sizeText: String {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
        guard self > 0, let (size, unit) = units.first(where: { isMultiple(of: $0.0) }) else { return "\(self) bytes" }
        return "\(self / size) \(unit)"
    }
}
