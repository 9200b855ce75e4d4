import Wire
import DequeModule
import HeapModule

/// The queue of the roulette: who waits, and who of them meets whom.
///
/// It owns the order of waiting and nothing else: whether somebody really is free is asked of the person (reserve, then
/// match or release), and a match lives on its own. Oldest eligible first; shared interests alone for `interestWait`,
/// then anybody; never a blocked person; the person just left only when nobody else is eligible, and after `rematchWait`.
/// Invariant: no two who may meet both go on waiting without a retry on the timer.
///
/// Whoever cannot match is not looked at: an attempt walks only the lines of its own interests and, once it is open to
/// anybody, the lines of those who are open too; at most `candidatesPerAttempt` are probed, the rest later. Whoever finds
/// somebody on entering stands in no line at all, unless the match falls through.
public struct Pool: Machine {
    struct Slot: Sendable {
        /// In the order of entry; 0 in a slot nobody has.
        var number: UInt64
        var entered: Timestamp
        /// The attempt that asks for this person, if any.
        var attempt: Int32?
        /// Takes anybody: has no interests, or waited for them long enough.
        var isOpen: Bool
        /// Stands in the lines: found nobody on entering.
        var isQueued = false
        /// The key of the address this person is counted under, if any.
        var address: UInt64?
        var entry: PoolEntry
    }

    /// A match that both must still agree to.
    private struct Attempt: Sendable {
        var match: MatchID
        /// Who looked, and whom he found.
        var first: Int32
        var second: Int32
        var agreed: Int32?

        func other(than slot: Int32) -> Int32 { slot == first ? second : first }
    }

    /// How far somebody got who has more to look at than one attempt may.
    private struct Unfinished: Sendable {
        /// Candidates up to this number were probed already.
        var probed: UInt64
        /// A former partner met on the way, in case nobody else turns up.
        var fallback: Line.Place?
    }

    private struct Due: Comparable, Sendable {
        var at: Timestamp
        var place: Line.Place
        static func < (left: Due, right: Due) -> Bool { (left.at, left.place.number) < (right.at, right.place.number) }
        static func == (left: Due, right: Due) -> Bool { left.at == right.at && left.place == right.place }
    }

    private var slots = Numbered<Slot>()
    private var byIdentity = NumberIndex()
    /// How many wait from each address.
    private var perAddress = NumberIndex()
    private var attempts = Numbered<Attempt>()
    private var byMatch = NumberIndex()
    private var unfinished: [UInt64: Unfinished] = [:]

    private var lines = Numbered<Line>()
    /// Who of an interest waits: one person's slot, for most have one; or the complement of a line's number.
    private var byInterest = NumberIndex()

    /// Whose exclusive wait ends when: a constant wait, so the order of entry is the order of ending.
    private var exclusive: Deque<Due> = []
    private var retries = Heap<Due>()
    private var lastNumber: UInt64 = 0
    /// Means nothing. What an event needs is first touched, all of it together: with a million waiting each touch is a
    /// wait for memory, and a processor waits for several at a time, but not past the work done with the first.
    private var readAhead: UInt64 = 0
    private let rules: Rules

    public init(rules: Rules) {
        self.rules = rules
        // The lines of those open to anybody, for each mode.
        for _ in 0..<2 * ChatMode.allCases.count { _ = lines.insert(Line()) }
    }

    public var waitingCount: Int { slots.count }

    /// For tests and invariants: who waits, oldest first.
    public var waitingIdentities: [IdentityID] {
        slots.all.filter { $0.number > 0 }.sorted { $0.number < $1.number }.map(\.entry.identity)
    }

    public var nextTimeout: Timestamp? {
        let due = retries.min?.at
        guard let first = exclusive.first?.at else { return due }
        return due.map { min($0, first) } ?? first
    }

    public mutating func handle(_ event: PoolEvent, _ turn: inout Turn) {
        switch event {
        case .enter(let entry): enter(entry, &turn)
        case .withdraw(let identity): withdraw(identity, &turn)
        case .reserved(let match, let identity): agreed(match, identity, &turn)
        case .refused(let match, let identity): refused(match, identity, &turn)
        case .exclude(let identity, let other):
            if let slot = slot(of: identity) { slots[slot].entry.excluded.insert(other) }
        case .count(let client, let re):
            turn.send(
                .roulette(.count(.init(re: re, online: turn.figures.online, waiting: waitingCount))),
                to: client)
        }
    }

    public mutating func handleTimeout(_ turn: inout Turn) {
        while let due = exclusive.first, due.at <= turn.now {
            exclusive.removeFirst()
            guard isAlive(due.place) else { continue }
            open(due.place)
            attemptAgain(due.place.slot, &turn)
        }
        while let due = retries.min, due.at <= turn.now {
            retries.removeMin()
            guard isAlive(due.place) else { continue }
            attemptAgain(due.place.slot, &turn)
        }
    }

    private func slot(of identity: IdentityID) -> Int32? {
        byIdentity[NumberIndex.key(identity)].flatMap { slots[$0].entry.identity == identity ? $0 : nil }
    }

    // MARK: Entering and leaving

    private mutating func enter(_ entry: PoolEntry, _ turn: inout Turn) {
        let key = NumberIndex.key(entry.identity)
        let address = entry.address.isEmpty ? nil : NumberIndex.key(entry.address)
        let topics = NumberIndex.topics(of: entry)
        readAhead &+= byIdentity.touch(key) &+ perAddress.touch(address ?? 0) &+ byInterest.touch(topics.first ?? 0)
        guard byIdentity[key] == nil else { return }
        guard admit(from: address) else { return turn.tell(.person(entry.identity, .queueFull)) }
        lastNumber += 1
        let isOpen = entry.interests.isEmpty || rules.interestWait <= .zero
        let slot = slots.insert(
            Slot(number: lastNumber, entered: turn.now, isOpen: isOpen, address: address, entry: entry))
        byIdentity.insert(key, slot)
        attempt(slot, topics, &turn)
        if slots[slot].attempt == nil { queue(slot, topics, now: turn.now) }
    }

    /// Counts one more from this address, if there may be one.
    private mutating func admit(from address: UInt64?) -> Bool {
        guard let address else { return true }
        guard let position = perAddress.position(of: address) else {
            guard rules.entriesPerAddress > 0 else { return false }
            perAddress.insert(address, 1)
            return true
        }
        guard perAddress[position] < rules.entriesPerAddress else { return false }
        perAddress[position] += 1
        return true
    }

    private mutating func release(_ address: UInt64) {
        guard let position = perAddress.position(of: address) else { return }
        perAddress[position] -= 1
        if perAddress[position] == 0 { perAddress.remove(at: position) }
    }

    /// Has somebody stand in the lines where others find him.
    private mutating func queue(_ slot: Int32, _ topics: [UInt64], now: Timestamp) {
        guard !slots[slot].isQueued else { return }
        slots[slot].isQueued = true
        let place = place(of: slot)
        for topic in topics { join(topic, place) }
        if slots[slot].isOpen { return lines[openLine(of: slot)].insert(place) }
        let due = Due(at: slots[slot].entered + rules.interestWait, place: place)
        // His wait went by while he was asked for a match that fell through.
        if due.at <= now { return open(place) }
        let later = exclusive.reversed().prefix { due < $0 }.count
        exclusive.insert(due, at: exclusive.count - later)
    }

    private mutating func join(_ topic: UInt64, _ place: Line.Place) {
        guard let position = byInterest.position(of: topic) else { return byInterest.insert(topic, place.slot) }
        if byInterest[position] >= 0 {
            var line = Line()
            line.insert(self.place(of: byInterest[position]))
            byInterest[position] = ~lines.insert(line)
        }
        lines[~byInterest[position]].insert(place)
    }

    private func place(of slot: Int32) -> Line.Place { Line.Place(number: slots[slot].number, slot: slot) }

    /// Takes somebody out of everything that knows of him.
    @discardableResult
    private mutating func remove(_ slot: Int32) -> PoolEntry {
        let key = NumberIndex.key(slots[slot].entry.identity)
        let address = slots[slot].address
        let interests = slots[slot].entry.interests.count
        readAhead &+= byIdentity.touch(key) &+ perAddress.touch(address ?? 0) &+ UInt64(interests)
        if let position = byIdentity.position(of: key) { byIdentity.remove(at: position) }
        if let address { release(address) }
        if !unfinished.isEmpty { unfinished[slots[slot].number] = nil }
        slots[slot].number = 0
        if slots[slot].isQueued { leaveLines(slot) }
        // What the entry holds is let go now, not when the slot is used again.
        var entry = PoolEntry(identity: IdentityID(high: 0, low: 0))
        swap(&entry, &slots[slot].entry)
        slots.free(slot)
        return entry
    }

    private mutating func leaveLines(_ slot: Int32) {
        let (interests, mode) = (slots[slot].entry.interests, slots[slot].entry.mode)
        for interest in interests { leave(NumberIndex.topic(interest, mode)) }
        if slots[slot].isOpen { leave(line: openLine(of: slot)) }
    }

    private mutating func leave(_ topic: UInt64) {
        guard let position = byInterest.position(of: topic) else { return }
        let number = byInterest[position]
        if number < 0 {
            leave(line: ~number)
            guard lines[~number].isEmpty else { return }
            lines.free(~number)
        }
        byInterest.remove(at: position)
    }

    private mutating func leave(line: Int32) {
        lines[line].leave { [slots] in Self.isAlive($0, in: slots) }
    }

    private static func isAlive(_ place: Line.Place, in slots: Numbered<Slot>) -> Bool {
        slots[place.slot].number == place.number
    }

    private func isAlive(_ place: Line.Place) -> Bool { Self.isAlive(place, in: slots) }

    /// Those open from the start stand apart from those who waited for their interests in vain: so each line is appended
    /// to in the order of entry.
    private func openLine(of slot: Int32) -> Int32 {
        let isFromStart = slots[slot].entry.interests.isEmpty || rules.interestWait <= .zero
        return Self.openLine(slots[slot].entry.mode, fromStart: isFromStart)
    }

    private static func openLine(_ mode: ChatMode, fromStart: Bool) -> Int32 {
        (mode == .video ? 0 : 2) + (fromStart ? 0 : 1)
    }

    private mutating func open(_ place: Line.Place) {
        guard !slots[place.slot].isOpen else { return }
        slots[place.slot].isOpen = true
        unfinished[place.number] = nil
        lines[Self.openLine(slots[place.slot].entry.mode, fromStart: false)].insert(place)
    }

    private mutating func withdraw(_ identity: IdentityID, _ turn: inout Turn) {
        guard let slot = slot(of: identity) else { return }
        if let number = slots[slot].attempt { release(number, &turn) }
        remove(slot)
    }

    // MARK: Finding somebody

    private mutating func attemptAgain(_ slot: Int32, _ turn: inout Turn) {
        guard slots[slot].attempt == nil else { return }
        attempt(slot, NumberIndex.topics(of: slots[slot].entry), &turn)
    }

    private mutating func attempt(_ slot: Int32, _ topics: [UInt64], _ turn: inout Turn) {
        switch search(for: slot, topics, now: turn.now) {
        case .found(let candidate):
            let match = MatchID.random(using: &turn.random)
            let number = attempts.insert(Attempt(match: match, first: slot, second: candidate))
            byMatch.insert(match.low, number)
            slots[slot].attempt = number
            slots[candidate].attempt = number
            let (first, second) = (slots[slot].entry.identity, slots[candidate].entry.identity)
            turn.tell(.person(first, .reserve(match, with: second)))
            turn.tell(.person(second, .reserve(match, with: first)))
        case .retry(let at): retry(slot, at: at)
        case .nobody: break
        }
    }

    private mutating func retry(_ slot: Int32, at: Timestamp) {
        retries.insert(Due(at: at, place: place(of: slot)))
    }

    private enum Finding {
        case found(Int32)
        case retry(Timestamp)
        case nobody
    }

    private mutating func search(for slot: Int32, _ topics: [UInt64], now: Timestamp) -> Finding {
        let number = slots[slot].number
        let before = unfinished.isEmpty ? nil : unfinished.removeValue(forKey: number)
        var walk = walk(for: slot, topics, after: before?.probed ?? 0)
        var fallback = before?.fallback
        var probed: UInt64 = 0
        var probes = 0
        while let place = walk.next(in: lines) {
            guard place.slot != slot, isAlive(place), slots[place.slot].attempt == nil else { continue }
            guard probes < rules.candidatesPerAttempt else {
                unfinished[number] = Unfinished(probed: probed, fallback: fallback)
                return .retry(now + rules.retryInterval)
            }
            probes += 1
            probed = place.number
            if slots[slot].entry.isBlocked(with: slots[place.slot].entry) { continue }
            guard slots[slot].entry.justLeft(slots[place.slot].entry) else { return .found(place.slot) }
            fallback = fallback ?? place
        }
        return rematch(slot, with: fallback, now: now)
    }

    /// Two who just left each other and are alone: paired again when both have waited for `rematchWait`.
    private func rematch(_ slot: Int32, with fallback: Line.Place?, now: Timestamp) -> Finding {
        guard let fallback else { return .nobody }
        // Gone, or asked by another, since this walk met him: there may be another former partner, whom it passed over.
        guard isAlive(fallback), slots[fallback.slot].attempt == nil else { return .retry(now + rules.retryInterval) }
        let at = max(slots[slot].entered, slots[fallback.slot].entered) + rules.rematchWait
        return at <= now ? .found(fallback.slot) : .retry(at)
    }

    /// All in whose lines this person may find somebody.
    private func walk(for slot: Int32, _ topics: [UInt64], after number: UInt64) -> Walk {
        var walk = Walk(after: number, count: topics.count + (slots[slot].isOpen ? 2 : 0))
        for topic in topics {
            guard let found = byInterest[topic] else { continue }
            if found >= 0 { walk.add(place(of: found)) } else { walk.add(~found, in: lines) }
        }
        guard slots[slot].isOpen else { return walk }
        let mode = slots[slot].entry.mode
        walk.add(Self.openLine(mode, fromStart: true), in: lines)
        walk.add(Self.openLine(mode, fromStart: false), in: lines)
        return walk
    }

    // MARK: Both must agree

    /// The attempt for that match, if this person is in it, and which of the two he is.
    private func attempt(_ match: MatchID, of identity: IdentityID) -> (number: Int32, slot: Int32)? {
        guard let number = byMatch[match.low], attempts[number].match == match else { return nil }
        let (first, second) = (attempts[number].first, attempts[number].second)
        if slots[first].entry.identity == identity { return (number, first) }
        return slots[second].entry.identity == identity ? (number, second) : nil
    }

    private mutating func agreed(_ match: MatchID, _ identity: IdentityID, _ turn: inout Turn) {
        guard let (number, slot) = attempt(match, of: identity) else { return }
        guard let agreed = attempts[number].agreed, agreed != slot else { return attempts[number].agreed = slot }
        let attempt = end(number)
        let (first, second) = (remove(attempt.first), remove(attempt.second))
        turn.tell(.match(match, .begin(first.mode, first, second)))
    }

    private mutating func end(_ number: Int32) -> Attempt {
        let attempt = attempts[number]
        if let position = byMatch.position(of: attempt.match.low) { byMatch.remove(at: position) }
        attempts.free(number)
        return attempt
    }

    /// One is not free, or does not want to: out of the queue if he is not in it in truth; the other goes on.
    private mutating func refused(_ match: MatchID, _ identity: IdentityID, _ turn: inout Turn) {
        guard let (number, slot) = attempt(match, of: identity) else { return }
        // Whatever the reason (a block this queue has not heard of, or another engagement), these two are not tried again.
        slots[attempts[number].other(than: slot)].entry.excluded.insert(identity)
        release(number, &turn)
    }

    /// Both go on waiting, and look again at once: whoever came meanwhile passed over them.
    private mutating func release(_ number: Int32, _ turn: inout Turn) {
        let attempt = end(number)
        for slot in [attempt.first, attempt.second] {
            slots[slot].attempt = nil
            unfinished[slots[slot].number] = nil
            queue(slot, NumberIndex.topics(of: slots[slot].entry), now: turn.now)
            turn.tell(.person(slots[slot].entry.identity, .release(attempt.match)))
            retry(slot, at: turn.now)
        }
    }
}
