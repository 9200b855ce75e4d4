/// A QR code (ISO/IEC 18004) in byte mode, up to version 10: large enough for a URL and small enough for a terminal.
///
/// Numeric, alphanumeric and kanji modes, levels Q and H, versions above 10, and the encoding marker (ECI) are not supported.
/// Without ECI, readers guess the encoding of non-ASCII text, but URLs are ASCII.
///
/// ```swift
/// let code = try QRCode("https://192.168.1.20:8080/")
/// print(code.terminalText())
/// ```
public struct QRCode: Sendable, Equatable {
    /// The share of damaged codewords that can be restored: about 7 percent (`low`) or 15 percent (`medium`).
    public enum ErrorCorrection: Sendable, CaseIterable { case low, medium }

    /// The error for text that does not fit into a code of version 10.
    public struct TooLongError: Error, Equatable, Sendable, CustomStringConvertible {
        /// The maximum length of a text in bytes of UTF-8.
        public let capacity: Int
        public var description: String { "The text is too long: a QR code holds at most \(capacity) bytes." }
    }

    /// The number of modules on each side, without the quiet zone: 17 + 4 × version.
    public let size: Int
    let version: Int
    let mask: Int
    /// The modules row by row. True means dark.
    private let modules: [Bool]

    /// Encodes text as UTF-8 in the smallest version that can hold it.
    ///
    /// - Throws: `TooLongError` above 271 bytes at level `low` or 213 bytes at `medium`.
    public init(_ text: String, errorCorrection: ErrorCorrection = .medium) throws(TooLongError) {
        let bytes = Array(text.utf8)
        let version = (1...Self.largestVersion).first { bytes.count <= Self.capacity(version: $0, errorCorrection) }
        guard let version else {
            throw TooLongError(capacity: Self.capacity(version: Self.largestVersion, errorCorrection))
        }
        let blocks = QRBlocks(version: version, errorCorrection: errorCorrection)
        var matrix = QRMatrix(version: version)
        matrix.drawFunctionPatterns()
        matrix.drawCodewords(blocks.interleaved(Self.dataCodewords(bytes, version: version, count: blocks.dataCount)))
        let masked = (0..<8).map { mask in
            var candidate = matrix
            candidate.apply(mask: mask)
            candidate.drawFormat(errorCorrection: errorCorrection, mask: mask)
            return (mask: mask, matrix: candidate, penalty: candidate.penalty)
        }
        // Never nil, because there are always eight masks.
        let best = masked.min { ($0.penalty, $0.mask) < ($1.penalty, $1.mask) }
        self.version = version
        self.size = matrix.size
        self.mask = best?.mask ?? 0
        self.modules = (best?.matrix ?? matrix).modules
    }

    /// Whether a module is dark. Everything outside the code is light.
    public subscript(row row: Int, column column: Int) -> Bool {
        guard (0..<size).contains(row), (0..<size).contains(column) else { return false }
        return modules[row * size + column]
    }

    /// The quiet zone that readers expect on each side, in modules.
    public static let quietZone = 4

    /// Returns the code with its quiet zone as lines of half blocks, two rows of modules per line.
    ///
    /// - Parameter usesColor: whether to set black on white with escape sequences, which works on all terminals.
    ///   Otherwise, light modules are drawn as blocks in the terminal's text color, which works only on a dark
    ///   background.
    public func terminalText(usesColor: Bool = false) -> String {
        let range = -Self.quietZone..<(size + Self.quietZone)
        var lines: [String] = []
        for row in stride(from: range.lowerBound, to: range.upperBound, by: 2) {
            var line = usesColor ? "\u{1b}[30;107m" : ""
            for column in range {
                // The height is odd, so the last line has no lower row.
                let hasLower = row + 1 < range.upperBound
                let upper = self[row: row, column: column] == usesColor
                let lower = hasLower ? self[row: row + 1, column: column] == usesColor : false
                line += upper ? (lower ? "█" : "▀") : (lower ? "▄" : " ")
            }
            lines.append(line + (usesColor ? "\u{1b}[0m" : ""))
        }
        return lines.joined(separator: "\n") + "\n"
    }

    static let largestVersion = 10

    /// Returns the number of bytes of text that fit: the data codewords minus the mode indicator and the count.
    static func capacity(version: Int, _ errorCorrection: ErrorCorrection) -> Int {
        let bits = QRBlocks(version: version, errorCorrection: errorCorrection).dataCount * 8
        return (bits - 4 - countBits(version: version)) / 8
    }

    private static func countBits(version: Int) -> Int { version < 10 ? 8 : 16 }

    /// Encodes mode, count, text, terminator and padding (ISO/IEC 18004 §7.4).
    static func dataCodewords(_ text: [UInt8], version: Int, count: Int) -> [UInt8] {
        var bits: [Bool] = []
        func append(_ value: Int, _ width: Int) {
            for shift in stride(from: width - 1, through: 0, by: -1) { bits.append(value >> shift & 1 == 1) }
        }
        append(0b0100, 4)
        append(text.count, countBits(version: version))
        for byte in text { append(Int(byte), 8) }
        append(0, min(4, count * 8 - bits.count))
        append(0, (8 - bits.count % 8) % 8)
        var codewords = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<(start + 8)].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
        }
        var isFirst = true
        while codewords.count < count {
            codewords.append(isFirst ? 0xec : 0x11)
            isFirst.toggle()
        }
        return codewords
    }
}
