import Crypto
import Logging
import NIOConcurrencyHelpers
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Ids of traces, and the header traceparent") struct TraceIdentifiersTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let span = "b7ad6b7169203331"
    private static let key = SymmetricKey(data: [UInt8](repeating: 7, count: 32))

    @Test("a valid header is read, and written in the same form", arguments: [("01", true), ("00", false)])
    func valid(flags: String, isSampled: Bool) throws {
        let text = "00-\(Self.trace)-\(Self.span)-\(flags)"
        let parent = try #require(TraceParent(parsing: text))
        #expect(parent.trace.description == Self.trace && parent.span.description == Self.span)
        #expect(parent.isSampled == isSampled && parent.text == text)
    }

    @Test("a later version may have more fields and flags")
    func laterVersion() throws {
        let parent = try #require(TraceParent(parsing: "01-\(Self.trace)-\(Self.span)-03-more"))
        #expect(parent.isSampled && parent.text == "00-\(Self.trace)-\(Self.span)-01")
    }

    @Test(
        "anything else begins a new trace",
        arguments: [
            "", "00", "00-\(trace)-\(span)", "ff-\(trace)-\(span)-01", "00-\(trace)-\(span)-01-more",
            "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-+1",
            "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
            "0-\(trace)-\(span)-01",
            "00-\(trace) -\(span)-01", "01-\(trace)-\(span)-01-" + String(repeating: "x", count: 600),
        ])
    func invalid(text: String) { #expect(TraceParent(parsing: text) == nil) }

    @Test("a client cannot have its trace recorded by its flag or by the trace's id, unless it is trusted")
    func clients() {
        // The ratio chooses the lowest ids of traces that begin here.
        func lowest(_ low: UInt64) -> TraceParent {
            TraceParent(trace: TraceID(high: 1, low: low), span: SpanID(rawValue: 1), isSampled: true)
        }
        let never = TraceSampler(ratio: 0, key: Self.key).received(lowest(1))
        #expect(!never.isSampled && never.trace == lowest(1).trace && never.span == lowest(1).span)
        let tenth = TraceSampler(ratio: 0.1, key: Self.key)
        let recorded = (1...1000).count { tenth.received(lowest($0)).isSampled }
        #expect((50...150).contains(recorded), "\(recorded) of 1000")
        for isSampled in [true, false] {
            var parent = lowest(1)
            parent.isSampled = isSampled
            let trusted = TraceSampler(ratio: 0.5, trustsParents: true, key: Self.key).received(parent)
            let always = TraceSampler(ratio: 1, key: Self.key).received(parent)
            #expect(trusted == parent && always.isSampled)
        }
    }

    @Test("all requests of a client's trace are decided alike, and another key decides otherwise")
    func wholeTraces() {
        var random = SeededGenerator(seed: 37)
        let half = TraceSampler(ratio: 0.5, key: Self.key)
        let other = TraceSampler(ratio: 0.5, key: SymmetricKey(data: [UInt8](repeating: 8, count: 32)))
        var differences = 0
        for _ in 0..<100 {
            let trace = TraceID.random(using: &random)
            let decisions = (1...4).map { span in
                half.received(TraceParent(trace: trace, span: SpanID(rawValue: span), isSampled: span % 2 == 0))
                    .isSampled
            }
            #expect(Set(decisions).count == 1)
            let parent = TraceParent(trace: trace, span: SpanID(rawValue: 1), isSampled: true)
            if other.received(parent).isSampled != decisions[0] { differences += 1 }
        }
        #expect((25...75).contains(differences), "\(differences) of 100")
    }

    @Test("by default, clients are not trusted with the decision")
    func clientsByDefault() {
        var settings = ConfabConfiguration.Tracing()
        #expect(!TraceSampler(settings, key: Self.key).trustsParents)
        settings.trustParents = true
        settings.ratio = 0.25
        #expect(
            TraceSampler(settings, key: Self.key) == TraceSampler(ratio: 0.25, trustsParents: true, key: Self.key))
    }

    @Test("the parent decides whether a trace is recorded, and otherwise its id decides")
    func sampling() {
        let low = TraceID(high: 1, low: 0x1234_0000_0000_0000)
        let high = TraceID(high: 1, low: 0x00ff_ffff_ffff_ffff)
        let half = TraceSampler(ratio: 0.5, key: Self.key)
        let (all, none) = (TraceSampler(ratio: 1, key: Self.key), TraceSampler(ratio: 0, key: Self.key))
        #expect(half.records(low, parent: nil) && !half.records(high, parent: nil))
        #expect(all.records(high, parent: nil) && !none.records(low, parent: nil))
        for isSampled in [true, false] {
            let parent = TraceParent(trace: low, span: SpanID(rawValue: 1), isSampled: isSampled)
            #expect(half.records(low, parent: parent) == isSampled && half.records(high, parent: parent) == isSampled)
        }
    }

    @Test(
        "what the handler of a request logs has the request's id, as text and as JSON",
        arguments: [
            (LogFormat.text, "request=00000000000000010000000000000002"),
            (.json, #""request":"00000000000000010000000000000002""#),
        ])
    func log(format: LogFormat, field: String) {
        let lines = NIOLockedValueBox<[String]>([])
        let output = LogOutput(now: { 0 }) { line in lines.withLockedValue { $0.append(line) } }
        let logger = Logger(label: "test") { label in
            ServerLogHandler(label: label, level: .info, format: format, output: output)
        }
        RequestTrace.$current.withValue(TraceID(high: 1, low: 2)) { logger.info("inside") }
        logger.info("outside")
        #expect(lines.withLockedValue { $0.map { $0.contains(field) } } == [true, false])
    }

    @Test("spans have the route instead of the path, which may contain names and tokens")
    func routes() {
        let routes = Routes.templates
        for (path, route) in [
            ("/", "/"), ("/health?x=1", "/health"), ("/v1/rooms/Tea", "/v1/rooms/{name}"),
            ("/room/Tea", "/room/{name}"), ("/v1/roulette/sample?at=n2", "/v1/roulette/sample"),
            ("/v1/rooms/Tea/files/1", "/v1/rooms/{name}/files/{file}"), ("/whip/abc", "/whip/{session}"),
            ("/xirsys/ws/secret", "/xirsys/**"), ("/v1/socket?at=n2", "/v1/socket"), ("/lib/client.js", "/lib/**"),
            ("/secret/path", "/**"), ("http://host/x", "/**"), ("*", "/**"),
        ] { #expect(routes.route(of: path) == route) }
    }
}
