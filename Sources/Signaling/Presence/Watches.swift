import Wire

/// Who looks, and from where.
struct Viewer: Equatable, Sendable {
    var identity: IdentityID
    var blocked: Set<IdentityID>
    /// `nil` for who forgot its position: nobody is near nowhere.
    var cell: Cell?
}

/// A page that a client looks at, as it was told last.
struct Watching: Sendable {
    var client: ConnectionID
    var viewer: Viewer
    var unit: DistanceUnit
    var reach: Int
    var after: Cursor?
    var limit: Int
    var rows: [NearbyRow] = []
    var next: String?
    /// How many changes of the list its page has in it.
    var seen: UInt64 = 0
    /// When it was last told something.
    var toldAt: Timestamp?
    /// Something is otherwise with the viewer itself.
    var isStale = false
    /// The line is broken.
    var isAway = false
}

/// Everybody who looks at a page, and a walk around them: a sweep begins when something changed, at most once in an
/// interval, and goes on in small steps until everybody has been looked after.
struct Watches: Sendable {
    var all: ContiguousArray<Watching> = []
    private var indices: [ConnectionID: Int] = [:]

    /// Legal next states: `resting` → `sweeping` → `resting`.
    enum State: Equatable, Sendable {
        /// Since the sweep that began then.
        case resting(since: Timestamp?)
        /// `index` is next, at this time.
        case sweeping(since: Timestamp, index: Int, at: Timestamp)
    }
    var state = State.resting(since: nil)
    /// Changes of the list that the present or last sweep takes in.
    var sweptChanges: UInt64 = 0
    /// Somebody was passed over, or has changed himself: another sweep is needed.
    var isIncomplete = false

    var count: Int { all.count }

    mutating func insert(_ watching: Watching) {
        remove(watching.client)
        indices[watching.client] = all.count
        all.append(watching)
    }

    mutating func remove(_ client: ConnectionID) {
        guard let index = indices.removeValue(forKey: client) else { return }
        let last = all.removeLast()
        guard index < all.count else { return }
        all[index] = last
        indices[last.client] = index
        // It may stand before where the sweep is now.
        isIncomplete = true
    }

    mutating func change(_ client: ConnectionID, _ body: (inout Watching) -> Void) {
        guard let index = indices[client] else { return }
        body(&all[index])
        all[index].isStale = true
        isIncomplete = true
    }

    func nextSweep(seen changes: UInt64, _ rules: Rules) -> Timestamp? {
        guard !all.isEmpty else { return nil }
        switch state {
        case .sweeping(_, _, let at): return at
        case .resting(let since):
            guard isIncomplete || changes != sweptChanges else { return .init(milliseconds: .max) }
            return since.map { $0 + rules.nearbyInterval } ?? Timestamp(milliseconds: .min)
        }
    }
}

/// Telling those who look.
extension Directory {
    /// How much a sweep may do at one time: a page looked up, or a viewer passed over whom no change concerns.
    private struct Pace {
        /// So long, or longer where fewer pages are allowed, is between two steps.
        static let shortest: Duration = .milliseconds(10)
        /// Looking through the recent changes instead of looking up a page.
        static let passingCost = 1
        static let pageCost = 20

        var interval: Duration
        var work: Int

        init(_ rules: Rules) {
            let perSecond = max(1, rules.nearbyRefreshesPerSecond)
            let pages = max(1, perSecond / 100)
            work = pages * Self.pageCost
            interval = max(Self.shortest, .milliseconds(Int64(1000 * pages / perSecond)))
        }
    }

    mutating func watch(_ watch: NearbyVerb.Watch, _ request: Request, _ viewer: Viewer, _ turn: inout Turn) {
        var after: Cursor?
        if let text = watch.after {
            guard let cursor = Cursor(text) else {
                let error = WireError(.malformed, "\"after\" is not what a list said as \"next\"; begin without it.")
                return turn.fail(error, request)
            }
            after = cursor
        }
        let reach = Distance.reach(watch.radius, watch.unit)
        var watching = Watching(
            client: request.client, viewer: viewer, unit: watch.unit, reach: reach, after: after,
            limit: min(max(1, watch.limit ?? Limits.nearbyRows), Limits.nearbyRows)
        )
        (watching.rows, watching.next) = look(watching)
        (watching.seen, watching.toldAt) = (changes.count, turn.now)
        var list = NearbyNotice.List()
        (list.re, list.unit, list.radius) = (request.re, watch.unit, Distance.labels(watch.unit)[reach - 1])
        (list.people, list.next) = (watching.rows, watching.next)
        turn.send(.nearby(.list(list)), to: request.client)
        if watches.count == 0 { watches.sweptChanges = changes.count }
        watches.insert(watching)
    }

    private func look(_ watching: Watching) -> (rows: [NearbyRow], next: String?) {
        guard let cell = watching.viewer.cell else { return ([], nil) }
        let page = page(
            Search(
                viewer: watching.viewer.identity, blocked: watching.viewer.blocked, cell: cell, reach: watching.reach,
                after: watching.after, limit: watching.limit))
        return (rows(page, watching.unit), page.next?.text)
    }

    /// One step of a sweep, if it is time for one.
    mutating func sweep(_ turn: inout Turn) {
        guard let due = watches.nextSweep(seen: changes.count, rules), due <= turn.now else { return }
        if case .resting = watches.state {
            watches.state = .sweeping(since: turn.now, index: 0, at: turn.now)
            (watches.sweptChanges, watches.isIncomplete) = (changes.count, false)
        }
        guard case .sweeping(let since, var index, _) = watches.state else { return }
        let pace = Pace(rules)
        var work = pace.work
        while index < watches.all.count, work > 0 {
            work -= attend(index, &turn)
            index += 1
        }
        let isDone = index >= watches.all.count
        watches.state =
            isDone ? .resting(since: since) : .sweeping(since: since, index: index, at: turn.now + pace.interval)
    }

    /// Looks after one who looks.
    ///
    /// - Returns: what it cost.
    private mutating func attend(_ index: Int, _ turn: inout Turn) -> Int {
        let watching = watches.all[index]
        // Once back it is looked after: until then it would be told in vain.
        if watching.isAway { return Pace.passingCost }
        if !watching.isStale, !isConcerned(watching) {
            watches.all[index].seen = changes.count
            return Pace.passingCost
        }
        if let toldAt = watching.toldAt, turn.now < toldAt + rules.nearbyInterval {
            watches.isIncomplete = true
            return Pace.passingCost
        }
        let (rows, next) = look(watching)
        (watches.all[index].seen, watches.all[index].isStale) = (changes.count, false)
        guard rows != watching.rows || next != watching.next else { return Pace.pageCost }
        (watches.all[index].rows, watches.all[index].next) = (rows, next)
        watches.all[index].toldAt = turn.now
        turn.send(
            .nearby(.changed(.init(from: watching.rows, to: rows, next: next))), to: watching.client)
        return Pace.pageCost
    }

    private func isConcerned(_ watching: Watching) -> Bool {
        guard watching.seen != changes.count, let cell = watching.viewer.cell else { return false }
        let edge = Distance.squaredEdges[watching.reach - 1]
        return changes.concern(cell.centre, within: edge, since: watching.seen)
    }
}

extension NearbyNotice.Changed {
    /// What makes one page of another: whole rows that are new or different, who is gone, and everybody in order.
    init(from old: [NearbyRow], to new: [NearbyRow], next: String?) {
        self.init()
        let before = Dictionary(old.map { ($0.person, $0) }) { first, _ in first }
        let now = Set(new.map(\.person))
        people = new.filter { before[$0.person] != $0 }
        gone = old.map(\.person).filter { !now.contains($0) }
        order = new.map(\.person)
        self.next = next
    }
}
