import DequeModule
import HeapModule
import Signaling
import Wire

/// Decides when each event in the outbox is sent. A pure machine: events, the time and randomness in, commands out.
///
/// Invariants: an event is sent only after the previous event of its session was removed from the outbox, because it was delivered
/// or given up. No event is passed over, because the position up to which a project's events were read only moves past events
/// of sessions that are known. It holds at most ``sessionsPerProject`` sessions of each project in memory, each with the
/// oldest event only.
struct WebhookSchedule: Sendable {
    static let firstDelay: Duration = .seconds(5)
    static let maxDelay: Duration = .seconds(900)
    /// How long to wait before trying again what the database has refused.
    static let storageDelay: Duration = .seconds(5)
    /// Sessions of one project that are sent to or waited for at the same time. The events of further sessions wait in the
    /// database.
    static let sessionsPerProject = 1000
    /// Events that are read at once.
    static let pageSize = 200
    /// One project may use at most 1/`share` of all requests, but always at least one.
    static let share = 4

    /// What the schedule is notified of.
    enum Event: Sendable {
        /// The projects that have a webhook.
        case targets(Set<String>)
        /// Events of these projects were added to the outbox.
        case added(Set<String>)
        /// The answer to `read`.
        case page(String, after: Int64, [WebhookEntry])
        /// The answer to `send`.
        case sent(WebhookEntry, Result)
        /// The answer to `remove` and `follow`: the next event of the session.
        case removed(WebhookEntry, next: WebhookEntry?)
        /// The database could not carry out a command.
        case storageFailed(Command)
        /// Time has passed.
        case tick
    }

    /// The result of an attempt to deliver an event.
    enum Result: Hashable, Sendable {
        case delivered
        /// The reason is for the log.
        case failed(String)
        /// The event is not in the outbox any more.
        case missing
    }

    /// What to do.
    enum Command: Hashable, Sendable {
        /// Read `pageSize` events of a project that follow this one.
        case read(String, after: Int64)
        case send(WebhookEntry)
        /// Remove an event, and read the next one of its session.
        case remove(WebhookEntry, isGivenUp: Bool)
        /// Read the event of the same session that follows this one.
        case follow(WebhookEntry)
        /// Log that a webhook began to fail, or accepts events again.
        case logFailing(String, reason: String)
        case logRecovered(String)
    }

    /// A session with events, of which only the oldest is known.
    private struct Lane: Sendable {
        /// What the session waits for.
        enum State: Hashable, Sendable {
            case ready
            case sending
            case waiting(until: Timestamp)
            /// The event is being removed, and the next one is being read.
            case removing
        }

        var head: WebhookEntry
        var state = State.ready
        /// Failed attempts to deliver `head`.
        var failures = 0
        /// The highest number of an event of this session that was read with a page.
        var newest: Int64
    }

    /// A project with a webhook.
    private struct Project: Sendable {
        var lanes: [SessionID: Lane] = [:]
        var ready: Deque<SessionID> = []
        var sending = 0
        /// Whether the last attempt failed.
        var isFailing = false
        /// Whether the project is in `turns`.
        var hasTurn = false
        /// The number of the last event that was read and whose session is known.
        var position: Int64 = 0
        var isReading = false
        /// Whether there may be events after `position`.
        var hasMore = true
        /// Whether events were added while a page was being read.
        var hasNews = false
    }

    /// The time at which a session's event is sent again.
    private struct Alarm: Comparable, Sendable {
        var at: Timestamp
        var entry: WebhookEntry

        static func < (left: Self, right: Self) -> Bool { (left.at, left.entry.id) < (right.at, right.entry.id) }
    }

    private let concurrency: Int
    private let giveUpAfter: Duration
    private var projects: [String: Project] = [:]
    /// Projects with sessions that are ready, in the order in which they may send.
    private var turns: Deque<String> = []
    private var alarms = Heap<Alarm>()
    /// Commands that the database could not carry out, and when to try again. At most one for each session and project.
    private var postponed: [Command] = []
    private var postponedUntil: Timestamp?
    private var sending = 0
    private var sendingToFailing = 0

    init(concurrency: Int, giveUpAfter: Duration) {
        (self.concurrency, self.giveUpAfter) = (max(1, concurrency), giveUpAfter)
    }

    /// The number of sessions in memory.
    var laneCount: Int { projects.values.reduce(0) { $0 + $1.lanes.count } }

    /// When to send `tick` at the latest; nil if nothing waits for time to pass.
    var wakeAt: Timestamp? {
        switch (alarms.min?.at, postponedUntil) {
        case (let alarm?, let retry?): min(alarm, retry)
        case (let alarm, let retry): alarm ?? retry
        }
    }

    mutating func handle(
        _ event: Event, at moment: Moment, using random: inout some RandomNumberGenerator
    ) -> [Command] {
        var commands: [Command] = []
        switch event {
        case .targets(let keys): setTargets(keys, &commands)
        case .added(let keys): for key in keys { noteNews(of: key, &commands) }
        case .page(let key, let position, let entries): take(entries, after: position, of: key, &commands)
        case .sent(let entry, let result): finish(entry, result, moment, &random, &commands)
        case .removed(let entry, let next): advance(entry, to: next, &commands)
        case .storageFailed(let command):
            postponed.append(command)
            postponedUntil = postponedUntil ?? moment.now + Self.storageDelay
        case .tick: break
        }
        wake(moment.now, &commands)
        send(&commands)
        return commands
    }

    // MARK: Projects

    private mutating func setTargets(_ keys: Set<String>, _ commands: inout [Command]) {
        let gone = projects.keys.filter { !keys.contains($0) }
        for key in gone { drop(key) }
        if !gone.isEmpty {
            alarms = Heap(alarms.unordered.filter { keys.contains($0.entry.project) })
            turns.removeAll { !keys.contains($0) }
        }
        for key in keys where projects[key] == nil {
            projects[key] = Project()
            read(key, &commands)
        }
    }

    /// Forgets a project. The answers to its requests that are running are ignored.
    private mutating func drop(_ key: String) {
        guard let project = projects.removeValue(forKey: key) else { return }
        sending -= project.sending
        if project.isFailing { sendingToFailing -= project.sending }
        postponed.removeAll { command in
            switch command {
            case .read(let other, _): other == key
            case .send(let entry), .remove(let entry, _), .follow(let entry): entry.project == key
            case .logFailing, .logRecovered: false
            }
        }
    }

    private mutating func noteNews(of key: String, _ commands: inout [Command]) {
        projects[key]?.hasMore = true
        projects[key]?.hasNews = true
        read(key, &commands)
    }

    // MARK: Reading

    /// Requests a page of a project that may have more events, if there is room for their sessions.
    private mutating func read(_ key: String, _ commands: inout [Command]) {
        guard let index = projects.index(forKey: key), projects.values[index].hasMore,
            !projects.values[index].isReading,
            projects.values[index].lanes.count + Self.pageSize <= Self.sessionsPerProject
        else { return }
        projects.values[index].isReading = true
        projects.values[index].hasNews = false
        commands.append(.read(key, after: projects.values[index].position))
    }

    /// Takes a page. It may contain events that were removed while it was being read; `send` then finds them missing.
    private mutating func take(
        _ entries: [WebhookEntry], after position: Int64, of key: String, _ commands: inout [Command]
    ) {
        // Ignore the answer to a request from before the project was dropped and added again.
        guard let index = projects.index(forKey: key), projects.values[index].isReading,
            projects.values[index].position == position
        else { return }
        projects.values[index].isReading = false
        for entry in entries {
            projects.values[index].position = entry.id
            if let lane = projects.values[index].lanes.index(forKey: entry.session) {
                let newest = projects.values[index].lanes.values[lane].newest
                projects.values[index].lanes.values[lane].newest = max(newest, entry.id)
            } else {
                projects.values[index].lanes[entry.session] = Lane(head: entry, newest: entry.id)
                makeReady(entry.session, of: index)
            }
        }
        if entries.count < Self.pageSize { projects.values[index].hasMore = projects.values[index].hasNews }
        read(key, &commands)
    }

    // MARK: Sending

    private mutating func makeReady(_ session: SessionID, of index: Dictionary<String, Project>.Index) {
        projects.values[index].lanes[session]?.state = .ready
        projects.values[index].ready.append(session)
        guard !projects.values[index].hasTurn else { return }
        projects.values[index].hasTurn = true
        turns.append(projects.keys[index])
    }

    /// Sends as much as the limits allow, in turns, so that a project with many events does not delay the others.
    private mutating func send(_ commands: inout [Command]) {
        // Stop when no project of a whole round may send.
        var left = turns.count
        while sending < concurrency, left > 0, let key = turns.popFirst() {
            left -= 1
            guard let index = projects.index(forKey: key) else { continue }
            guard let session = projects.values[index].ready.first else {
                projects.values[index].hasTurn = false
                continue
            }
            turns.append(key)
            guard mayUse(projects.values[index]) else { continue }
            projects.values[index].ready.removeFirst()
            guard let head = projects.values[index].lanes[session]?.head else { continue }
            projects.values[index].lanes[session]?.state = .sending
            projects.values[index].sending += 1
            sending += 1
            if projects.values[index].isFailing { sendingToFailing += 1 }
            commands.append(.send(head))
            left = turns.count
        }
    }

    private func mayUse(_ project: Project) -> Bool {
        guard project.isFailing else { return project.sending < max(1, concurrency / Self.share) }
        return project.sending == 0 && sendingToFailing < max(1, concurrency / 2)
    }

    private mutating func finish(
        _ entry: WebhookEntry, _ result: Result, _ moment: Moment, _ random: inout some RandomNumberGenerator,
        _ commands: inout [Command]
    ) {
        let key = entry.project
        guard let index = projects.index(forKey: key),
            let lane = projects.values[index].lanes.index(forKey: entry.session),
            projects.values[index].lanes.values[lane].state == .sending,
            projects.values[index].lanes.values[lane].head.id == entry.id
        else { return }
        let wasFailing = projects.values[index].isFailing
        projects.values[index].sending -= 1
        sending -= 1
        if wasFailing { sendingToFailing -= 1 }
        switch result {
        case .delivered, .missing:
            projects.values[index].lanes.values[lane].state = .removing
            commands.append(.remove(entry, isGivenUp: false))
        case .failed:
            if let wall = moment.confirmedWall, wall - entry.at >= giveUpAfter {
                projects.values[index].lanes.values[lane].state = .removing
                commands.append(.remove(entry, isGivenUp: true))
            } else {
                projects.values[index].lanes.values[lane].failures += 1
                let failures = projects.values[index].lanes.values[lane].failures
                let until = moment.now + Self.delay(afterFailures: failures, using: &random)
                projects.values[index].lanes.values[lane].state = .waiting(until: until)
                alarms.insert(Alarm(at: until, entry: entry))
            }
        }
        switch (result, wasFailing) {
        case (.delivered, true):
            projects.values[index].isFailing = false
            sendingToFailing -= projects.values[index].sending
            commands.append(.logRecovered(key))
        case (.failed(let reason), false):
            projects.values[index].isFailing = true
            sendingToFailing += projects.values[index].sending
            commands.append(.logFailing(key, reason: reason))
        case (.delivered, false), (.failed, true), (.missing, _): break
        }
    }

    /// The delay before the next attempt: `firstDelay`, doubled for each further failure, up to `maxDelay`. A random part of up
    /// to a fifth is subtracted, so that sessions that failed together are not all sent again together.
    static func delay(afterFailures failures: Int, using random: inout some RandomNumberGenerator) -> Duration {
        let doublings = min(max(failures, 1) - 1, 16)
        let full = min(firstDelay * (1 << doublings), maxDelay)
        return full - full / 1000 * Int.random(in: 0...200, using: &random)
    }

    /// Continues with the next event of a session after one was removed.
    private mutating func advance(_ entry: WebhookEntry, to next: WebhookEntry?, _ commands: inout [Command]) {
        let key = entry.project
        guard let index = projects.index(forKey: key), var lane = projects.values[index].lanes[entry.session],
            lane.state == .removing, lane.head.id == entry.id
        else { return }
        if let next {
            projects.values[index].lanes[entry.session] = Lane(head: next, newest: max(lane.newest, next.id))
            makeReady(entry.session, of: index)
        } else if lane.newest > entry.id {
            // A page had a later event, which was stored after the next event was looked for. Look again.
            lane.newest = entry.id
            projects.values[index].lanes[entry.session] = lane
            commands.append(.follow(entry))
        } else {
            projects.values[index].lanes[entry.session] = nil
            read(key, &commands)
        }
    }

    // MARK: Time

    private mutating func wake(_ now: Timestamp, _ commands: inout [Command]) {
        while let alarm = alarms.min, alarm.at <= now {
            alarms.removeMin()
            let entry = alarm.entry
            guard let index = projects.index(forKey: entry.project),
                projects.values[index].lanes[entry.session]?.state == .waiting(until: alarm.at)
            else { continue }
            makeReady(entry.session, of: index)
        }
        if let until = postponedUntil, until <= now {
            commands += postponed
            (postponed, postponedUntil) = ([], nil)
        }
    }
}
