import Cluster
import CoreMetrics
import Datagrams
import Foundation
import Metrics
import SFU
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The metrics of the server") struct ServerMetricsTests {
    /// All metrics of the server, as it makes them, with a backend of the test's own.
    private static func exposition(
        mediaLoops: Int = 1, _ body: (GatewayMetrics) -> Void = { _ in }
    ) async -> String {
        let prometheus = PrometheusMetrics(help: ConfabServer.metricsHelp)
        await withMetricsFactory(prometheus) {
            let metrics = GatewayMetrics(mediaLoops: mediaLoops)
            body(metrics)
            _ = MediaWait()
            _ = PushMetrics()
            _ = ClusterMetrics()
            let operating = OperatingMetrics(disk: DiskSpace(directory: "/", minimum: 0) { _ in 12_345 })
            await operating.record(Readiness(failing: [.media]))
        }
        return prometheus.exposition()
    }

    @Test("every metric has a help text, and counters end in _total")
    func conventions() async {
        let lines = await Self.exposition().split(separator: "\n")
        var explained: Set<Substring> = []
        for words in lines.map({ $0.split(separator: " ") }) {
            if words.starts(with: ["#", "HELP"]) { explained.insert(words[2]) }
            guard words.starts(with: ["#", "TYPE"]) else { continue }
            #expect(explained.contains(words[2]), "\(words[2]) has no help text")
            #expect((words[3] == "counter") == words[2].hasSuffix("_total"), "\(words[2]) is a \(words[3])")
        }
        #expect(explained.count > 40)
    }

    @Test("letters to other nodes that were dropped are counted")
    func droppedLetters() async throws {
        var rules = Rules()
        rules.maxContacts = 0
        let project = try #require(Project(apiKey: "45000001", secret: String(repeating: "s", count: 40)))
        let (own, other) = (try #require(NodeTag(node: 1, life: 1)), try #require(NodeTag(node: 2, life: 2)))
        var hub = Hub(
            hubSettings: HubSettings(rules: rules, project: project, tag: own),
            generator: SystemRandomNumberGenerator())
        // Nobody has contacts, so only the first waits until it is known where the person is.
        for low in 1...3 as ClosedRange<UInt64> {
            let query = PersonContactEvent.queried(by: IdentityID(high: 2, low: low))
            let letter = Letter.person(IdentityID(high: 1, low: 1), .contact(query))
            _ = hub.handle(.received(letter, from: other), now: Timestamp(milliseconds: 0))
        }
        let text = await Self.exposition { [hub] in $0.record(hub) }
        #expect(text.contains("\nconfab_cluster_letters_dropped_total 2\n"))
    }

    @Test("a node counts its letters and waits across scrapes, and shows its lease, places and the other nodes")
    func cluster() {
        let prometheus = PrometheusMetrics(help: ConfabServer.metricsHelp)
        withMetricsFactory(prometheus) {
            let metrics = ClusterMetrics()
            var figures = ClusterFigures()
            (figures.post.posted, figures.post.forged, figures.reposted) = (5, 1, 2)
            (figures.lease, figures.frozen) = (.milliseconds(2500), .milliseconds(500))
            metrics.record(figures)
            (figures.post.posted, figures.post.received, figures.frozen) = (7, 4, .milliseconds(1250))
            (figures.streamLength, figures.isConnected) = (3, true)
            figures.places = [.room: 2, .person: 30]
            figures.nodes = [.serving: 2, .fenced: 1]
            figures.relays = [.connected: 4]
            metrics.record(figures)
            metrics.recordPost(.milliseconds(3))
        }
        let text = prometheus.exposition()
        for line in [
            "confab_cluster_letters_posted_total 7", "confab_cluster_letters_received_total 4",
            "confab_cluster_letters_refused_total{reason=\"forged\"} 1",
            "confab_cluster_letters_refused_total{reason=\"unreadable\"} 0", "confab_cluster_letter_losses_total 0",
            "confab_cluster_entries_reposted_total 2", "confab_cluster_stream_entries 3", "confab_cluster_redis_up 1",
            "confab_cluster_lease_seconds 2.5", "confab_cluster_frozen_seconds_total 1.25",
            "confab_cluster_places{kind=\"room\"} 2", "confab_cluster_places{kind=\"hall\"} 0",
            "confab_cluster_nodes{state=\"serving\"} 2", "confab_cluster_nodes{state=\"cut_off\"} 0",
            "confab_cluster_relays{state=\"connected\"} 4", "confab_cluster_relays{state=\"connecting\"} 0",
            "confab_cluster_post_seconds_bucket{le=\"0.005\"} 1",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
    }

    @Test("media totals are counters, and gauges under their old names")
    func media() async {
        let text = await Self.exposition { metrics in
            var counters = RouterCounters()
            counters.packetsIn = 5
            var sockets = DatagramCounters()
            (sockets.reads, sockets.received, sockets.writes) = (6, 50, 7)
            (sockets.messages, sockets.sent, sockets.waits) = (20, 90, 3)
            metrics.media.record(MediaCounters(router: counters, sockets: sockets, lost: 2, wakeups: 5))
            (counters.packetsIn, counters.relayClientsOverLimit) = (12, 3)
            counters.fullSessions = 4
            var refusals = BandwidthRefusals()
            (refusals.streams, refusals.subscriptions, refusals.connections) = (1, 7, 2)
            for _ in 0..<2 { metrics.media.record(refusals) }
            metrics.media.record(MediaCounters(router: counters, sockets: sockets, lost: 2, wakeups: 5))
        }
        for line in [
            "# TYPE confab_media_packets_received_total counter", "confab_media_packets_received_total 12",
            "# TYPE confab_media_packets_received gauge", "confab_media_packets_received 12",
            "confab_media_datagrams_unsent_total 2", "confab_media_socket_waits_total 3",
            "confab_media_wakeups_total 5", "confab_media_socket_reads_total 6",
            "confab_media_datagrams_received_total 50", "confab_media_socket_writes_total 7",
            "confab_media_messages_sent_total 20", "confab_media_datagrams_sent_total 90",
            "confab_media_relay_waits_total{of=\"client\"} 3", "confab_media_relay_waits_total{of=\"encoding\"} 0",
            "confab_media_full_sessions 4", "confab_media_bandwidth_refusals_total{request=\"connection\"} 2",
            "confab_media_bandwidth_refusals_total{request=\"stream\"} 1",
            "confab_media_bandwidth_refusals_total{request=\"subscription\"} 7",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
    }

    @Test("with several media loops, what shows how busy a loop is has a label, and everything else is a sum")
    func loops() async {
        let text = await Self.exposition(mediaLoops: 2) { metrics in
            var (first, second) = (MediaCounters(lost: 1, wakeups: 5), MediaCounters(lost: 2, wakeups: 6))
            (first.router.packetsIn, second.router.packetsIn) = (10, 20)
            (first.sockets.waits, second.sockets.sent) = (3, 4)
            metrics.media.record([first, second])
        }
        for line in [
            "confab_media_wakeups_total{loop=\"0\"} 5", "confab_media_wakeups_total{loop=\"1\"} 6",
            "confab_media_socket_waits_total{loop=\"0\"} 3", "confab_media_socket_waits_total{loop=\"1\"} 0",
            "confab_media_datagrams_sent_total{loop=\"1\"} 4", "confab_media_packets_received_total 30",
            "confab_media_datagrams_unsent_total 3",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line)")
        }
        #expect(!text.contains("confab_media_wakeups_total 11"))
    }

    @Test("the build, the disk and the process are described in base units")
    func operating() async throws {
        let text = await Self.exposition()
        #expect(text.contains(/confab_build_info\{openssl="[^"]+",srtp="[^"]+",version="0\.\d+\.\d+"\} 1\n/))
        #expect(text.contains("\nconfab_disk_free_bytes 12345\n"))
        #expect(text.contains("\nconfab_ready{part=\"media\"} 0\nconfab_ready{part=\"storage\"} 1\n"))
        #if os(Linux)
        func value(_ name: String) throws -> Double {
            let line = try #require(text.split(separator: "\n").first { $0.hasPrefix(name + " ") }, "\(name)")
            return try #require(Double(line.dropFirst(name.count + 1)))
        }
        #expect(try value("process_cpu_seconds_total") > 0)
        #expect(try value("process_resident_memory_bytes") > 1_000_000)
        let (open, limit) = try (value("process_open_fds"), value("process_max_fds"))
        #expect(open >= 3 && open <= limit)
        let age = try Date().timeIntervalSince1970 - value("process_start_time_seconds")
        #expect(age > -5 && age < 86400)
        #endif
    }

    #if os(Linux)
    @Test("the process's figures are found behind any name")
    func stat() throws {
        let rest = "S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 7777 123456 321 18446744073709551615"
        for name in ["confab", "a b", "a) S 1 (b", ")"] {
            let stat = try #require(ProcessStat("42 (\(name)) \(rest)\n"))
            #expect(stat.cpuTicks == 300 && stat.startTicks == 7777 && stat.residentPages == 321)
        }
        for text in ["", "42", "42 (a)", "42 (a) S 1 2", ")))", "42 (a) \(rest.replacing("250", with: "x"))"] {
            #expect(ProcessStat(text) == nil, "\(text)")
        }
    }
    #endif
}

@Suite("The metrics endpoint", .ownThreads, .timeLimit(.minutes(3))) struct MetricsEndpointTests {
    @Test("only addresses, localhost and the configured name may be in Host")
    func hosts() {
        var metrics = ConfabConfiguration.Metrics()
        metrics.host = "Metrics.example.org"
        for host in [
            "127.0.0.1", "127.0.0.1:9464", "[::1]", "[::1]:9464", "192.0.2.7:1", "localhost", "LocalHost:9464",
            "metrics.example.org", "metrics.example.ORG:9464",
        ] {
            #expect(metrics.allows(host: host), "\(host)")
        }
        // A program of HTTP/1.0.
        #expect(metrics.allows(host: nil))
        for host in [
            "", ":9464", "evil.example", "evil.example:9464", "127.0.0.1.evil.example", "localhost.evil.example", "[",
            "[evil.example]", "metrics.example.org.evil.example", "[::1", "1", "0x7f.1",
        ] {
            #expect(!metrics.allows(host: host), "\(host)")
        }
    }

    @Test("a taken port stops the start if metrics are required, and only then")
    func takenPort() async throws {
        try await TestServer.run { first in
            let error = await #expect(throws: MetricsPortError.self) {
                try await TestServer.run(
                    prometheus: PrometheusMetrics(),
                    {
                        $0.metrics.enabled = .always
                        $0.metrics.port = first.port
                    }
                ) { _ in
                    // The failure cancels this.
                    try await eventually { Task.isCancelled ? nil : "the server runs without its metrics" }
                }
            }
            #expect(error.map { "\($0)".contains("metrics.port") } ?? false)
            try await TestServer.run(
                prometheus: PrometheusMetrics(),
                {
                    $0.metrics.enabled = .auto
                    $0.metrics.port = first.port
                }
            ) { server in
                let place = try WHIPPlace(server)
                #expect(try await place.ask("GET", "/health").status == 200)
            }
        }
    }
}
