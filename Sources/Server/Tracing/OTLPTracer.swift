import NIOHTTP1
import Synchronization
import Tracing
import Wire

extension TraceTime: TracerInstant {
    /// The time of day. Spans of other programs are compared with it.
    static var now: TraceTime { TraceTime(nanosecondsSinceEpoch: DefaultTracerClock.now.nanosecondsSinceEpoch) }
}

/// The tracer of swift-distributed-tracing that puts spans into the queue of the exporter. A span that is not recorded costs an object
/// and nothing else.
///
/// It is passed on as an argument. It is not the process's global tracer, because then the HTTP client would record the addresses of push
/// services, which are secrets.
struct OTLPTracer: Tracer {
    typealias Span = OTLPSpan

    /// Where the context of a trace is in a `ServiceContext`.
    private enum Key: ServiceContextKey {
        typealias Value = TraceParent
        static var nameOverride: String? { "traceparent" }
    }

    let queue: TraceQueue
    private let settings: Settings

    /// The settings that a reload changes.
    private final class Settings: Sendable {
        let sampler: Mutex<TraceSampler>
        init(_ sampler: TraceSampler) { self.sampler = Mutex(sampler) }
    }

    init(queue: TraceQueue, sampler: TraceSampler) { (self.queue, settings) = (queue, Settings(sampler)) }

    var sampler: TraceSampler {
        get { settings.sampler.withLock { $0 } }
        nonmutating set { settings.sampler.withLock { $0 = newValue } }
    }

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> OTLPSpan {
        var context = context()
        let parent = context[Key.self]
        var random = SystemRandomNumberGenerator()
        let trace = parent?.trace ?? .random(using: &random)
        let span = SpanID.random(using: &random)
        let isRecorded = sampler.records(trace, parent: parent)
        context[Key.self] = TraceParent(trace: trace, span: span, isSampled: isRecorded)
        guard isRecorded else { return OTLPSpan(context: context, nil, queue) }
        let start = TraceTime(nanosecondsSinceEpoch: instant().nanosecondsSinceEpoch)
        let recorded = TraceSpan(
            operationName, TraceSpan.Kind(kind), trace: trace, id: span, parent: parent?.span, start: start)
        return OTLPSpan(context: context, recorded, queue)
    }

    /// Reads `traceparent` from a request, and decides whether the request is recorded. Does nothing if the request has none, more than
    /// one, or an invalid one.
    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        let text = extractor.extract(key: "traceparent", from: carrier)
        guard let parent = text.flatMap({ TraceParent(parsing: $0) }) else { return }
        context[Key.self] = sampler.received(parent)
    }

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let parent = context[Key.self] else { return }
        injector.inject(parent.text, forKey: "traceparent", into: &carrier)
    }

    /// Lets the exporter send what waits, without waiting for it.
    func forceFlush() { queue.wake() }

    /// The trace and span in a context; nil if it has none.
    static func parent(in context: ServiceContext) -> TraceParent? { context[Key.self] }
}

/// A span of ``OTLPTracer``. After its end, changes have no effect.
final class OTLPSpan: Tracing.Span {
    /// A span that is recorded, and its attributes, which it gets when it ends.
    private struct Recording {
        var span: TraceSpan
        var attributes: SpanAttributes = [:]
    }

    let context: ServiceContext
    private let queue: TraceQueue
    /// Nil if the span is not recorded, or has ended.
    private let recording: Mutex<Recording?>

    fileprivate init(context: ServiceContext, _ span: TraceSpan?, _ queue: TraceQueue) {
        (self.context, self.queue) = (context, queue)
        recording = Mutex(span.map { Recording(span: $0) })
    }

    var isRecording: Bool { recording.withLock { $0 != nil } }

    var operationName: String {
        get { recording.withLock { $0?.span.name ?? "" } }
        set { change { $0.span.name = newValue } }
    }

    var attributes: SpanAttributes {
        get { recording.withLock { $0?.attributes ?? [:] } }
        set { change { $0.attributes = newValue } }
    }

    func setStatus(_ status: SpanStatus) {
        // The message is not exported, because it could contain what a person sent.
        change { $0.span.status = status.code == .ok ? .ok : .error }
    }

    private func change(_ body: (inout Recording) -> Void) {
        recording.withLock { recording in
            guard var changed = recording else { return }
            body(&changed)
            recording = changed
        }
    }

    func addEvent(_ event: SpanEvent) {
        let time = TraceTime(nanosecondsSinceEpoch: event.nanosecondsSinceEpoch)
        add(TraceSpan.Event(name: event.name, time: time, attributes: TraceSpan.attributes(event.attributes)))
    }

    /// Records the error's type. Its text is not exported, because it could contain what a person sent.
    func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        let type = TraceSpan.Attribute("exception.type", String(reflecting: Swift.type(of: error)))
        add(
            TraceSpan.Event(
                name: "exception", time: TraceTime(nanosecondsSinceEpoch: instant().nanosecondsSinceEpoch),
                attributes: [type] + TraceSpan.attributes(attributes)))
    }

    private func add(_ event: TraceSpan.Event) {
        change { recording in
            if recording.span.events.count < TraceSpan.maxEvents { recording.span.events.append(event) }
        }
    }

    /// Does nothing: the exporter writes no links.
    func addLink(_ link: SpanLink) {}

    func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        let ended = recording.withLock { recording in
            defer { recording = nil }
            return recording
        }
        guard var span = ended?.span, let attributes = ended?.attributes else { return }
        span.attributes += TraceSpan.attributes(attributes)
        queue.add(span.ended(at: TraceTime(nanosecondsSinceEpoch: instant().nanosecondsSinceEpoch)))
    }
}

extension TraceSpan.Kind {
    fileprivate init(_ kind: SpanKind) {
        self =
            switch kind {
            case .server: .server
            case .client: .client
            case .producer: .producer
            case .consumer: .consumer
            case .internal: .internal
            }
    }
}

extension TraceSpan {
    /// Returns the attributes sorted by name, at most ``maxAttributes``. Lists are written as text.
    fileprivate static func attributes(_ attributes: SpanAttributes) -> [Attribute] {
        var result: [Attribute] = []
        attributes.forEach { name, value in
            let converted: Value? =
                switch value {
                case .string(let text): .text(text)
                case .int32(let number): .integer(Int64(number))
                case .int64(let number): .integer(number)
                case .double(let number): .number(number)
                case .bool(let bool): .bool(bool)
                case .stringConvertible(let value): .text("\(value)")
                case .stringArray(let texts): .text(texts.joined(separator: ", "))
                default: nil
                }
            if let converted { result.append(Attribute(name, converted)) }
        }
        return Array(result.sorted { $0.name < $1.name }.prefix(maxAttributes))
    }
}

/// Reads one header of a request.
struct TraceHeaderExtractor: Extractor {
    func extract(key: String, from carrier: HTTPHeaders) -> String? {
        let values = carrier[key]
        return values.count == 1 ? values[0] : nil
    }
}
