import Wire

/// The person for whom a page is computed, with their blocks and location.
struct Viewer: Equatable, Sendable {
    var identity: IdentityID
    var blocked: Set<IdentityID>
    /// The viewer's location; `nil` if the viewer deleted it. The page is then empty.
    var cell: Cell?
}

/// A page that a client watches: which people it asks for, and the rows that were most recently sent.
struct Watching: Sendable {
    var client: ConnectionID
    var viewer: Viewer
    var unit: DistanceUnit
    var reach: Int
    var after: Cursor?
    var limit: Int
    var rows: [NearbyRow] = []
    var next: String?
    /// The number of changes to the directory that the page already reflects.
    var seen: UInt64 = 0
    /// When the page was most recently sent; nil if it was not sent yet.
    var sentAt: Timestamp?
    /// True if the viewer's location, blocks or connection may have changed since the page was computed.
    var isStale = false
    /// True while the viewer's connection is lost. The page is then not refreshed.
    var isAway = false
}

/// All watched pages, and the state of the sweep that refreshes them. A sweep starts after a change in the directory, at most
/// once per interval. It visits all pages in small steps.
struct Watches: Sendable {
    var all: ContiguousArray<Watching> = []
    private var indices: [ConnectionID: Int] = [:]

    /// Legal transitions: `resting` → `sweeping` → `resting`.
    enum State: Equatable, Sendable {
        /// No sweep is in progress. `since` is when the previous sweep started; nil if there was none.
        case resting(since: Timestamp?)
        /// A sweep is in progress. It visits page `index` next, at time `at`.
        case sweeping(since: Timestamp, index: Int, at: Timestamp)
    }
    var state = State.resting(since: nil)
    /// The number of directory changes that the current or most recent sweep covers.
    var sweptChanges: UInt64 = 0
    /// True if another sweep is needed, because a page was skipped or moved, or a viewer has changed.
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
        // Removing a page moves another one. That page may now be before the position of the current sweep, which
        // would then miss it.
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

/// Notifies the viewers of watched pages.
extension Directory {
    /// How much work a sweep does per step. Work is counted in units, because refreshing a page costs more than skipping an
    /// unaffected one.
    private struct Pace {
        /// The minimum time between two steps. The actual time is longer if few page refreshes per second are allowed.
        static let minInterval: Duration = .milliseconds(10)
        /// The cost of checking a page that needs no refresh.
        static let passingCost = 1
        /// The cost of refreshing a page.
        static let pageCost = 20

        var interval: Duration
        var work: Int

        init(_ rules: Rules) {
            let perSecond = max(1, rules.nearbyRefreshesPerSecond)
            let pages = max(1, perSecond / 100)
            work = pages * Self.pageCost
            interval = max(Self.minInterval, .milliseconds(Int64(1000 * pages / perSecond)))
        }
    }

    mutating func watch(_ watch: NearbyVerb.Watch, _ request: Request, _ viewer: Viewer, _ context: inout Context) {
        var after: Cursor?
        if let text = watch.after {
            guard let cursor = Cursor(text) else {
                let error = WireError(
                    .malformed, "Invalid \"after\". Send the \"next\" of an earlier list, or omit it to start over.")
                return context.fail(error, request)
            }
            after = cursor
        }
        let reach = Distance.reach(watch.radius, watch.unit)
        var watching = Watching(
            client: request.client, viewer: viewer, unit: watch.unit, reach: reach, after: after,
            limit: min(max(1, watch.limit ?? Limits.nearbyRows), Limits.nearbyRows)
        )
        (watching.rows, watching.next) = look(watching)
        (watching.seen, watching.sentAt) = (changes.count, context.now)
        var list = NearbyNotice.List()
        (list.re, list.unit, list.radius) = (request.re, watch.unit, Distance.labels(watch.unit)[reach - 1])
        (list.people, list.next) = (watching.rows, watching.next)
        context.send(.nearby(.list(list)), to: request.client)
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

    /// Runs one step of a sweep, if one is due.
    mutating func sweep(_ context: inout Context) {
        guard let due = watches.nextSweep(seen: changes.count, rules), due <= context.now else { return }
        if case .resting = watches.state {
            watches.state = .sweeping(since: context.now, index: 0, at: context.now)
            (watches.sweptChanges, watches.isIncomplete) = (changes.count, false)
        }
        guard case .sweeping(let since, var index, _) = watches.state else { return }
        let pace = Pace(rules)
        var work = pace.work
        while index < watches.all.count, work > 0 {
            work -= refresh(index, &context)
            index += 1
        }
        let isDone = index >= watches.all.count
        watches.state =
            isDone ? .resting(since: since) : .sweeping(since: since, index: index, at: context.now + pace.interval)
    }

    /// Refreshes one watched page if necessary.
    ///
    /// - Returns: the cost in units of work (`Pace`).
    private mutating func refresh(_ index: Int, _ context: inout Context) -> Int {
        let watching = watches.all[index]
        // Skip a viewer who has lost their connection. The page is refreshed when they reconnect.
        if watching.isAway { return Pace.passingCost }
        if !watching.isStale, !isAffected(watching) {
            watches.all[index].seen = changes.count
            return Pace.passingCost
        }
        if let sentAt = watching.sentAt, context.now < sentAt + rules.nearbyInterval {
            watches.isIncomplete = true
            return Pace.passingCost
        }
        let (rows, next) = look(watching)
        (watches.all[index].seen, watches.all[index].isStale) = (changes.count, false)
        guard rows != watching.rows || next != watching.next else { return Pace.pageCost }
        (watches.all[index].rows, watches.all[index].next) = (rows, next)
        watches.all[index].sentAt = context.now
        context.send(
            .nearby(.changed(.init(from: watching.rows, to: rows, next: next))), to: watching.client)
        return Pace.pageCost
    }

    private func isAffected(_ watching: Watching) -> Bool {
        guard watching.seen != changes.count, let cell = watching.viewer.cell else { return false }
        let edge = Distance.squaredEdges[watching.reach - 1]
        return changes.affect(cell.center, within: edge, since: watching.seen)
    }
}

extension NearbyNotice.Changed {
    /// Describes the difference between two versions of a page: new or changed rows, removed people, and the new
    /// order.
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
