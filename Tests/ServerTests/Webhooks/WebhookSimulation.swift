import HeapModule
import Signaling
import TestSupport
import Wire

@testable import Server

/// An outbox, receivers and a network in simulated time, which carry out the commands of a schedule.
struct WebhookSimulation {
    /// What a receiver does with a request.
    struct Behavior {
        var isAccepted = true
        /// Whether the request cannot be sent, for a reason that is not the receiver's.
        var isPostponed = false
        /// The time from the request to the answer.
        var delay: Duration = .milliseconds(20)
    }

    private enum Step {
        case event(WebhookSchedule.Event)
        case store(WebhookEntry)
        case tick
        case restart
    }

    private struct Planned: Comparable {
        var at: Timestamp
        var number: Int
        var step: Step
        /// Answers of a server that was restarted since are not delivered.
        var generation: Int?

        static func < (left: Self, right: Self) -> Bool { (left.at, left.number) < (right.at, right.number) }
        static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    }

    static let start = Timestamp(milliseconds: 1_800_000_000_000)

    private(set) var now = start
    private(set) var schedule: WebhookSchedule
    private var random: SeededGenerator
    private var plan = Heap<Planned>()
    private var planned = 0
    private var generation = 0
    private var nextTick: Timestamp?
    private var lastID: Int64 = 0
    private var byProject: [String: [WebhookEntry]] = [:]
    private var bySession: [SessionID: [WebhookEntry]] = [:]
    private var waiting: Set<Int64> = []

    private let makeSchedule: () -> WebhookSchedule
    private(set) var targets: [String: WebhookTarget]
    /// The behavior of a receiver for an event, at the time of the request.
    var behavior: (WebhookEntry, Timestamp) -> Behavior = { _, _ in Behavior() }
    /// How often the database fails, in percent.
    var storageFailures = 0
    var isClockConfirmed = true
    /// Every event that a receiver has accepted, in the order of acceptance. Contains an event twice if it was sent twice.
    private(set) var accepted: [WebhookEntry] = []
    /// When each event was sent.
    private(set) var attempts: [Int64: [Timestamp]] = [:]
    private(set) var givenUp: [WebhookEntry] = []
    /// The events in the order in which they happened.
    private(set) var stored: [WebhookEntry] = []
    private(set) var highestLaneCount = 0
    private(set) var log: [WebhookSchedule.Command] = []
    private var sending: [String: Int] = [:]
    private(set) var highestSending: [String: Int] = [:]

    init(
        _ targets: Set<String>, seed: UInt64, concurrency: Int = 32, giveUpAfter: Duration = .seconds(86400)
    ) {
        makeSchedule = { WebhookSchedule(concurrency: concurrency, giveUpAfter: giveUpAfter) }
        (schedule, random) = (makeSchedule(), SeededGenerator(seed: seed))
        self.targets = Self.targets(targets)
        add(.event(.targets(self.targets)), at: now)
    }

    private static func targets(_ projects: Set<String>, path: String = "/") -> [String: WebhookTarget] {
        let target = try? WebhookTarget(url: "https://example.org" + path, secret: WebhookSamples.secret)
        return target.map { target in Dictionary(uniqueKeysWithValues: projects.map { ($0, target) }) } ?? [:]
    }

    // MARK: Planning

    private mutating func add(_ step: Step, at time: Timestamp, generation: Int? = nil) {
        planned += 1
        plan.insert(Planned(at: time, number: planned, step: step, generation: generation))
    }

    /// Plans an event of a session.
    mutating func happen(_ project: String, _ session: String, after delay: Duration) {
        guard let id = SessionID(session) else { return }
        add(.store(WebhookEntry(id: 0, project: project, session: id, at: now + delay)), at: now + delay)
    }

    /// Stores an event now, without an announcement, as if it was there when the server started.
    mutating func keep(_ project: String, _ session: String) {
        guard let id = SessionID(session) else { return }
        _ = store(WebhookEntry(id: 0, project: project, session: id, at: now))
    }

    mutating func restart(after delay: Duration) { add(.restart, at: now + delay) }

    /// Sets the projects that have a webhook, now.
    mutating func retarget(_ projects: Set<String>, path: String = "/") {
        targets = Self.targets(projects, path: path)
        add(.event(.targets(targets)), at: now, generation: generation)
    }

    private mutating func store(_ entry: WebhookEntry) -> WebhookEntry {
        lastID += 1
        let entry = WebhookEntry(id: lastID, project: entry.project, session: entry.session, at: entry.at)
        byProject[entry.project, default: []].append(entry)
        bySession[entry.session, default: []].append(entry)
        waiting.insert(entry.id)
        stored.append(entry)
        return entry
    }

    // MARK: Running

    var waitingCount: Int { waiting.count }

    /// Runs until a time, or until all events were delivered or given up and no more are planned.
    mutating func run(for duration: Duration) {
        let end = now + duration
        while let next = plan.min, next.at <= end {
            plan.removeMin()
            now = max(now, next.at)
            if let generation = next.generation, generation != self.generation { continue }
            switch next.step {
            case .event(let event): handle(event)
            case .tick:
                if next.at == nextTick { nextTick = nil }
                handle(.tick)
            case .store(let entry):
                let entry = store(entry)
                handle(.added([entry.project]))
            case .restart:
                generation += 1
                (schedule, sending) = (makeSchedule(), [:])
                handle(.targets(targets))
            }
        }
        now = end
    }

    private mutating func handle(_ event: WebhookSchedule.Event) {
        if case .sent(let entry, _) = event { sending[entry.project, default: 0] -= 1 }
        let moment = Moment(now: now, isConfirmed: isClockConfirmed)
        for command in schedule.handle(event, at: moment, using: &random) { carryOut(command) }
        highestLaneCount = max(highestLaneCount, schedule.laneCount)
        planTick()
    }

    /// Plans the first tick that the schedule needs. Ticks are at whole seconds.
    private mutating func planTick() {
        guard let wakeAt = schedule.wakeAt else { return }
        let seconds = max((wakeAt - Self.start).wholeMilliseconds + 999, 0) / 1000
        let tick = max(Self.start + .seconds(seconds), now)
        guard nextTick.map({ tick < $0 }) ?? true else { return }
        nextTick = tick
        add(.tick, at: tick)
    }

    private mutating func carryOut(_ command: WebhookSchedule.Command) {
        let storageDelay = Duration.milliseconds(Int.random(in: 0...3, using: &random))
        switch command {
        case .logFailing, .logRecovered: return log.append(command)
        case .send(let entry): return send(entry)
        case .read, .remove, .follow, .giveUp: break
        }
        if Int.random(in: 0..<100, using: &random) < storageFailures {
            return add(.event(.storageFailed(command)), at: now + storageDelay, generation: generation)
        }
        let answer: WebhookSchedule.Event
        switch command {
        case .read(let project, let position):
            answer = .page(
                project, after: position,
                following(position, in: byProject[project] ?? [], limit: WebhookSchedule.pageSize))
        case .giveUp(let project, let time):
            let old = (byProject[project] ?? []).prefix { $0.at < time }
            byProject[project]?.removeFirst(old.count)
            givenUp += old.filter { waiting.remove($0.id) != nil }
            answer = .gaveUp(project, before: time)
        case .remove(let entry):
            waiting.remove(entry.id)
            answer = .removed(entry, next: next(entry))
        case .follow(let entry): answer = .removed(entry, next: next(entry))
        case .send, .logFailing, .logRecovered: return
        }
        // The answer is from now, and arrives later: other events may be stored in between.
        add(.event(answer), at: now + storageDelay, generation: generation)
    }

    private mutating func send(_ entry: WebhookEntry) {
        sending[entry.project, default: 0] += 1
        highestSending[entry.project] = max(
            highestSending[entry.project, default: 0], sending[entry.project, default: 0])
        attempts[entry.id, default: []].append(now)
        guard waiting.contains(entry.id) else {
            return add(.event(.sent(entry, .missing)), at: now, generation: generation)
        }
        let behavior = behavior(entry, now)
        guard !behavior.isPostponed else {
            return add(.event(.sent(entry, .postponed)), at: now + behavior.delay, generation: generation)
        }
        if behavior.isAccepted { accepted.append(entry) }
        add(
            .event(.sent(entry, behavior.isAccepted ? .delivered : .failed("status 503"))), at: now + behavior.delay,
            generation: generation)
    }

    private func next(_ entry: WebhookEntry) -> WebhookEntry? {
        following(entry.id, in: bySession[entry.session] ?? [], limit: 1).first
    }

    private func following(_ id: Int64, in entries: [WebhookEntry], limit: Int) -> [WebhookEntry] {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].id <= id { low = middle + 1 } else { high = middle }
        }
        return Array(entries[low...].lazy.filter { waiting.contains($0.id) }.prefix(limit))
    }

    // MARK: Checking

    /// Returns what is wrong with the order or the completeness of what was accepted: each event at least once, and in the
    /// order of its session if repetitions are ignored.
    func faults(isComplete: Bool = true) -> [String] {
        let outcomes = accepted + givenUp
        var faults: [String] = []
        var last: [SessionID: Int64] = [:]
        for entry in accepted {
            if entry.id < last[entry.session, default: 0] { faults.append("\(entry.session): \(entry.id) came late") }
            last[entry.session] = entry.id
        }
        let missing = Set(stored.map(\.id)).subtracting(outcomes.map(\.id))
        if isComplete, !missing.isEmpty { faults.append("\(missing.count) events are missing") }
        return faults
    }
}
