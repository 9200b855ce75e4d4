import Wire

/// Writes spans as the body of a request of OpenTelemetry's protocol over HTTP (OTLP 1.x, `ExportTraceServiceRequest` in JSON).
///
/// Ids are hexadecimal, other than in the JSON of other protobuf messages, and 64-bit integers are strings.
enum TraceJSON {
    /// - Parameters:
    ///   - resource: describes the server, such as `service.name`.
    ///   - version: the server's version.
    static func body(_ spans: [TraceSpan], resource: [TraceSpan.Attribute], version: String) -> [UInt8] {
        var writer = JSONWriter(capacity: 512 + 512 * spans.count)
        writer.beginObject()
        list("resourceSpans", &writer) { writer in
            writer.name("resource")
            writer.beginObject()
            write(resource, &writer)
            writer.endObject()
            list("scopeSpans", &writer) { writer in
                writer.name("scope")
                writer.beginObject()
                text("name", "confab", &writer)
                text("version", version, &writer)
                writer.endObject()
                writer.name("spans")
                writer.beginArray()
                for span in spans { write(span, &writer) }
                writer.endArray()
            }
        }
        writer.endObject()
        return writer.bytes
    }

    /// Returns how many spans the receiver has rejected although it answered with 200 (`ExportTracePartialSuccess`).
    static func rejected(in body: [UInt8]) -> Int {
        guard case .object(let answer)? = try? JSONReader.parse(body),
            case .object(let part)? = answer["partialSuccess"]
        else { return 0 }
        return switch part["rejectedSpans"] {
        case .integer(let count)?: Int(clamping: max(0, count))
        case .string(let text)?: Int(text).map { max(0, $0) } ?? 0
        default: 0
        }
    }

    /// Writes an array with one object.
    private static func list(_ name: String, _ writer: inout JSONWriter, _ members: (inout JSONWriter) -> Void) {
        writer.name(name)
        writer.beginArray()
        writer.beginObject()
        members(&writer)
        writer.endObject()
        writer.endArray()
    }

    private static func write(_ span: TraceSpan, _ writer: inout JSONWriter) {
        writer.beginObject()
        text("traceId", span.trace.description, &writer)
        text("spanId", span.id.description, &writer)
        if let parent = span.parent { text("parentSpanId", parent.description, &writer) }
        text("name", span.name, &writer)
        writer.name("kind")
        writer.integer(span.kind.rawValue)
        text("startTimeUnixNano", String(span.start.nanosecondsSinceEpoch), &writer)
        text("endTimeUnixNano", String(span.end.nanosecondsSinceEpoch), &writer)
        write(span.attributes, &writer)
        if !span.events.isEmpty {
            writer.name("events")
            writer.beginArray()
            for event in span.events {
                writer.beginObject()
                text("timeUnixNano", String(event.time.nanosecondsSinceEpoch), &writer)
                text("name", event.name, &writer)
                write(event.attributes, &writer)
                writer.endObject()
            }
            writer.endArray()
        }
        if span.status != .unset {
            writer.name("status")
            writer.beginObject()
            writer.name("code")
            writer.integer(span.status == .ok ? 1 : 2)
            writer.endObject()
        }
        writer.endObject()
    }

    private static func write(_ attributes: [TraceSpan.Attribute], _ writer: inout JSONWriter) {
        guard !attributes.isEmpty else { return }
        writer.name("attributes")
        writer.beginArray()
        for attribute in attributes {
            writer.beginObject()
            text("key", attribute.name, &writer)
            writer.name("value")
            writer.beginObject()
            switch attribute.value {
            case .text(let value): text("stringValue", value, &writer)
            case .integer(let value): text("intValue", String(value), &writer)
            case .number(let value):
                writer.name("doubleValue")
                writer.value(.number(value))
            case .bool(let value):
                writer.name("boolValue")
                writer.bool(value)
            }
            writer.endObject()
            writer.endObject()
        }
        writer.endArray()
    }

    private static func text(_ name: String, _ value: String, _ writer: inout JSONWriter) {
        writer.name(name)
        writer.string(value)
    }
}
