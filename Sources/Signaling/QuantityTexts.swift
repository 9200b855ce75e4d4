import Wire

extension Duration {
    /// The duration for error messages: in one unit, rounded up, such as "5 minutes", and at least "1 second".
    package var roundedText: String {
        let seconds = Swift.max(1, (wholeMilliseconds + 999) / 1000)
        let units: [(Int64, String)] = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")]
        let (size, unit) = units.first { seconds >= $0.0 } ?? (1, "second")
        let count = (seconds + size - 1) / size
        return "\(count) \(unit)\(count == 1 ? "" : "s")"
    }
}

extension Int {
    /// This number of bytes for error messages: in the largest unit of which it is a multiple, such as "20 MiB", else
    /// in bytes.
    var sizeText: String {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
        guard self > 0, let (size, unit) = units.first(where: { isMultiple(of: $0.0) }) else { return "\(self) bytes" }
        return "\(self / size) \(unit)"
    }
}
