import Datagrams
import Metrics
import RTC
import SFU
import Signaling

/// The media plane's metrics. The router counts, and this type exports the totals on each scrape.
///
/// With several media loops, the metrics that show how busy a loop is have the label `loop`. With one loop, they have none,
/// so that queries for servers with one loop keep working.
///
/// Until the next version, each total that had an older name is also exported under that name: as a gauge without
/// `_total`.
struct MediaMetrics: Sendable {
    private static let meanings = [
        "confab_media_packets_received": "Media packets from publishers.",
        "confab_media_packets_forwarded": "Media packets sent to subscribers, counted once per subscriber.",
        "confab_media_packets_repeated": "Media packets retransmitted to subscribers that lost them.",
        "confab_media_packets_recovered": "Media packets from publishers recovered by retransmission.",
        "confab_media_packets_dropped": "Media packets dropped because they were unusable.",
        "confab_media_datagrams_stray": "Datagrams from unknown senders.",
        "confab_media_datagrams_unsent": "Datagrams that could not be sent, usually because a buffer was full.",
    ]
    private static let pipedPackets = "confab_media_packets_piped"
    private static let relayedPackets = "confab_media_packets_relayed"
    private static let relayWaits = "confab_media_relay_waits"
    private static let recordedPackets = "confab_recording_packets"
    private static let unrecordedPackets = "confab_recording_dropped_packets"
    private static let waits = "confab_media_socket_waits"
    private static let wakeups = "confab_media_wakeups"
    private static let reads = "confab_media_socket_reads"
    private static let datagramsReceived = "confab_media_datagrams_received"
    private static let writes = "confab_media_socket_writes"
    private static let messages = "confab_media_messages_sent"
    private static let datagramsSent = "confab_media_datagrams_sent"
    private static let padding = "confab_media_padding_bytes"
    private static let changes = "confab_media_subscription_changes"
    private static let refusals = "confab_media_bandwidth_refusals"
    private static let fullSessions = "confab_media_full_sessions"
    private static let added = [
        pipedPackets + "_total": "Media packets passed to other media loops, counted once per loop.",
        relayedPackets + "_total": "Media packets sent to other nodes, counted once per node.",
        relayWaits + "_total": "Clients and encodings of other nodes that waited because a relay was at its limit.",
        recordedPackets + "_total": "Media packets passed to the recorder, counted once per recording.",
        unrecordedPackets + "_total": "Media packets missing in recordings, because the recorder was too slow.",
        waits + "_total": "Times the sending of media was delayed because a socket's buffer was full.",
        wakeups + "_total": "Times a media loop woke up.",
        reads + "_total": "System calls that received datagrams.",
        datagramsReceived + "_total": "Datagrams received over UDP.",
        writes + "_total": "System calls that sent datagrams.",
        messages + "_total": "Messages passed to the kernel, each with one or more datagrams (UDP GSO).",
        datagramsSent + "_total": "Datagrams sent over UDP.",
        padding + "_total": "Padding bytes sent to probe the available bandwidth of subscribers.",
        changes + "_total": "Changes of the video layer that is forwarded to a subscriber, by reason.",
        refusals + "_total": "Requests refused because the session or the server had reached its bandwidth limit.",
        fullSessions: "Sessions limited by their own bandwidth limit or the server's.",
        MediaWait.label: "Time from a media packet's arrival until it was forwarded: oldest packet of each wake-up.",
    ]

    /// The help text of each metric, keyed by metric name.
    static let help = meanings.reduce(into: [String: String]()) { help, entry in
        help[entry.key + "_total"] = entry.value
        help[entry.key] = "Deprecated, removed in the next version. Use \(entry.key)_total."
    }.merging(added) { $1 }

    private let received = CounterBridge("confab_media_packets_received")
    private let forwarded = CounterBridge("confab_media_packets_forwarded")
    private let repeated = CounterBridge("confab_media_packets_repeated")
    private let recovered = CounterBridge("confab_media_packets_recovered")
    private let dropped = CounterBridge("confab_media_packets_dropped")
    private let stray = CounterBridge("confab_media_datagrams_stray")
    private let unsent = CounterBridge("confab_media_datagrams_unsent")
    private let piped = CounterBridge(pipedPackets, isNew: true)
    private let relayed = CounterBridge(relayedPackets, isNew: true)
    private let relayWaited = ["client", "encoding"].map {
        CounterBridge(relayWaits, isNew: true, dimensions: [("of", $0)])
    }
    private let recorded = CounterBridge(recordedPackets, isNew: true)
    private let unrecorded = CounterBridge(unrecordedPackets, isNew: true)
    private let loops: [LoopMetrics]
    private let padded = CounterBridge(padding, isNew: true)
    private let changed = ["slow", "codec", "bandwidth", "size", "publisher"].map {
        CounterBridge(changes, isNew: true, dimensions: [("reason", $0)])
    }
    private let refused = ["stream", "subscription", "connection"].map {
        CounterBridge(refusals, isNew: true, dimensions: [("request", $0)])
    }
    private let full = Gauge(label: fullSessions)

    /// The metrics that show how busy a loop is.
    private struct LoopMetrics {
        let waited, woken, readCalls, datagramsIn, writeCalls, messagesOut, datagramsOut: CounterBridge

        /// - Parameter loop: the value of the label; nil for no label.
        init(loop: Int?) {
            func bridge(_ name: String) -> CounterBridge {
                CounterBridge(name, isNew: true, dimensions: loop.map { [("loop", "\($0)")] } ?? [])
            }
            (waited, woken) = (bridge(waits), bridge(wakeups))
            (readCalls, datagramsIn) = (bridge(reads), bridge(datagramsReceived))
            (writeCalls, messagesOut, datagramsOut) = (bridge(writes), bridge(messages), bridge(datagramsSent))
        }

        func record(_ counters: MediaCounters) {
            let sockets = counters.sockets
            woken.record(counters.wakeups)
            readCalls.record(sockets.reads)
            datagramsIn.record(sockets.received)
            writeCalls.record(sockets.writes)
            messagesOut.record(sockets.messages)
            datagramsOut.record(sockets.sent)
            waited.record(sockets.waits)
        }
    }

    /// - Parameter count: the number of media loops. If there are several, the metrics of each loop have the label `loop`.
    init(loops count: Int = 1) {
        loops = count == 1 ? [LoopMetrics(loop: nil)] : (0..<count).map { LoopMetrics(loop: $0) }
    }

    /// Records the counters of the only loop.
    func record(_ counters: MediaCounters) { record([counters]) }

    /// Records the counters of all loops, in their order.
    func record(_ all: [MediaCounters]) {
        for (loop, counters) in zip(loops, all) { loop.record(counters) }
        let counters = all.reduce(into: MediaCounters()) { $0 += $1 }
        let media = counters.router
        received.record(media.packetsIn)
        forwarded.record(media.packetsForwarded)
        piped.record(media.packetsPiped)
        relayed.record(media.packetsRelayed)
        let waits = [media.relayClientsOverLimit, media.relayEncodingsOverLimit]
        for (total, count) in zip(relayWaited, waits) { total.record(count) }
        recorded.record(media.packetsRecorded)
        unrecorded.record(media.recordingPacketsDropped)
        repeated.record(media.packetsRetransmitted)
        recovered.record(media.packetsRecovered)
        dropped.record(media.packetsDropped)
        stray.record(media.strayDatagrams)
        unsent.record(counters.lost)
        padded.record(media.paddingBytes)
        let changes = [
            media.changesForSlowness, media.changesForCodec, media.changesForBandwidth, media.changesForSize,
            media.changesForPublisher,
        ]
        for (total, count) in zip(changed, changes) { total.record(count) }
        full.record(media.fullSessions)
    }

    func record(_ refusals: BandwidthRefusals) {
        let counts = [refusals.streams, refusals.subscriptions, refusals.connections]
        for (total, count) in zip(refused, counts) { total.record(UInt64(clamping: count)) }
    }
}

/// How long media waits in the server. A media loop measures it once per batch of sends rather than per packet.
struct MediaWait: Sendable {
    static let label = "confab_media_wait_seconds"
    /// Upper bounds of the buckets in seconds. A delay of more than 20 ms is audible as a gap.
    static let buckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 1]

    private let timer = Timer(label: label)

    func record(_ wait: MediaInterval) { timer.recordNanoseconds(max(0, wait.nanoseconds)) }
}
