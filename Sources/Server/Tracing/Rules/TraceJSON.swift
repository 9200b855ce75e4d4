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
        writer.list("resourceSpans", CollectionOfOne(resource)) { writer, resource in
            writer.name("resource")
            writer.beginObject()
            write(resource, &writer)
            writer.endObject()
            writer.list("scopeSpans", CollectionOfOne(spans)) { writer, spans in
                writer.name("scope")
                writer.beginObject()
                writer.member("name", "confab")
                writer.member("version", version)
                writer.endObject()
                writer.list("spans", spans) { writer, span in write(span, &writer) }
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

    private static func write(_ span: TraceSpan, _ writer: inout JSONWriter) {
        writer.member("traceId", span.trace.description)
        writer.member("spanId", span.id.description)
        if let parent = span.parent { writer.member("parentSpanId", parent.description) }
        writer.member("name", span.name)
        writer.member("kind", span.kind.rawValue)
        writer.member("startTimeUnixNano", String(span.start.nanosecondsSinceEpoch))
        writer.member("endTimeUnixNano", String(span.end.nanosecondsSinceEpoch))
        write(span.attributes, &writer)
        if !span.events.isEmpty {
            writer.list("events", span.events) { writer, event in
                writer.member("timeUnixNano", String(event.time.nanosecondsSinceEpoch))
                writer.member("name", event.name)
                write(event.attributes, &writer)
            }
        }
        if span.status != .unset {
            writer.name("status")
            writer.beginObject()
            writer.member("code", span.status == .ok ? 1 : 2)
            writer.endObject()
        }
    }

    private static func write(_ attributes: [TraceSpan.Attribute], _ writer: inout JSONWriter) {
        guard !attributes.isEmpty else { return }
        writer.list("attributes", attributes) { writer, attribute in
            writer.member("key", attribute.name)
            writer.name("value")
            writer.beginObject()
            switch attribute.value {
            case .text(let value): writer.member("stringValue", value)
            case .integer(let value): writer.member("intValue", String(value))
            case .number(let value):
                writer.name("doubleValue")
                writer.value(.number(value))
            case .bool(let value): writer.member("boolValue", value)
            }
            writer.endObject()
        }
    }
}
