import Wire

public enum DirectoryEvent: Equatable, Sendable {
    /// This person is listed from now on as this says; also after any change of it.
    case show(Listing)
    /// Not any more: left, dropped, made invisible, forgot the position.
    case hide(IdentityID)
    /// A client looks at a page of the list.
    case watch(ConnectionID, re: UInt64, viewer: IdentityID, blocked: Set<IdentityID>, at: Cell, NearbyVerb.Watch)
    case unwatch(ConnectionID)
    /// The viewer moved or blocked somebody; without a position it sees nobody.
    case viewerChanged(ConnectionID, blocked: Set<IdentityID>, at: Cell?)
    /// The viewer's line broke, or is back: what it would be told meanwhile it is told then, at once.
    case viewerAway(ConnectionID, Bool)
}

/// A person as the directory lists it.
public struct Listing: Equatable, Sendable {
    public var identity: IdentityID
    public var person: PersonID
    public var name: String
    public var isBusy: Bool
    public var cell: Cell
    /// These see nothing of this person.
    public var blocked: Set<IdentityID>

    public init(
        identity: IdentityID, person: PersonID, name: String, isBusy: Bool, cell: Cell, blocked: Set<IdentityID> = []
    ) {
        (self.identity, self.person, self.name) = (identity, person, name)
        (self.isBusy, self.cell, self.blocked) = (isBusy, cell, blocked)
    }
}

/// Where people are, roughly, and who looks at which page of whom.
///
/// It owns the list and its order; it knows of people only what their listings say. Invariant: whatever it tells depends on
/// where somebody is by nothing but the cell, and on the others of a bucket by nothing but the day's order.
///
/// What listing, moving and taking out cost does not depend on how many there are. Who looks at a page is told of changes
/// by a walk around all who look, so many pages at a time: no crowd, of the listed or of those who look, stalls the rest.
public struct Directory: Machine {
    struct Person: Sendable {
        var listing: Listing
        /// From the keyed hash, the same as long as the project's secret.
        var order: UInt64
    }

    let rules: Rules
    let project: Project
    var people = Numbered<Person?>()
    private var byIdentity = NumberIndex()
    var grid = PeopleGrid()
    var table = OrderTable()
    var changes = RecentChanges()
    var watches = Watches()
    /// The day since 1970 that `key` is of.
    private var day: Int64 = .min
    /// What turns the table's order into the day's.
    private(set) var key: UInt64 = 0

    public init(rules: Rules, project: Project) { (self.rules, self.project) = (rules, project) }

    public var listedCount: Int { grid.count }
    public var watchCount: Int { watches.count }

    public mutating func handle(_ event: DirectoryEvent, _ turn: inout Turn) {
        beginDay(at: turn.now)
        switch event {
        case .show(let listing): show(listing)
        case .hide(let identity): hide(identity)
        case .watch(let client, let re, let viewer, let blocked, let cell, let watch):
            self.watch(watch, Request(client, re), Viewer(identity: viewer, blocked: blocked, cell: cell), &turn)
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

    public mutating func handleTimeout(_ turn: inout Turn) {
        beginDay(at: turn.now)
        sweep(&turn)
    }

    // MARK: The order of the day

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
        key = project.nearbyOrder("day \(today)")
        changes.forget()
    }

    // MARK: Who is listed

    private func number(of identity: IdentityID) -> Int32? {
        byIdentity[NumberIndex.key(identity)].flatMap { people[$0]?.listing.identity == identity ? $0 : nil }
    }

    private mutating func show(_ listing: Listing) {
        guard let number = number(of: listing.identity) else { return add(listing) }
        guard let person = people[number], person.listing != listing else { return }
        let (before, centre) = (person.listing.cell, listing.cell.centre)
        changes.note(before.centre)
        people[number]?.listing = listing
        guard before != listing.cell else { return }
        changes.note(centre)
        grid.remove(number)
        grid.insert(number, person.order, at: listing.cell)
        table.move(number, person.order, to: centre)
    }

    private mutating func add(_ listing: Listing) {
        let key = NumberIndex.key(listing.identity)
        // Of two whose keys meet, which 2^64 keys do not come to, the first is listed.
        guard byIdentity[key] == nil else { return }
        let order = project.nearbyOrder(listing.person.description)
        let number = people.insert(Person(listing: listing, order: order))
        byIdentity.insert(key, number)
        let centre = listing.cell.centre
        grid.insert(number, order, at: listing.cell)
        table.insert(OrderTable.Entry(order: order, point: centre, number: number))
        changes.note(centre)
    }

    private mutating func hide(_ identity: IdentityID) {
        guard let number = number(of: identity), let person = people[number] else { return }
        if let position = byIdentity.position(of: NumberIndex.key(identity)) { byIdentity.remove(at: position) }
        grid.remove(number)
        table.remove(number, person.order)
        changes.note(person.listing.cell.centre)
        people[number] = nil
        people.free(number)
    }
}

extension Project {
    /// Sixty-four bits for a text that nobody can foresee without the project's secret.
    func nearbyOrder(_ text: String) -> UInt64 {
        authenticationCode(Array("confab nearby\n\(text)".utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Where the list changed last: whoever looks elsewhere need not look again.
struct RecentChanges: Sendable {
    /// As many as happen in a second on a busy server; looking through all of them takes some microseconds.
    private static let most: UInt64 = 1024

    private var points: ContiguousArray<GlobePoint> = []
    /// All that ever happened.
    private(set) var count: UInt64 = 0
    /// Of those before this one it is not known where.
    private var floor: UInt64 = 0
    /// The one that `points` begins with.
    private var base: UInt64 = 0

    private func index(_ number: UInt64) -> Int { Int((number - base) % Self.most) }

    mutating func note(_ point: GlobePoint) {
        if points.count < Int(Self.most) {
            points.append(point)
        } else {
            points[index(count)] = point
        }
        count += 1
        if count - floor > Self.most { floor = count - Self.most }
    }

    /// Everything may be otherwise now.
    mutating func forget() {
        count += 1
        (floor, base) = (count, count)
        points = []
    }

    /// Whether anything after the first `seen` changes was as near as this to a place.
    func concern(_ centre: GlobePoint, within chord: Int64, since seen: UInt64) -> Bool {
        guard seen >= floor else { return true }
        var number = seen
        while number < count {
            if points[index(number)].squaredChord(to: centre) <= chord { return true }
            number += 1
        }
        return false
    }
}
