import Metrics
import Signaling
import Wire

/// The metrics of rooms. The rules count, and this type exports the totals on each scrape.
struct RoomMetrics: Sendable {
    private let rooms = Gauge(label: "confab_rooms")
    private let people = Gauge(label: "confab_room_people")
    private let waiting = Gauge(label: "confab_room_waiting")
    private let fileBytes = Gauge(label: "confab_room_file_bytes")
    private let joins: [String: CounterBridge]

    private static let joinsName = "confab_room_joins"
    private static let otherOutcome = "other"
    /// One series per outcome. An unknown error counts as `otherOutcome` and creates no new series. All series exist
    /// from the start, because Prometheus needs a first value to compute a rate.
    private static let outcomes =
        ["joined", "waiting", otherOutcome]
        + [
            WireError.Code.roomNotFound, .roomFull, .roomLocked, .roomPassword, .roomNoPassword, .roomOther,
            .roomRefused, .roomBanned, .roomMesh, .rateLimited,
        ].map(\.rawValue)

    init() {
        joins = Dictionary(
            uniqueKeysWithValues: Self.outcomes.map {
                ($0, CounterBridge(Self.joinsName, isNew: true, dimensions: [("outcome", $0)]))
            })
    }

    /// The help text of each metric, keyed by metric name.
    static let help = [
        "confab_rooms": "Rooms that exist, including empty ones.",
        "confab_room_people": "People in rooms, counted once per device.",
        "confab_room_waiting": "People waiting in a lobby until a host admits them.",
        "confab_room_file_bytes": "Size of the files in rooms in bytes, including uploads in progress.",
        joinsName + "_total": "Requests to join a room, by outcome: joined, waiting, or an error code.",
    ]

    func record(_ hub: Hub) {
        let figures = hub.roomFigures
        rooms.record(hub.roomCount)
        people.record(figures.people)
        waiting.record(figures.waiting)
        fileBytes.record(hub.roomFileSpace.all.bytes)
        var others = 0
        for (outcome, count) in figures.joins {
            if let total = joins[outcome], outcome != Self.otherOutcome {
                total.record(UInt64(clamping: count))
            } else {
                others += count
            }
        }
        joins[Self.otherOutcome]?.record(UInt64(clamping: others))
    }
}
