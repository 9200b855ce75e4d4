import CoreMetrics
import Metrics
import SFU
import Signaling
import Wire

/// What the gateway counts. Names follow Prometheus's conventions.
struct GatewayMetrics {
    let sockets = Gauge(label: "confab_sockets")
    let clients = Gauge(label: "confab_client_connections")
    let people = Gauge(label: "confab_people")
    let sessions = Gauge(label: "confab_sessions")
    let matches = Gauge(label: "confab_roulette_matches")
    let waiting = Gauge(label: "confab_roulette_waiting")
    let present = Gauge(label: "confab_people_present")
    let ringing = Gauge(label: "confab_calls_ringing")
    let active = Gauge(label: "confab_calls_active")
    let rings = Counter(label: "confab_calls_placed_total")
    /// One for each way a call can end, as its caller is told.
    let endings = [CallOutcome: Counter](
        uniqueKeysWithValues: CallOutcome.allCases.map {
            ($0, Counter(label: "confab_calls_ended_total", dimensions: [("outcome", $0.rawValue)]))
        })
    let received = Counter(label: "confab_messages_received_total")
    let sent = Counter(label: "confab_messages_sent_total")
    let malformed = Counter(label: "confab_messages_malformed_total")
    let refusedHellos = Counter(label: "confab_hellos_refused_total")
    let droppedForBackpressure = Counter(label: "confab_sockets_too_slow_total")

    let mediaPacketsIn = Gauge(label: "confab_media_packets_received")
    let mediaPacketsOut = Gauge(label: "confab_media_packets_forwarded")
    let mediaRepeated = Gauge(label: "confab_media_packets_repeated")
    let mediaRecovered = Gauge(label: "confab_media_packets_recovered")
    let mediaDropped = Gauge(label: "confab_media_packets_dropped")
    let mediaStray = Gauge(label: "confab_media_datagrams_stray")
    let mediaUnsent = Gauge(label: "confab_media_datagrams_unsent")

    /// Help texts for the exposition.
    static let help = [
        "confab_media_packets_received": "Media packets from publishers.",
        "confab_media_packets_forwarded": "Media packets sent to subscribers, each counted once for each of them.",
        "confab_media_packets_repeated": "Media packets sent again because a subscriber missed them.",
        "confab_media_packets_recovered": "Media packets that publishers sent again because we missed them.",
        "confab_media_packets_dropped": "Media packets that could not be used.",
        "confab_media_datagrams_stray": "Datagrams of nobody we know.",
        "confab_media_datagrams_unsent": "Datagrams that the system did not take.",
        "confab_sockets": "Open sockets: WebSockets, and clients of Socket.IO by any transport.",
        "confab_client_connections": "Client connections, those waiting to be resumed included.",
        "confab_people": "Identities in memory.",
        "confab_people_present": "People who are there on some device.",
        "confab_calls_ringing": "Calls that ring.",
        "confab_calls_active": "Calls that were accepted and go on.",
        "confab_calls_placed_total": "Calls that began to ring.",
        "confab_calls_ended_total": "Calls that are over, by how their caller was told they ended.",
        "confab_sessions": "Sessions somebody is in.",
        "confab_roulette_matches": "Pairs chatting.",
        "confab_roulette_waiting": "People in the queue.",
        "confab_messages_received_total": "Messages from clients.",
        "confab_messages_sent_total": "Messages to clients.",
        "confab_messages_malformed_total": "Messages from clients that could not be read.",
        "confab_hellos_refused_total": "Hellos refused: bad tokens, bans, versions.",
        "confab_sockets_too_slow_total": "Sockets closed because they did not read what was sent.",
    ]

    func record(_ media: RouterCounters, lost: UInt64) {
        mediaPacketsIn.record(media.packetsIn)
        mediaPacketsOut.record(media.packetsForwarded)
        mediaRepeated.record(media.packetsRepeated)
        mediaRecovered.record(media.packetsRecovered)
        mediaDropped.record(media.packetsDropped)
        mediaStray.record(media.strayDatagrams)
        mediaUnsent.record(lost)
    }

    func record(_ hub: Hub) {
        clients.record(hub.clientCount)
        people.record(hub.personCount)
        sessions.record(hub.sessionCount)
        matches.record(hub.matchCount)
        waiting.record(hub.waitingCount)
        present.record(hub.presentCount)
        let calls = hub.callFigures
        ringing.record(calls.ringing)
        active.record(calls.active)
    }

    /// What is told to storage is what happened.
    func count(_ change: Change) {
        switch change {
        case .callPlaced: rings.increment()
        case .callLogged(let record, of: _) where record.direction == .outgoing: endings[record.outcome]?.increment()
        default: break
        }
    }
}
