import CoreMetrics
import Metrics
import Signaling
import Wire

/// The gateway's metrics. Names follow Prometheus's conventions.
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
    /// One gauge per state, also for the states without archives.
    private let archives = ArchiveState.allCases.map {
        ($0, Gauge(label: "confab_archives", dimensions: [("state", $0.rawValue)]))
    }
    private let broadcasts = Gauge(label: "confab_broadcasts")
    let rings = Counter(label: "confab_calls_placed_total")
    /// One counter per call outcome, as the caller sees the outcome.
    let endings = [CallOutcome: Counter](
        uniqueKeysWithValues: CallOutcome.allCases.map {
            ($0, Counter(label: "confab_calls_ended_total", dimensions: [("outcome", $0.rawValue)]))
        })
    let received = Counter(label: "confab_messages_received_total")
    let sent = Counter(label: "confab_messages_sent_total")
    let connectionsRefused = Counter(label: "confab_connections_refused_total")
    let malformed = Counter(label: "confab_messages_malformed_total")
    let refusedHellos = Counter(label: "confab_hellos_refused_total")
    let droppedForBackpressure = Counter(label: "confab_sockets_too_slow_total")

    private let droppedLetters = CounterBridge("confab_cluster_letters_dropped", isNew: true)
    private let unsampledChats = CounterBridge("confab_roulette_unsampled", isNew: true)

    /// Requests that were refused because their project exceeded its budget.
    let projectsOverBudget = Counter(label: "confab_project_over_budget_total")

    /// The budgets of an address block.
    enum AddressBudget: String, CaseIterable {
        case messages
        case queues
        case storage
        case transfers
    }

    private let addressBudgets = [AddressBudget: Counter](
        uniqueKeysWithValues: AddressBudget.allCases.map {
            ($0, Counter(label: "confab_address_over_budget_total", dimensions: [("budget", $0.rawValue)]))
        })

    /// Counts that a client was delayed, refused or dropped because its address exceeded this budget.
    func overBudget(_ budget: AddressBudget) { addressBudgets[budget]?.increment() }

    let commitSeconds = Timer(label: "confab_storage_commit_seconds")
    let commitFailures = Counter(label: "confab_storage_commit_failures_total")
    let changesLost = Counter(label: "confab_storage_changes_lost_total")
    let uncommitted = Gauge(label: "confab_storage_uncommitted_transactions")

    /// How late timers on the event loop fire. This is a histogram, because a gauge would miss the rare delays between
    /// two scrapes, which matter most.
    let loopLag = Timer(label: "confab_event_loop_lag_seconds")
    let waitingInputs = Gauge(label: "confab_waiting_inputs")
    let media: MediaMetrics
    let rooms = RoomMetrics()
    let recordings = RecordingMetrics()
    let broadcasting = BroadcastMetrics()

    /// - Parameter mediaLoops: the number of media loops.
    init(mediaLoops: Int = 1) { media = MediaMetrics(loops: mediaLoops) }

    /// The help text of each metric, keyed by metric name.
    static let help: [String: String] = [
        own, MediaMetrics.help, RecordingMetrics.help, BroadcastMetrics.help, RoomMetrics.help, SampleMetrics.help,
    ].reduce([:]) { all, help in all.merging(help) { first, _ in first } }

    private static let own = [
        "confab_address_over_budget_total":
            "Times a client was delayed, refused or dropped because its address exceeded a budget.",
        "confab_project_over_budget_total": "HTTP requests refused because their project exceeded its budget.",
        "confab_connections_refused_total":
            "TCP connections closed because there were too many, or because they were opened too fast.",
        "confab_storage_commit_seconds": "Time from the first attempt to store a batch of changes until it was stored.",
        "confab_storage_commit_failures_total": "Attempts to store changes that failed. Most are retried.",
        "confab_storage_changes_lost_total": "Changes that could not be stored. The people affected had to reconnect.",
        "confab_storage_uncommitted_transactions": "Transactions waiting for storage.",
        "confab_sockets": "Open sockets: WebSockets, Socket.IO clients of any transport, and WHIP and WHEP resources.",
        "confab_client_connections": "Client connections, including those waiting to be resumed.",
        "confab_people": "Identities in memory.",
        "confab_people_present": "People who are online on at least one device.",
        "confab_calls_ringing": "Calls that are ringing.",
        "confab_calls_active": "Calls that were accepted and have not ended.",
        "confab_calls_placed_total": "Calls that started to ring.",
        "confab_calls_ended_total": "Calls that ended, by outcome as the caller sees it.",
        "confab_archives": "Archives that are being recorded, finished or composed, by state.",
        "confab_broadcasts": "Live broadcasts that run, or are about to begin or end.",
        "confab_sessions": "Sessions with at least one connection.",
        "confab_roulette_matches": "Roulette matches in progress.",
        "confab_roulette_waiting": "People waiting in the roulette queue.",
        "confab_messages_received_total": "Messages received from clients.",
        "confab_messages_sent_total": "Messages sent to clients.",
        "confab_messages_malformed_total": "Messages from clients that could not be parsed.",
        "confab_hellos_refused_total": "Hellos refused: invalid tokens, bans or unsupported versions.",
        "confab_sockets_too_slow_total": "Sockets closed because the client read too slowly.",
        "confab_event_loop_lag_seconds":
            "How late a timer on the gateway's event loop fired, measured twice per second.",
        "confab_cluster_letters_dropped_total":
            "Letters to people on other nodes that were dropped, for example because Redis was away for too long.",
        "confab_waiting_inputs": "Inputs waiting for the hub, and lookups waiting for storage.",
    ]

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
        let states = hub.archiveStates
        for (state, gauge) in archives { gauge.record(states[state] ?? 0) }
        broadcasts.record(hub.broadcastCount)
        droppedLetters.record(UInt64(clamping: hub.droppedLetters))
        unsampledChats.record(UInt64(clamping: hub.unsampledChats))
        media.record(hub.bandwidthRefusals)
        rooms.record(hub)
    }

    func count(_ counted: Change.Counted) {
        switch counted {
        case .callPlaced: rings.increment()
        case .callEnded(let outcome): endings[outcome]?.increment()
        }
    }
}
