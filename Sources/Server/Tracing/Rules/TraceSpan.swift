/// A time of day of a span, in nanoseconds since 1970.
struct TraceTime: Hashable, Comparable, Sendable {
    var nanosecondsSinceEpoch: UInt64

    static func < (left: Self, right: Self) -> Bool { left.nanosecondsSinceEpoch < right.nanosecondsSinceEpoch }
}

/// A step of a trace: what it was, when it began and ended, and which step caused it (OpenTelemetry's Span).
///
/// Attributes must not contain tokens, secrets, names, texts or addresses of people. docs/tracing.md lists all attributes.
struct TraceSpan: Equatable, Sendable {
    /// The maximum number of attributes of a span, and of its events. More are not recorded.
    static let (maxAttributes, maxEvents) = (32, 32)

    /// Who waits for the span. The values are those of the protocol.
    enum Kind: Int, Sendable {
        case `internal` = 1
        case server = 2
        case client = 3
        case producer = 4
        case consumer = 5
    }

    /// The value of an attribute.
    enum Value: Equatable, Sendable {
        case text(String)
        case integer(Int64)
        case number(Double)
        case bool(Bool)
    }

    /// A fact about a span or an event.
    struct Attribute: Equatable, Sendable {
        var name: String
        var value: Value

        init(_ name: String, _ value: Value) { (self.name, self.value) = (name, value) }
        init(_ name: String, _ text: String) { self.init(name, .text(text)) }
    }

    /// Something that happened at one moment of a span.
    struct Event: Equatable, Sendable {
        var name: String
        var time: TraceTime
        var attributes: [Attribute] = []
    }

    /// Whether what the span describes succeeded. `unset` means that nobody has said so.
    enum Status: Equatable, Sendable { case unset, ok, error }

    var trace: TraceID
    var id: SpanID
    /// The span that caused this one; nil for the first of a trace.
    var parent: SpanID?
    var name: String
    var kind = Kind.internal
    var start: TraceTime
    /// Never before `start`, even if the clock was set back meanwhile.
    private(set) var end: TraceTime
    var attributes: [Attribute] = []
    var events: [Event] = []
    var status = Status.unset

    /// Begins a span. It ends with ``ended(at:)``.
    init(
        _ name: String, _ kind: Kind = .internal, trace: TraceID, id: SpanID, parent: SpanID?, start: TraceTime,
        _ attributes: [Attribute] = []
    ) {
        (self.name, self.kind, self.trace, self.id, self.parent) = (name, kind, trace, id, parent)
        (self.start, end, self.attributes) = (start, start, attributes)
    }

    func ended(at time: TraceTime) -> TraceSpan {
        var span = self
        span.end = max(start, time)
        return span
    }

    /// Marks the span as failed. The code is one of a small set, such as an error code of the protocol.
    mutating func fail(_ code: String) {
        status = .error
        attributes.append(Attribute("error.type", code))
    }
}
