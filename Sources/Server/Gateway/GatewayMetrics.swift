import CoreMetrics
import Metrics
import Signaling

/// What the gateway counts. Names follow Prometheus's conventions.
struct GatewayMetrics {
    let sockets = Gauge(label: "confab_sockets")
    let clients = Gauge(label: "confab_client_connections")
    let people = Gauge(label: "confab_people")
    let sessions = Gauge(label: "confab_sessions")
    let matches = Gauge(label: "confab_roulette_matches")
    let waiting = Gauge(label: "confab_roulette_waiting")
    let received = Counter(label: "confab_messages_received_total")
    let sent = Counter(label: "confab_messages_sent_total")
    let malformed = Counter(label: "confab_messages_malformed_total")
    let refusedHellos = Counter(label: "confab_hellos_refused_total")
    let droppedForBackpressure = Counter(label: "confab_sockets_too_slow_total")

    /// Help texts for the exposition.
    static let help = [
        "confab_sockets": "Open sockets: WebSockets, and clients of Socket.IO by any transport.",
        "confab_client_connections": "Client connections, those waiting to be resumed included.",
        "confab_people": "Identities in memory.",
        "confab_sessions": "Sessions somebody is in.",
        "confab_roulette_matches": "Pairs chatting.",
        "confab_roulette_waiting": "People in the queue.",
        "confab_messages_received_total": "Messages from clients.",
        "confab_messages_sent_total": "Messages to clients.",
        "confab_messages_malformed_total": "Messages from clients that could not be read.",
        "confab_hellos_refused_total": "Hellos refused: bad tokens, bans, versions.",
        "confab_sockets_too_slow_total": "Sockets closed because they did not read what was sent.",
    ]

    func record(_ hub: Hub<SystemRandomNumberGenerator>) {
        clients.record(hub.clientCount)
        people.record(hub.personCount)
        sessions.record(hub.sessionCount)
        matches.record(hub.matchCount)
        waiting.record(hub.waitingCount)
    }
}
