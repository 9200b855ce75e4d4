import DequeModule
import HeapModule
import Signaling
import Wire

/// Decides when each event in the outbox is sent. It is a pure state machine: its inputs are events, the time and
/// random numbers, and its outputs are commands.
///
/// Invariants: an event is sent only after the previous event of its session was delivered or given up, and removed
/// from the outbox. No event is skipped: the position up to which a project's events were read advances only past
/// events whose session is in memory. The schedule keeps at most ``sessionsPerProject`` sessions of each project in
/// memory, each with the oldest event only.
struct WebhookSchedule: Sendable {
    static let firstDelay: Duration = .seconds(5)
    static let maxDelay: Duration = .seconds(900)
    /// How long to wait before retrying a command that the database could not carry out.
    static let storageDelay: Duration = .seconds(5)
    /// Maximum number of sessions of one project in memory. The events of further sessions wait in the database.
    static let sessionsPerProject = 1000
    /// Maximum number of events in a page, which is read from the database at once.
    static let pageSize = 200
    /// One project may use at most 1/`share` of all requests, but always at least one. Another 1/`share` is only for
    /// projects without a request whose receivers answer within ``quick``.
    static let share = 4
    static let quick: Duration = .seconds(1)
    /// How often events that are too old are removed.
    static let giveUpInterval: Duration = .seconds(60)

    /// The inputs of the schedule.
    enum Event: Sendable {
        /// The projects that have a webhook.
        case targets([String: WebhookTarget])
        /// Events of these projects were added to the outbox.
        case added(Set<String>)
        /// The answer to `read`.
        case page(String, after: Int64, [WebhookEntry])
        /// The answer to `send`.
        case sent(WebhookEntry, Result)
        /// The answer to `remove` and `follow`: the next event of the session, or nil if there is none.
        case removed(WebhookEntry, next: WebhookEntry?)
        /// The answer to `giveUp`: no events of this project that happened before this time are left.
        case gaveUp(String, before: Timestamp)
        /// The database could not carry out a command.
        case storageFailed(Command)
        /// Sent regularly, so that the schedule notices when a time limit has passed.
        case tick
    }

    /// The result of an attempt to deliver an event.
    enum Result: Hashable, Sendable {
        case delivered
        /// The reason is for the log.
        case failed(String)
        /// The event could not be sent yet, for a reason that is not the receiver's.
        case postponed
        /// The event is no longer in the outbox.
        case missing
    }

    /// The outputs of the schedule: what the caller must do.
    enum Command: Hashable, Sendable {
        /// Read up to `pageSize` events of a project whose numbers are greater than `after`.
        case read(String, after: Int64)
        case send(WebhookEntry)
        /// Remove an event, and read the next one of its session.
        case remove(WebhookEntry)
        /// Remove the events of a project that happened before a time, because they are too old.
        case giveUp(String, before: Timestamp)
        /// Read the event of the same session that follows this one.
        case follow(WebhookEntry)
        /// Log that a project's webhook began to fail, or that it accepts events again.
        case logFailing(String, reason: String)
        case logRecovered(String)
    }

    /// A session with events in the outbox. Only the oldest event is in memory.
    private struct Lane: Sendable {
        /// The delivery state of the session's oldest event.
        enum State: Hashable, Sendable {
            case ready
            case sending
            case waiting(until: Timestamp)
            /// The event is being removed, and the next one is being read.
            case removing
        }

        var head: WebhookEntry
        var state = State.ready
        /// The number of failed attempts to deliver `head`.
        var failures = 0
        /// When `head` was last sent.
        var sentAt = Timestamp(milliseconds: 0)
        /// The highest number among the events of this session that were read.
        var newest: Int64
        /// Whether `head` was given up while it was being sent.
        var isGivenUp = false
    }

    /// A project with a webhook.
    private struct Project: Sendable {
        var target: WebhookTarget
        var lanes: [SessionID: Lane] = [:]
        var ready: Deque<SessionID> = []
        var sending = 0
        /// Whether the last attempt to deliver an event of this project failed.
        var isFailing = false
        /// How long it took to deliver the last event; nil if none was delivered yet.
        var lastDelivery: Duration?
        /// Whether the project is in `turns`.
        var hasTurn = false
        /// The number of the last event that was read. The next page begins after it.
        var position: Int64 = 0
        var isReading = false
        /// Whether there may be events after `position`.
        var hasMore = true
        /// Whether events were added while a page was being read.
        var hasNews = false
    }

    /// The time at which an event whose delivery failed is sent again.
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
    /// Commands that the database could not carry out, at most one per session and one per project, and the time at
    /// which they are retried; nil if there are none.
    private var postponed: [Command] = []
    private var postponedUntil: Timestamp?
    /// When events that are too old are removed again.
    private var givesUpAt = Timestamp(milliseconds: 0)
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
        case .targets(let targets): setTargets(targets, &commands)
        case .added(let keys): for key in keys { noteNews(of: key, &commands) }
        case .page(let key, let position, let entries): take(entries, after: position, of: key, &commands)
        case .sent(let entry, let result): finish(entry, result, moment.now, &random, &commands)
        case .removed(let entry, let next): advance(entry, to: next, &commands)
        case .gaveUp(let key, let time): skipOld(of: key, before: time)
        // It is repeated anyway.
        case .storageFailed(.giveUp): break
        case .storageFailed(let command):
            postponed.append(command)
            postponedUntil = postponedUntil ?? moment.now + Self.storageDelay
        case .tick: break
        }
        giveUp(moment, &commands)
        wake(moment.now, &commands)
        send(moment.now, &commands)
        return commands
    }

    // MARK: Projects

    private mutating func setTargets(_ targets: [String: WebhookTarget], _ commands: inout [Command]) {
        let changed = Set(projects.filter { targets[$0.key] != $0.value.target }.keys)
        if !changed.isEmpty { alarms = Heap(alarms.unordered.filter { !changed.contains($0.entry.project) }) }
        for key in changed {
            if let target = targets[key] { retry(key, at: target) } else { drop(key) }
        }
        turns.removeAll { targets[$0] == nil }
        for (key, target) in targets where projects[key] == nil {
            projects[key] = Project(target: target)
            read(key, &commands)
        }
    }

    /// Sends the events that wait after a failure to the new target at once. Their alarms were removed.
    private mutating func retry(_ key: String, at target: WebhookTarget) {
        guard let index = projects.index(forKey: key) else { return }
        projects.values[index].target = target
        for (session, lane) in projects.values[index].lanes {
            projects.values[index].lanes[session]?.failures = 0
            if case .waiting = lane.state { makeReady(session, of: index) }
        }
    }

    /// Forgets a project. The results of its running requests will be ignored.
    private mutating func drop(_ key: String) {
        guard let project = projects.removeValue(forKey: key) else { return }
        sending -= project.sending
        if project.isFailing { sendingToFailing -= project.sending }
        postponed.removeAll { command in
            switch command {
            case .read(let other, _), .giveUp(let other, _): other == key
            case .send(let entry), .remove(let entry), .follow(let entry): entry.project == key
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

    /// Requests the next page of a project's events. Does nothing if there are no more events, if a page is already
    /// being read, or if there is no room in memory for the sessions of a page.
    private mutating func read(_ key: String, _ commands: inout [Command]) {
        guard let index = projects.index(forKey: key), projects.values[index].hasMore,
            !projects.values[index].isReading,
            projects.values[index].lanes.count + Self.pageSize <= Self.sessionsPerProject
        else { return }
        projects.values[index].isReading = true
        projects.values[index].hasNews = false
        commands.append(.read(key, after: projects.values[index].position))
    }

    /// Handles a page. It may contain events that were removed while it was being read; sending one of them results
    /// in `missing`.
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
    private mutating func send(_ now: Timestamp, _ commands: inout [Command]) {
        // Stop after a whole round in which no project was allowed to send.
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
            projects.values[index].lanes[session]?.sentAt = now
            projects.values[index].sending += 1
            sending += 1
            if projects.values[index].isFailing { sendingToFailing += 1 }
            commands.append(.send(head))
            left = turns.count
        }
    }

    private func mayUse(_ project: Project) -> Bool {
        let isQuick = !project.isFailing && project.lastDelivery.map { $0 <= Self.quick } ?? false
        let reserve = isQuick && project.sending == 0 ? 0 : concurrency / Self.share
        guard sending < concurrency - reserve else { return false }
        if project.isFailing { return project.sending == 0 && sendingToFailing < max(1, concurrency / 2) }
        return project.sending < (project.lastDelivery == nil ? 1 : max(1, concurrency / Self.share))
    }

    private mutating func finish(
        _ entry: WebhookEntry, _ result: Result, _ now: Timestamp, _ random: inout some RandomNumberGenerator,
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
            commands.append(.remove(entry))
        case .failed, .postponed:
            if result != .postponed { projects.values[index].lanes.values[lane].failures += 1 }
            let failures = projects.values[index].lanes.values[lane].failures
            guard !projects.values[index].lanes.values[lane].isGivenUp else {
                makeReady(entry.session, of: index)
                break
            }
            let until = now + Self.delay(afterFailures: failures, using: &random)
            projects.values[index].lanes.values[lane].state = .waiting(until: until)
            alarms.insert(Alarm(at: until, entry: entry))
        }
        if result == .delivered {
            projects.values[index].lastDelivery = now - projects.values[index].lanes.values[lane].sentAt
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
        case (.delivered, false), (.failed, true), (.missing, _), (.postponed, _): break
        }
    }

    /// Returns the delay before the next attempt: `firstDelay`, doubled for each further failure, up to `maxDelay`. A
    /// random part of up to a fifth is subtracted, so that sessions that failed together are not all sent again
    /// together.
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
            // A page contained a later event of this session. It was stored after the search for the next event, so
            // search again.
            lane.newest = entry.id
            projects.values[index].lanes[entry.session] = lane
            commands.append(.follow(entry))
        } else {
            projects.values[index].lanes[entry.session] = nil
            read(key, &commands)
        }
    }

    // MARK: Time

    /// Removes the events that are too old, unless the clock may be wrong. They are removed wherever they are in the
    /// queue: most of them may never have been sent.
    private mutating func giveUp(_ moment: Moment, _ commands: inout [Command]) {
        guard let wall = moment.confirmedWall, moment.now >= givesUpAt else { return }
        givesUpAt = moment.now + Self.giveUpInterval
        for (key, project) in projects where !project.lanes.isEmpty {
            commands.append(.giveUp(key, before: wall - giveUpAfter))
        }
    }

    /// Continues with sessions whose oldest event was given up, after the attempt to send it if one is running. Sending it
    /// then results in `missing`.
    private mutating func skipOld(of key: String, before time: Timestamp) {
        guard let index = projects.index(forKey: key) else { return }
        for (session, lane) in projects.values[index].lanes where lane.head.at < time {
            switch lane.state {
            case .waiting: makeReady(session, of: index)
            case .sending: projects.values[index].lanes[session]?.isGivenUp = true
            case .ready, .removing: break
            }
        }
    }

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
