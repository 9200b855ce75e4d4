import Wire
import DequeModule
import HeapModule

public enum PoolEvent: Equatable, Sendable {
    case enter(PoolEntry)
    case withdraw(IdentityID)
    /// Answers to `reserve`.
    case reserved(MatchID, IdentityID)
    case refused(MatchID, IdentityID)
    /// The first blocked the second while waiting.
    case exclude(IdentityID, IdentityID)
    case count(ConnectionID, re: UInt64)
}

/// The queue of the roulette: who waits, and who of them meets whom.
///
/// It owns the order of waiting and nothing else: whether somebody really is free is asked of the person (reserve, then
/// match or release), and a match lives on its own. Oldest eligible first; shared interests alone for `interestWait`,
/// then anybody; never a blocked person; the person just left only when nobody else is eligible, and after `rematchWait`.
/// Invariant: no two who may meet both go on waiting without a retry on the timer.
///
/// Whoever cannot match is not looked at: an attempt walks only the lines of its own interests and, once it is open to
/// anybody, the lines of those who are open too; at most `candidatesPerAttempt` are probed, the rest later.
public struct Pool: Sendable {
    enum State: Equatable, Sendable {
        case waiting
        /// Asked for a match that both must still agree to.
        case reserving(Attempt)
    }

    struct Attempt: Equatable, Sendable {
        var match: MatchID
        /// Who looked, and whom he found.
        var first: Int32
        var second: Int32
        /// Whether the one whose state this is said yes.
        var hasAgreed = false
    }

    struct Waiting: Keyed, Sendable {
        var entry: PoolEntry
        var number: UInt64
        var entered: Timestamp
        var state = State.waiting
        /// Takes anybody: has no interests, or waited for them long enough.
        var isOpen: Bool
        /// Candidates up to this number were probed already in the present attempt.
        var probed: UInt64 = 0
        /// A former partner met on the way, in case nobody else turns up.
        var fallback: Line.Place?

        var key: IdentityID { entry.identity }
        static var vacant: Waiting {
            Waiting(
                entry: PoolEntry(identity: IdentityID(high: 0, low: 0)), number: 0, entered: Timestamp(milliseconds: 0),
                isOpen: false
            )
        }
    }

    /// Why people stand in one line: an interest; or being open to anybody, for want of interests or after waiting for
    /// them in vain. Those are two lines, because each is appended to in the order of entry only if kept apart.
    private enum Reason: Hashable, Sendable {
        case interest(String)
        case openFromStart
        case openAfterWait
    }

    private struct Topic: Hashable, Sendable {
        var mode: ChatMode
        var reason: Reason

        /// The mode is left to comparing: hashing it would cost as much as hashing a word.
        func hash(into hasher: inout Hasher) {
            switch reason {
            case .interest(let text): hasher.combine(text)
            case .openFromStart: hasher.combine(0)
            case .openAfterWait: hasher.combine(1)
            }
        }
    }

    private struct TopicLine: Keyed, Sendable {
        let key: Topic
        var line = Line()
        static var vacant: TopicLine { TopicLine(key: Topic(mode: .video, reason: .openFromStart)) }
    }

    private struct Address: Keyed, Sendable {
        let key: String
        var entries = 0
        static var vacant: Address { Address(key: "") }
    }

    private struct Due: Comparable, Sendable {
        var at: Timestamp
        var place: Line.Place
        static func < (left: Due, right: Due) -> Bool { (left.at, left.place.number) < (right.at, right.place.number) }
        static func == (left: Due, right: Due) -> Bool { left.at == right.at && left.place == right.place }
    }

    private var waiting = Table<Waiting>()
    private var lines = Table<TopicLine>()
    private var addresses = Table<Address>()
    /// Whose exclusive wait ends when: a constant wait, so the order of entry is the order of ending.
    private var exclusive: Deque<Due> = []
    private var retries = Heap<Due>()
    private var lastNumber: UInt64 = 0
    private let rules: Rules

    public init(rules: Rules) { self.rules = rules }

    public var waitingCount: Int { waiting.count }

    /// For tests and invariants: who waits, oldest first.
    public var waitingIdentities: [IdentityID] {
        waiting.all.filter { $0.number > 0 }.sorted { $0.number < $1.number }.map(\.entry.identity)
    }

    public var nextTimeout: Timestamp? {
        let due = retries.min?.at
        guard let first = exclusive.first?.at else { return due }
        return due.map { min($0, first) } ?? first
    }

    public mutating func handle(
        _ event: PoolEvent, now: Timestamp, online: Int = 0, using generator: inout some RandomNumberGenerator,
        into effects: inout [Effect]
    ) {
        switch event {
        case .enter(let entry): enter(entry, now: now, using: &generator, into: &effects)
        case .withdraw(let identity): withdraw(identity, now: now, into: &effects)
        case .reserved(let match, let identity): agreed(match, identity, into: &effects)
        case .refused(let match, let identity): refused(match, identity, now: now, into: &effects)
        case .exclude(let identity, let other):
            if let slot = waiting.number(of: identity) { waiting[slot].entry.excluded.insert(other) }
        case .count(let client, let re):
            effects.send(.count(Count(re: re, online: online, waiting: waitingCount)), to: client)
        }
    }

    public mutating func handleTimeout(
        now: Timestamp, using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        while let due = exclusive.first, due.at <= now {
            exclusive.removeFirst()
            guard isAlive(due.place) else { continue }
            open(due.place)
            attempt(due.place.slot, now: now, using: &generator, into: &effects)
        }
        while let due = retries.min, due.at <= now {
            retries.removeMin()
            guard isAlive(due.place) else { continue }
            attempt(due.place.slot, now: now, using: &generator, into: &effects)
        }
    }

    // MARK: Entering and leaving

    private mutating func enter(
        _ entry: PoolEntry, now: Timestamp, using generator: inout some RandomNumberGenerator,
        into effects: inout [Effect]
    ) {
        lastNumber += 1
        let isOpen = isOpenFromStart(entry)
        let newcomer = Waiting(entry: entry, number: lastNumber, entered: now, isOpen: isOpen)
        guard let slot = waiting.insert(newcomer) else { return }
        guard admit(from: entry.address) else {
            waiting.position(of: entry.identity).map { _ = waiting.remove(at: $0) }
            return effects.tell(.person(entry.identity, .queueFull))
        }
        let place = Line.Place(number: lastNumber, slot: slot)
        var walk = Walk(after: 0)
        for text in entry.interests { walk.add(join(.interest(text), entry.mode, place), in: lines) }
        if isOpen {
            walk.add(join(.openFromStart, entry.mode, place), in: lines)
            if let line = line(.openAfterWait, entry.mode) { walk.add(line, in: lines) }
        } else {
            exclusive.append(Due(at: now + rules.interestWait, place: place))
        }
        attempt(slot, along: walk, now: now, using: &generator, into: &effects)
    }

    private func isOpenFromStart(_ entry: PoolEntry) -> Bool {
        entry.interests.isEmpty || rules.interestWait <= .zero
    }

    /// Counts one more entry of this address, if it may have one.
    private mutating func admit(from address: String) -> Bool {
        guard !address.isEmpty else { return true }
        guard rules.entriesPerAddress > 0 else { return false }
        let number = addresses.number(of: address, orInsert: Address(key: address))
        guard addresses[number].entries < rules.entriesPerAddress else { return false }
        addresses[number].entries += 1
        return true
    }

    private mutating func release(_ address: String) {
        guard let position = addresses.position(of: address) else { return }
        addresses[position.number].entries -= 1
        if addresses[position.number].entries == 0 { addresses.remove(at: position) }
    }

    private func line(_ reason: Reason, _ mode: ChatMode) -> Int32? {
        lines.number(of: Topic(mode: mode, reason: reason))
    }

    private mutating func join(_ reason: Reason, _ mode: ChatMode, _ place: Line.Place) -> Int32 {
        let topic = Topic(mode: mode, reason: reason)
        let number = lines.number(of: topic, orInsert: TopicLine(key: topic))
        lines[number].line.append(place)
        return number
    }

    /// Takes the entry out of everything that knows of it.
    @discardableResult
    private mutating func remove(_ position: Table<Waiting>.Position) -> PoolEntry {
        let removed = waiting.remove(at: position)
        let entry = removed.entry
        release(entry.address)
        for text in entry.interests { leave(.interest(text), entry.mode) }
        if removed.isOpen { leave(isOpenFromStart(entry) ? .openFromStart : .openAfterWait, entry.mode) }
        return entry
    }

    private mutating func leave(_ reason: Reason, _ mode: ChatMode) {
        guard let position = lines.position(of: Topic(mode: mode, reason: reason)) else { return }
        lines[position.number].line.leave { [waiting] in Self.isAlive($0, in: waiting) }
        if lines[position.number].line.isEmpty { lines.remove(at: position) }
    }

    private static func isAlive(_ place: Line.Place, in waiting: Table<Waiting>) -> Bool {
        waiting[place.slot].number == place.number
    }

    private func isAlive(_ place: Line.Place) -> Bool { Self.isAlive(place, in: waiting) }

    private mutating func open(_ place: Line.Place) {
        guard !waiting[place.slot].isOpen else { return }
        waiting[place.slot].isOpen = true
        waiting[place.slot].probed = 0
        _ = join(.openAfterWait, waiting[place.slot].entry.mode, place)
    }

    private mutating func withdraw(_ identity: IdentityID, now: Timestamp, into effects: inout [Effect]) {
        guard let position = waiting.position(of: identity) else { return }
        if case .reserving(let attempt) = waiting[position.number].state {
            release(attempt, now: now, into: &effects)
        }
        remove(position)
    }

    // MARK: Finding somebody

    private mutating func attempt(
        _ slot: Int32, now: Timestamp, using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        guard waiting[slot].state == .waiting else { return }
        attempt(slot, along: walk(for: slot), now: now, using: &generator, into: &effects)
    }

    private mutating func attempt(
        _ slot: Int32, along walk: Walk, now: Timestamp, using generator: inout some RandomNumberGenerator,
        into effects: inout [Effect]
    ) {
        switch search(for: slot, along: walk, now: now) {
        case .found(let candidate):
            let attempt = Attempt(match: .random(using: &generator), first: slot, second: candidate)
            waiting[slot].state = .reserving(attempt)
            waiting[candidate].state = .reserving(attempt)
            let (first, second) = (waiting[slot].key, waiting[candidate].key)
            effects.tell(.person(first, .reserve(attempt.match, with: second)))
            effects.tell(.person(second, .reserve(attempt.match, with: first)))
        case .retry(let at): retry(slot, at: at)
        case .nobody: break
        }
    }

    private mutating func retry(_ slot: Int32, at: Timestamp) {
        retries.insert(Due(at: at, place: .init(number: waiting[slot].number, slot: slot)))
    }

    private enum Finding {
        case found(Int32)
        case retry(Timestamp)
        case nobody
    }

    private mutating func search(for slot: Int32, along walk: Walk, now: Timestamp) -> Finding {
        var walk = walk
        var fallback = waiting[slot].fallback
        var probes = 0
        while let place = walk.next(in: lines) {
            guard place.slot != slot, isAlive(place), waiting[place.slot].state == .waiting else { continue }
            guard probes < rules.candidatesPerAttempt else {
                waiting[slot].fallback = fallback
                return .retry(now + rules.retryInterval)
            }
            probes += 1
            waiting[slot].probed = place.number
            if waiting[slot].entry.isBlocked(with: waiting[place.slot].entry) { continue }
            if waiting[slot].entry.justLeft(waiting[place.slot].entry) {
                fallback = fallback ?? place
            } else {
                return .found(place.slot)
            }
        }
        waiting[slot].probed = 0
        waiting[slot].fallback = nil
        return rematch(waiting[slot], with: fallback, now: now)
    }

    /// Two who just left each other and are alone: paired again when both have waited for `rematchWait`.
    private func rematch(_ seeker: Waiting, with fallback: Line.Place?, now: Timestamp) -> Finding {
        guard let fallback, isAlive(fallback), waiting[fallback.slot].state == .waiting else { return .nobody }
        let at = max(seeker.entered, waiting[fallback.slot].entered) + rules.rematchWait
        return at <= now ? .found(fallback.slot) : .retry(at)
    }

    /// All lines in which this person may find somebody, from where the present attempt got to.
    private func walk(for slot: Int32) -> Walk {
        var walk = Walk(after: waiting[slot].probed)
        let mode = waiting[slot].entry.mode
        for text in waiting[slot].entry.interests {
            if let line = line(.interest(text), mode) { walk.add(line, in: lines) }
        }
        guard waiting[slot].isOpen else { return walk }
        if let line = line(.openFromStart, mode) { walk.add(line, in: lines) }
        if let line = line(.openAfterWait, mode) { walk.add(line, in: lines) }
        return walk
    }

    /// Several lines as one, in the order of entry, each place once.
    private struct Walk {
        private var cursors: [(line: Int32, index: Int)] = []
        private var last: UInt64

        init(after number: UInt64) { last = number }

        mutating func add(_ line: Int32, in lines: Table<TopicLine>) {
            cursors.append((line, lines[line].line.index(after: last)))
        }

        mutating func next(in lines: Table<TopicLine>) -> Line.Place? {
            var best: Line.Place?
            for position in cursors.indices {
                while let place = lines[cursors[position].line].line.place(at: cursors[position].index) {
                    if place.number > last {
                        if best.map({ place.number < $0.number }) ?? true { best = place }
                        break
                    }
                    cursors[position].index += 1
                }
            }
            if let best { last = best.number }
            return best
        }
    }

    // MARK: Both must agree

    /// The attempt this person is in, if it is for that match.
    private func attempt(_ match: MatchID, of slot: Int32) -> Attempt? {
        guard case .reserving(let attempt) = waiting[slot].state, attempt.match == match else { return nil }
        return attempt
    }

    private mutating func agreed(_ match: MatchID, _ identity: IdentityID, into effects: inout [Effect]) {
        guard let position = waiting.position(of: identity), var attempt = attempt(match, of: position.number) else {
            return
        }
        let slot = position.number
        let other = slot == attempt.first ? attempt.second : attempt.first
        guard let others = self.attempt(match, of: other), others.hasAgreed else {
            attempt.hasAgreed = true
            waiting[slot].state = .reserving(attempt)
            return
        }
        let mine = remove(position)
        guard let position = waiting.position(of: waiting[other].key) else { return }
        let theirs = remove(position)
        let (first, second) = slot == attempt.first ? (mine, theirs) : (theirs, mine)
        effects.tell(.match(match, .begin(first.mode, first, second)))
    }

    /// One is not free, or does not want to: out of the queue if he is not in it in truth; the other goes on.
    private mutating func refused(
        _ match: MatchID, _ identity: IdentityID, now: Timestamp, into effects: inout [Effect]
    ) {
        guard let slot = waiting.number(of: identity), let attempt = attempt(match, of: slot) else { return }
        let other = slot == attempt.first ? attempt.second : attempt.first
        // Whatever the reason (a block this queue has not heard of, or another engagement), these two are not tried again.
        waiting[other].entry.excluded.insert(identity)
        release(attempt, now: now, into: &effects)
    }

    /// Both go on waiting, and look again at once: whoever came meanwhile passed over them.
    private mutating func release(_ attempt: Attempt, now: Timestamp, into effects: inout [Effect]) {
        for slot in [attempt.first, attempt.second] {
            waiting[slot].state = .waiting
            waiting[slot].probed = 0
            effects.tell(.person(waiting[slot].key, .release(attempt.match)))
            retry(slot, at: now)
        }
    }
}
