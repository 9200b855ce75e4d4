import Wire

/// The directory of people nearby: which people are in which cell, and which clients watch which page.
///
/// Owns the list of people and its order. It knows people only through their listings.
/// Invariant: of a person's location, only the cell influences the output. Within a distance bucket, people are in the
/// daily order, which changes every day and does not depend on their locations.
///
/// Adding, moving and removing a person takes time independent of the number of people. A sweep over the watched pages notifies
/// their viewers. It refreshes a limited number of pages at a time, so neither many listed people nor many viewers can stall
/// the server.
public struct Directory: Machine {
    /// A listed person.
    struct Person: Sendable {
        var listing: Listing
        /// The person's place in the table: a keyed hash, which changes only if the server key changes.
        var order: UInt64
    }

    let rules: Rules
    private let serverKey: ServerKey
    var people = Numbered<Person?>()
    private var byIdentity = NumberIndex()
    var grid = PeopleGrid()
    var table = OrderTable()
    var changes = RecentChanges()
    var watches = Watches()
    /// The day for which `key` was computed, in days since 1970.
    private var day: Int64 = .min
    /// Today's key. A person's place in the daily order is the place in the table XOR this key.
    private(set) var key: UInt64 = 0

    public init(rules: Rules, project: Project) { (self.rules, serverKey) = (rules, project.serverKey) }

    public var listedCount: Int { grid.count }
    public var watchCount: Int { watches.count }

    public mutating func handle(_ event: DirectoryEvent, _ context: inout Context) {
        beginDay(at: context.now)
        switch event {
        case .show(let listing): show(listing)
        case .hide(let identity): hide(identity)
        case .watch(let client, let re, let viewer, let blocked, let cell, let watch):
            self.watch(watch, Request(client, re), Viewer(identity: viewer, blocked: blocked, cell: cell), &context)
        case .unwatch(let client): watches.remove(client)
        case .viewerChanged(let client, let blocked, let cell):
            watches.change(client) { ($0.viewer.blocked, $0.viewer.cell) = (blocked, cell) }
        case .viewerAway(let client, let isAway): watches.change(client) { $0.isAway = isAway }
        }
    }

    public var nextTimeout: Timestamp? {
        guard let sweep = watches.nextSweep(seen: changes.count, rules) else { return nil }
        return min(sweep, Self.firstMoment(ofDay: day + 1))
    }

    public mutating func handleTimeout(_ context: inout Context) {
        beginDay(at: context.now)
        sweep(&context)
    }

    // MARK: The daily order

    private static let dayLength: Int64 = 86_400_000

    static func firstMoment(ofDay day: Int64) -> Timestamp {
        let (start, overflow) = day.multipliedReportingOverflow(by: dayLength)
        return Timestamp(milliseconds: overflow ? .max : start)
    }

    private mutating func beginDay(at now: Timestamp) {
        let (quotient, remainder) = now.milliseconds.quotientAndRemainder(dividingBy: Self.dayLength)
        let today = remainder < 0 ? quotient - 1 : quotient
        guard today != day else { return }
        day = today
        key = serverKey.nearbyOrder("day \(today)")
        changes.forget()
    }

    // MARK: Listings

    private func number(of identity: IdentityID) -> Int32? {
        byIdentity[NumberIndex.key(identity)].flatMap { people[$0]?.listing.identity == identity ? $0 : nil }
    }

    private mutating func show(_ listing: Listing) {
        guard let number = number(of: listing.identity) else { return add(listing) }
        guard let person = people[number], person.listing != listing else { return }
        let (before, center) = (person.listing.cell, listing.cell.center)
        changes.note(before.center)
        people[number]?.listing = listing
        guard before != listing.cell else { return }
        changes.note(center)
        grid.remove(number)
        grid.insert(number, person.order, at: listing.cell)
        table.move(number, person.order, to: center)
    }

    private mutating func add(_ listing: Listing) {
        let key = NumberIndex.key(listing.identity)
        // If two identities have the same 64-bit key, list only the first. In practice this does not happen.
        guard byIdentity[key] == nil else { return }
        let order = serverKey.nearbyOrder(listing.person.description)
        let number = people.insert(Person(listing: listing, order: order))
        byIdentity.insert(key, number)
        let center = listing.cell.center
        grid.insert(number, order, at: listing.cell)
        table.insert(OrderTable.Entry(order: order, point: center, number: number))
        changes.note(center)
    }

    private mutating func hide(_ identity: IdentityID) {
        guard let number = number(of: identity), let person = people[number] else { return }
        if let position = byIdentity.position(of: NumberIndex.key(identity)) { byIdentity.remove(at: position) }
        grid.remove(number)
        table.remove(number, person.order)
        changes.note(person.listing.cell.center)
        people[number] = nil
        people.free(number)
    }
}

extension ServerKey {
    /// Returns 64 bits that no one can predict without the server key.
    func nearbyOrder(_ text: String) -> UInt64 {
        authenticationCode(Array("confab nearby\n\(text)".utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// The locations of people who recently appeared, moved, changed or disappeared. Watched pages that are too far away
/// from all of these locations need no refresh.
struct RecentChanges: Sendable {
    /// Maximum number of changes kept: about as many as happen in a second on a busy server. Scanning all of them takes a few
    /// microseconds.
    private static let maxCount: UInt64 = 1024

    private var points: ContiguousArray<GlobePoint> = []
    /// The total number of changes so far.
    private(set) var count: UInt64 = 0
    /// The number of the oldest change whose location is still known.
    private var floor: UInt64 = 0
    /// The number of the change that was stored first, at index 0 of `points`. Later changes reuse the indices in
    /// turn.
    private var base: UInt64 = 0

    private func index(_ number: UInt64) -> Int { Int((number - base) % Self.maxCount) }

    mutating func note(_ point: GlobePoint) {
        if points.count < Int(Self.maxCount) {
            points.append(point)
        } else {
            points[index(count)] = point
        }
        count += 1
        if count - floor > Self.maxCount { floor = count - Self.maxCount }
    }

    /// Forgets all locations, so that every page counts as affected.
    mutating func forget() {
        count += 1
        (floor, base) = (count, count)
        points = []
    }

    /// Returns whether any change after the first `seen` changes happened within this distance (as a squared chord) of
    /// `center`. Also returns true if the locations of some of these changes are no longer known.
    func affect(_ center: GlobePoint, within chord: Int64, since seen: UInt64) -> Bool {
        guard seen >= floor else { return true }
        var number = seen
        while number < count {
            if points[index(number)].squaredChord(to: center) <= chord { return true }
            number += 1
        }
        return false
    }
}
