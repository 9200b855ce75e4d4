import Foundation
import Logging
import Metrics
import Synchronization
import Testing

@testable import Server

/// A log output that stores all lines.
private final class Lines: Sendable {
    private let text = Mutex("")

    var all: String { text.withLock { $0 } }

    func logger(_ format: LogFormat, scrubber: Scrubber = Scrubber(), label: String = "gateway") -> Logger {
        // This time is 2026-02-03T04:05:06.789Z.
        let output = LogOutput(now: { 1_770_091_506_789 }) { line in self.text.withLock { $0 += line } }
        return Logger(label: label) { label in
            ServerLogHandler(label: label, level: .info, format: format, scrubber: scrubber, output: output)
        }
    }
}

@Suite struct LogTests {
    @Test func aTextLineHasTimeLevelLabelMessageAndSortedMetadata() {
        let lines = Lines()
        lines.logger(.text).info(
            "socket opened", metadata: ["sockets": "3", "address": "192.0.2.1", "name": "two words"])
        #expect(
            lines.all
                == "2026-02-03T04:05:06.789Z info  gateway  "
                + "socket opened address=192.0.2.1 name=\"two words\" sockets=3\n"
        )
    }

    @Test func aJSONLineIsAnObjectWithTheSameFields() throws {
        let lines = Lines()
        var logger = lines.logger(.json)
        logger[metadataKey: "node"] = "a"
        logger.error(
            "say \"hi\"", metadata: ["list": ["1", "2"], "nested": ["token": "abc", "n": "\(1)"], "time": "mine"])
        let object = try #require(try JSONSerialization.jsonObject(with: Data(lines.all.utf8)) as? [String: Any])
        #expect(object["message"] as? String == "say \"hi\"")
        #expect(object["level"] as? String == "error")
        #expect(object["time"] as? String == "2026-02-03T04:05:06.789Z")
        #expect(object["time_"] as? String == "mine")
        #expect(object["node"] as? String == "a")
        #expect(object["list"] as? [String] == ["1", "2"])
        #expect(object["nested"] as? [String: String] == ["token": "[redacted]", "n": "1"])
    }

    @Test(arguments: [
        "\r\n2026-02-03 info forged", "\u{202e}gnorw", "\u{1b}[2J", "\u{2028}next", "\u{0}", "\u{9b}31m", "\u{200f}",
        "\u{feff}", "\u{e0001}",
    ])
    func untrustedTextCannotStartALineOrControlTheTerminal(text: String) throws {
        for format in LogFormat.allCases {
            let lines = Lines()
            lines.logger(format, label: text).info(
                "\(text)", metadata: ["key": .string(text), .init(text): "value", "list": [.string(text)]])
            #expect(lines.all.filter { $0.isNewline }.count == 1)
            let steering = lines.all.unicodeScalars.filter { !LogText.isHarmless($0) }
            #expect(steering.count == 1, "\(lines.all.debugDescription)")
            if format == .json {
                let object = try #require(
                    try JSONSerialization.jsonObject(with: Data(lines.all.utf8)) as? [String: Any])
                #expect(object["key"] as? String == text)
            }
        }
    }

    @Test func aValueCannotImitateAnotherField() {
        let lines = Lines()
        lines.logger(.text).info("m", metadata: ["a": "1 level=error", "b": "say \"x\" \\"])
        #expect(lines.all.hasSuffix("m a=\"1 level=error\" b=\"say \\\"x\\\" \\\\\"\n"))
    }

    @Test func longValuesAreTruncated() {
        let lines = Lines()
        lines.logger(.text).info("m", metadata: ["a": .string(String(repeating: "x", count: 100_000))])
        #expect(lines.all.utf8.count < 3000)
    }

    @Test(arguments: [
        "token", "resumeToken", "identity-secret", "Authorization", "api_secret", "turnPassword", "set-cookie",
    ])
    func valuesOfSensitiveKeysAreRedacted(key: String) {
        let lines = Lines()
        lines.logger(.text).info("m", metadata: [key: "hunter2", "deep": [key: ["hunter2"]]])
        #expect(!lines.all.contains("hunter2"))
        #expect(lines.all.contains("[redacted]"))
    }

    @Test(arguments: [
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln", "[redacted]"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln_-x, again", "got [redacted], again"),
        ("GET /v1?token=abc.def&x=1", "GET /v1?token=[redacted]&x=1"), ("Bearer abc", "Bearer [redacted]"),
        ("{\"secret\":\"abc\",\"a\":1}", "{\"secret\":\"[redacted]\",\"a\":1}"), ("T1==cGFy/dG5+lcl9=", "[redacted]"),
        ("the token is bad", "the token is bad"), ("192.0.2.1 example.org a=b", "192.0.2.1 example.org a=b"), ("", ""),
        ("key correct-horse-battery end", "key [redacted] end"),
        ("correct-horse-batterycorrect-horse-battery", "[redacted][redacted]"),
        ("naïve — 日本 🙂", "naïve — 日本 🙂"),
        (String(repeating: "0123abcd", count: 6), "[redacted]"),
        ("x-\(String(repeating: "0123abcd", count: 6))!", "[redacted]!"),
        (String(repeating: "0123abcd", count: 5), String(repeating: "0123abcd", count: 5)),
        (String(repeating: "0123abcd", count: 8), String(repeating: "0123abcd", count: 8)),
    ])
    func tokensAndKnownSecretsAreRemovedFromText(text: String, scrubbed: String) {
        #expect(Scrubber(secrets: [SecretText("correct-horse-battery"), SecretText("a")]).scrubbed(text) == scrubbed)
    }

    @Test func messagesAndErrorsAreScrubbedToo() {
        struct Failure: Error, CustomStringConvertible {
            let description = "bad eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
        }
        let lines = Lines()
        lines.logger(.text).error("token=abc", error: Failure())
        #expect(lines.all.hasSuffix("error gateway  token=[redacted] error=\"bad [redacted]\"\n"))
    }

    @Test func datesOfFourCenturiesAreCorrect() throws {
        #expect(LogTime.text(millisecondsSince1970: 951_782_400_000) == "2000-02-29T00:00:00.000Z")
        #expect(LogTime.text(millisecondsSince1970: -1) == "1969-12-31T23:59:59.999Z")
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
        for day in stride(from: -50_000, to: 100_000, by: 97) {
            let parts = calendar.dateComponents(
                [.year, .month, .day], from: Date(timeIntervalSince1970: Double(day) * 86400))
            let text = LogTime.text(millisecondsSince1970: Int64(day) * 86_400_000).prefix(10).split(separator: "-")
                .compactMap { Int($0) }
            #expect(text == [parts.year, parts.month, parts.day].compactMap(\.self))
        }
    }
}

@Suite struct MetricsTests {
    @Test func theOutputIsPrometheusTextInAFixedOrder() {
        let metrics = PrometheusMetrics(help: ["confab.sockets": "Open\nnow \\."], buckets: ["wait": [0.1, 1]])
        Meter(label: "confab.sockets", factory: metrics).set(3)
        let closed = Counter(label: "closed", dimensions: [("code", "1006"), ("by", "a \"b\"\\\n")], factory: metrics)
        closed.increment(by: 2)
        Counter(label: "closed", dimensions: [("by", "c"), ("code", "1000")], factory: metrics).increment()
        let wait = Timer(label: "wait", factory: metrics)
        wait.recordMilliseconds(50)
        wait.recordMilliseconds(100)
        wait.recordSeconds(30)
        #expect(
            metrics.exposition() == #"""
                # TYPE closed_total counter
                closed_total{by="a \"b\"\\\n",code="1006"} 2
                closed_total{by="c",code="1000"} 1
                # HELP confab_sockets Open\nnow \\.
                # TYPE confab_sockets gauge
                confab_sockets 3
                # TYPE wait_seconds histogram
                wait_seconds_bucket{le="0.1"} 2
                wait_seconds_bucket{le="1"} 2
                wait_seconds_bucket{le="+Inf"} 3
                wait_seconds_sum 30.15
                wait_seconds_count 3

                """#)
    }

    @Test func metricsWithEqualLabelsShareACounter() {
        let metrics = PrometheusMetrics()
        let first = Counter(label: "n", dimensions: [("a", "1"), ("b", "2")], factory: metrics)
        let second = Counter(label: "n", dimensions: [("b", "2"), ("a", "1")], factory: metrics)
        first.increment()
        second.increment(by: 4)
        #expect(metrics.exposition().contains("n_total{a=\"1\",b=\"2\"} 5\n"))
        first.destroy()
        #expect(metrics.exposition().contains(" 5\n"))
        second.destroy()
        #expect(metrics.exposition().isEmpty)
    }

    @Test func labelValuesBeyondTheLimitShareACounter() {
        let metrics = PrometheusMetrics()
        for index in 0..<(PrometheusMetrics.maxSeries + 50) {
            Counter(label: "n", dimensions: [("who", "\(index)")], factory: metrics).increment()
        }
        let text = metrics.exposition()
        #expect(text.split(separator: "\n").count == PrometheusMetrics.maxSeries + 2)
        #expect(text.contains("n_total{who=\"other\"} 50\n"))
        for index in 0..<(PrometheusMetrics.maxFamilies + 50) {
            Counter(label: "f\(index)", factory: metrics).increment()
        }
        #expect(
            metrics.exposition().split(separator: "\n").filter { $0.hasPrefix("# TYPE") }.count
                == PrometheusMetrics.maxFamilies)
    }

    @Test func aNameOfAnotherKindOfMetricIsIgnored() {
        let metrics = PrometheusMetrics()
        Meter(label: "n", factory: metrics).set(1)
        Recorder(label: "n", dimensions: [], aggregate: true, factory: metrics).record(5)
        FloatingPointCounter(label: "m", factory: metrics).increment(by: 0.5)
        Counter(label: "m", factory: metrics).increment()
        #expect(metrics.exposition() == "# TYPE m_total counter\nm_total 0.5\n# TYPE n gauge\nn 1\n")
    }

    @Test func namesAndLabelsAreSanitized() {
        let metrics = PrometheusMetrics()
        Counter(
            label: "9 é-b", dimensions: [("le", "x"), ("__name__", "y"), ("a.b", "1"), ("a-b", "2")], factory: metrics
        ).increment()
        #expect(metrics.exposition().contains("_9____b_total{a_b=\"1\",exported___name__=\"y\",exported_le=\"x\"} 1\n"))
    }

    @Test func recordersAreHistogramsAndGaugesAreGauges() {
        let metrics = PrometheusMetrics()
        let sizes = Recorder(label: "size", dimensions: [], aggregate: true, factory: metrics)
        sizes.record(5)
        sizes.record(Double.nan)
        sizes.record(1 << 40)
        let gauge = Gauge(label: "level", factory: metrics)
        gauge.record(1)
        gauge.record(0.25)
        let text = metrics.exposition()
        #expect(text.contains("level 0.25\n"))
        #expect(text.contains("size_bucket{le=\"4\"} 0\nsize_bucket{le=\"16\"} 1\n"))
        #expect(text.contains("size_bucket{le=\"+Inf\"} 2\nsize_sum 1099511627781\nsize_count 2\n"))
    }

    @Test func countsFromManyThreadsAreComplete() async {
        let metrics = PrometheusMetrics()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1000 {
                        Counter(label: "n", factory: metrics).increment()
                        Meter(label: "m", factory: metrics).increment()
                        Recorder(label: "r", dimensions: [], aggregate: true, factory: metrics).record(1)
                    }
                }
            }
        }
        let text = metrics.exposition()
        #expect(text.contains("n_total 8000\n"))
        #expect(text.contains("m 8000\n"))
        #expect(text.contains("r_count 8000\n"))
    }
}
