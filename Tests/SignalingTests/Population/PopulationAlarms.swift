import Wire

/// A calendar queue of what people do later, with a bucket for each 10 ms. So adding and taking an alarm takes constant time, however
/// many people there are.
struct PopulationAlarms {
    enum Kind: UInt8 {
        /// Connects.
        case come
        /// Closes the page.
        case leave
        case ping
        /// What follows in the person's state: pressing Next, ending a call, accepting one.
        case act
        /// Writes a line of text.
        case line
    }

    struct Alarm {
        let person: UInt32
        /// If the person's count of connections or of states is another one by then, the alarm is void.
        let stamp: UInt32
        let kind: Kind
    }

    private static let step: Int64 = 10
    private let start: Timestamp
    private var steps: [[Alarm]]
    private var cursor = 0

    /// - Parameter duration: how long the simulation lasts. Alarms that are due later are dropped.
    init(from start: Timestamp, for duration: Duration) {
        self.start = start
        steps = Array(repeating: [], count: Int(duration.wholeMilliseconds / Self.step) + 1)
    }

    mutating func add(_ kind: Kind, of person: Int, stamp: UInt32, at time: Timestamp) {
        let index = max(cursor, Int((time - start).wholeMilliseconds / Self.step) + 1)
        guard index < steps.count else { return }
        steps[index].append(Alarm(person: UInt32(person), stamp: stamp, kind: kind))
    }

    /// When the next alarm is due; nil if there is none.
    mutating func nextTime() -> Timestamp? {
        while cursor < steps.count, steps[cursor].isEmpty { cursor += 1 }
        guard cursor < steps.count else { return nil }
        return start + .milliseconds(Int64(cursor) * Self.step)
    }

    /// Takes the alarms of the earliest time, if that time has come.
    mutating func take(until now: Timestamp) -> [Alarm] {
        guard let next = nextTime(), next <= now else { return [] }
        var alarms: [Alarm] = []
        swap(&alarms, &steps[cursor])
        cursor += 1
        return alarms
    }
}
