import Crypto
import Wire

/// The id of a trace (W3C Trace Context §3.2.2.3). It is also the id of a request in the log and in the header `X-Request-Id`.
struct TraceID: Identifier128 {
    let high: UInt64
    let low: UInt64
}

/// The id of a span (W3C Trace Context §3.2.2.4), written as 16 lowercase hexadecimal digits. Never zero.
struct SpanID: Hashable, Sendable, CustomStringConvertible {
    let rawValue: UInt64

    /// Parses exactly 16 lowercase hexadecimal digits. Returns nil for any other text, and for zeros.
    init?(_ text: some StringProtocol) {
        guard text.utf8.count == 16, text.utf8.allSatisfy(isHexDigit), let value = UInt64(text, radix: 16), value != 0
        else { return nil }
        rawValue = value
    }

    init(rawValue: UInt64) { self.rawValue = rawValue }

    static func random(using generator: inout some RandomNumberGenerator) -> SpanID {
        SpanID(rawValue: generator.next(upperBound: UInt64.max) + 1)
    }

    var description: String {
        let digits = String(rawValue, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

/// The header `traceparent`, which names the span that caused a request (W3C Trace Context §3.2).
struct TraceParent: Hashable, Sendable {
    /// The maximum length of the header's text. Later versions of the format may add fields.
    private static let maxLength = 512

    var trace: TraceID
    var span: SpanID
    /// Whether the caller records the trace.
    var isSampled: Bool

    init(trace: TraceID, span: SpanID, isSampled: Bool) {
        (self.trace, self.span, self.isSampled) = (trace, span, isSampled)
    }

    /// Parses the header. Of versions later than `00`, uses the fields that they share with it. Returns nil for any other text:
    /// the request then begins a new trace.
    init?(parsing text: String) {
        guard text.utf8.count <= Self.maxLength else { return nil }
        let fields = text.split(separator: "-", maxSplits: 4, omittingEmptySubsequences: false)
        guard fields.count >= 4, Self.isByte(fields[0]), Self.isByte(fields[3]), fields[0] != "ff",
            fields[0] != "00" || fields.count == 4, let trace = TraceID(fields[1]), trace.high | trace.low != 0,
            let span = SpanID(fields[2]), let flags = UInt8(fields[3], radix: 16)
        else { return nil }
        self.init(trace: trace, span: span, isSampled: flags & 1 == 1)
    }

    /// The header's text.
    var text: String { "00-\(trace)-\(span)-\(isSampled ? "01" : "00")" }

    private static func isByte(_ text: Substring) -> Bool {
        text.utf8.count == 2 && text.utf8.allSatisfy(isHexDigit)
    }
}

/// True for a lowercase hexadecimal digit.
private func isHexDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
}

/// Decides which traces are recorded. For a trace that begins here, its id decides. For one that a client began, its id decides together
/// with a secret key, or the client if it is trusted.
struct TraceSampler: Equatable, Sendable {
    /// The share of traces to record, from 0 to 1.
    var ratio: Double
    /// Whether a client decides if the trace that it began is recorded.
    var trustsParents = false
    /// Secret, so that a client cannot choose an id that is recorded.
    private let key: SymmetricKey

    init(ratio: Double, trustsParents: Bool = false, key: SymmetricKey) {
        (self.ratio, self.trustsParents, self.key) = (ratio, trustsParents, key)
    }

    init(_ settings: ConfabConfiguration.Tracing, key: SymmetricKey) {
        self.init(ratio: settings.ratio, trustsParents: settings.trustParents, key: key)
    }

    /// Takes the span that a client names as the cause of its request.
    ///
    /// - Returns: the same span, with this server's decision in `isSampled`. It is the same for all spans of a trace.
    func received(_ parent: TraceParent) -> TraceParent {
        guard !trustsParents else { return parent }
        var parent = parent
        parent.isSampled = isChosen(code(of: parent.trace))
        return parent
    }

    /// - Parameter parent: the span that caused the request; nil if the trace is new.
    func records(_ trace: TraceID, parent: TraceParent?) -> Bool {
        if let parent { return parent.isSampled }
        // The last 56 bits are random (W3C Trace Context, level 2, §5.1). Servers with the same ratio decide alike.
        return isChosen(trace.low)
    }

    /// A number that depends on the trace and on the key: the first 8 bytes of an HMAC-SHA256.
    private func code(of trace: TraceID) -> UInt64 {
        let bytes = [trace.high, trace.low].flatMap { half in withUnsafeBytes(of: half.bigEndian) { Array($0) } }
        let code = HMAC<SHA256>.authenticationCode(for: bytes, using: key)
        return code.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }

    /// True for a share of ``ratio`` of all numbers.
    private func isChosen(_ number: UInt64) -> Bool {
        // A Double has 53 bits: with more, the highest numbers would be rounded up, and would not be chosen with a ratio of 1.
        Double(number >> 3 & ((1 << 53) - 1)) < ratio * Double(1 << 53)
    }
}
