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
        case free
        case waiting
        /// Asked for a match that both must still agree to.
        case reserving(MatchID)
    }

    struct Slot: Sendable {
        var entry: PoolEntry
        var number: UInt64
        var entered: Timestamp
        var state: State
        /// Takes anybody: has no interests, or waited for them long enough.
        var isOpen: Bool
        /// Candidates up to this number were probed already in the present attempt.
        var probed: UInt64 = 0
        /// A former partner met on the way, in case nobody else turns up.
        var fallback: Line.Place?
    }

    private struct Attempt: Sendable {
        var first: Int32
        var second: Int32
        var agreed: IdentityID?
    }

    private struct Interest: Hashable, Sendable {
        var mode: ChatMode
        var text: String
    }

    private struct Due: Comparable, Sendable {
        var at: Timestamp
        var place: Line.Place
        static func < (left: Due, right: Due) -> Bool { (left.at, left.place.number) < (right.at, right.place.number) }
        static func == (left: Due, right: Due) -> Bool { left.at == right.at && left.place == right.place }
    }

    /// Who of an interest meets first; then those open to anybody: with no interests, and with interests waited for in
    /// vain. Two lines, because each is appended to in the order of entry only if kept apart.
    private var interests: [Interest: Line] = [:]
    private var openFromStart: [ChatMode: Line] = [:]
    private var openAfterWait: [ChatMode: Line] = [:]

    private var slots: ContiguousArray<Slot> = []
    private var freeSlots: [Int32] = []
    private var byIdentity: [IdentityID: Int32] = [:]
    private var perAddress: [String: Int] = [:]
    private var attempts: [MatchID: Attempt] = [:]
    /// Whose exclusive wait ends when: a constant wait, so the order of entry is the order of ending.
    private var exclusive: Deque<Due> = []
    private var retries = Heap<Due>()
    private var lastNumber: UInt64 = 0
    private let rules: Rules

    public init(rules: Rules) { self.rules = rules }

    public var waitingCount: Int { byIdentity.count }

    /// For tests and invariants: who waits, oldest first.
    public var waitingIdentities: [IdentityID] {
        byIdentity.values.map { slots[Int($0)] }.sorted { $0.number < $1.number }.map(\.entry.identity)
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
            if let slot = byIdentity[identity] { slots[Int(slot)].entry.excluded.insert(other) }
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
        guard byIdentity[entry.identity] == nil else { return }
        let fromAddress = perAddress[entry.address, default: 0]
        guard entry.address.isEmpty || fromAddress < rules.entriesPerAddress else {
            return effects.tell(.person(entry.identity, .queueFull))
        }
        if !entry.address.isEmpty { perAddress[entry.address] = fromAddress + 1 }
        lastNumber += 1
        let isOpen = entry.interests.isEmpty || rules.interestWait <= .zero
        let slot = occupy(Slot(entry: entry, number: lastNumber, entered: now, state: .waiting, isOpen: isOpen))
        byIdentity[entry.identity] = slot
        let place = Line.Place(number: lastNumber, slot: slot)
        for text in entry.interests { interests[Interest(mode: entry.mode, text: text), default: Line()].append(place) }
        if isOpen {
            openFromStart[entry.mode, default: Line()].append(place)
        } else {
            exclusive.append(Due(at: now + rules.interestWait, place: place))
        }
        attempt(slot, now: now, using: &generator, into: &effects)
    }

    private mutating func occupy(_ slot: Slot) -> Int32 {
        if let free = freeSlots.popLast() {
            slots[Int(free)] = slot
            return free
        }
        slots.append(slot)
        return Int32(slots.count - 1)
    }

    /// Takes the entry out of everything that knows of it.
    private mutating func remove(_ slot: Int32) {
        let removed = slots[Int(slot)]
        slots[Int(slot)].state = .free
        byIdentity[removed.entry.identity] = nil
        if !removed.entry.address.isEmpty {
            let left = perAddress[removed.entry.address, default: 1] - 1
            perAddress[removed.entry.address] = left > 0 ? left : nil
        }
        for text in removed.entry.interests { leave(Interest(mode: removed.entry.mode, text: text)) }
        if removed.isOpen {
            if removed.entry.interests.isEmpty || rules.interestWait <= .zero {
                openFromStart[removed.entry.mode]?.leave { [slots] in Self.isAlive($0, in: slots) }
            } else {
                openAfterWait[removed.entry.mode]?.leave { [slots] in Self.isAlive($0, in: slots) }
            }
        }
        // What the entry holds is let go now, not when the slot is used again.
        slots[Int(slot)].entry = PoolEntry(identity: removed.entry.identity)
        slots[Int(slot)].number = 0
        freeSlots.append(slot)
    }

    private mutating func leave(_ interest: Interest) {
        guard let index = interests.index(forKey: interest) else { return }
        interests.values[index].leave { [slots] in Self.isAlive($0, in: slots) }
        if interests.values[index].isEmpty { interests.remove(at: index) }
    }

    private static func isAlive(_ place: Line.Place, in slots: ContiguousArray<Slot>) -> Bool {
        let slot = slots[Int(place.slot)]
        return slot.number == place.number && slot.state != .free
    }

    private func isAlive(_ place: Line.Place) -> Bool { Self.isAlive(place, in: slots) }

    private mutating func open(_ place: Line.Place) {
        let index = Int(place.slot)
        guard !slots[index].isOpen else { return }
        slots[index].isOpen = true
        slots[index].probed = 0
        openAfterWait[slots[index].entry.mode, default: Line()].append(place)
    }

    private mutating func withdraw(_ identity: IdentityID, now: Timestamp, into effects: inout [Effect]) {
        guard let slot = byIdentity[identity] else { return }
        if case .reserving(let match) = slots[Int(slot)].state { release(match, now: now, into: &effects) }
        remove(slot)
    }

    // MARK: Finding somebody

    private mutating func attempt(
        _ slot: Int32, now: Timestamp, using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        guard slots[Int(slot)].state == .waiting else { return }
        switch search(for: slot, now: now) {
        case .found(let candidate):
            let match = MatchID.random(using: &generator)
            attempts[match] = Attempt(first: slot, second: candidate, agreed: nil)
            slots[Int(slot)].state = .reserving(match)
            slots[Int(candidate)].state = .reserving(match)
            let (first, second) = (slots[Int(slot)].entry.identity, slots[Int(candidate)].entry.identity)
            effects.tell(.person(first, .reserve(match, with: second)))
            effects.tell(.person(second, .reserve(match, with: first)))
        case .retry(let at): retry(slot, at: at)
        case .nobody: break
        }
    }

    private mutating func retry(_ slot: Int32, at: Timestamp) {
        retries.insert(Due(at: at, place: .init(number: slots[Int(slot)].number, slot: slot)))
    }

    private enum Finding {
        case found(Int32)
        case retry(Timestamp)
        case nobody
    }

    private mutating func search(for slot: Int32, now: Timestamp) -> Finding {
        let seeker = slots[Int(slot)]
        var walk = Walk(lines(for: seeker), after: seeker.probed)
        var fallback = seeker.fallback
        var probes = 0
        while let place = walk.next() {
            guard place.slot != slot, isAlive(place), slots[Int(place.slot)].state == .waiting else { continue }
            guard probes < rules.candidatesPerAttempt else {
                slots[Int(slot)].fallback = fallback
                return .retry(now + rules.retryInterval)
            }
            probes += 1
            slots[Int(slot)].probed = place.number
            let candidate = slots[Int(place.slot)].entry
            if seeker.entry.isBlocked(with: candidate) { continue }
            if seeker.entry.justLeft(candidate) {
                fallback = fallback ?? place
            } else {
                return .found(place.slot)
            }
        }
        slots[Int(slot)].probed = 0
        slots[Int(slot)].fallback = nil
        return rematch(seeker, with: fallback, now: now)
    }

    /// Two who just left each other and are alone: paired again when both have waited for `rematchWait`.
    private func rematch(_ seeker: Slot, with fallback: Line.Place?, now: Timestamp) -> Finding {
        guard let fallback, isAlive(fallback), slots[Int(fallback.slot)].state == .waiting else { return .nobody }
        let at = max(seeker.entered, slots[Int(fallback.slot)].entered) + rules.rematchWait
        return at <= now ? .found(fallback.slot) : .retry(at)
    }

    private func lines(for seeker: Slot) -> [Line] {
        var lines: [Line] = []
        for text in seeker.entry.interests {
            if let line = interests[Interest(mode: seeker.entry.mode, text: text)] { lines.append(line) }
        }
        if seeker.isOpen {
            if let line = openFromStart[seeker.entry.mode] { lines.append(line) }
            if let line = openAfterWait[seeker.entry.mode] { lines.append(line) }
        }
        return lines
    }

    /// Several lines as one, in the order of entry, each place once.
    private struct Walk {
        private let lines: [Line]
        private var indices: [Int]
        private var last: UInt64

        init(_ lines: [Line], after number: UInt64) {
            self.lines = lines
            indices = lines.map { $0.index(after: number) }
            last = number
        }

        mutating func next() -> Line.Place? {
            var best: Line.Place?
            for index in lines.indices {
                while let place = lines[index].place(at: indices[index]) {
                    if place.number > last {
                        if best.map({ place.number < $0.number }) ?? true { best = place }
                        break
                    }
                    indices[index] += 1
                }
            }
            if let best { last = best.number }
            return best
        }
    }

    // MARK: Both must agree

    private mutating func agreed(_ match: MatchID, _ identity: IdentityID, into effects: inout [Effect]) {
        guard let attempt = attempts[match] else { return }
        guard let other = attempt.agreed, other != identity else {
            attempts[match]?.agreed = identity
            return
        }
        attempts[match] = nil
        let (first, second) = (slots[Int(attempt.first)].entry, slots[Int(attempt.second)].entry)
        remove(attempt.first)
        remove(attempt.second)
        effects.tell(.match(match, .begin(first.mode, first, second)))
    }

    /// One is not free, or does not want to: out of the queue if he is not in it in truth; the other goes on.
    private mutating func refused(
        _ match: MatchID, _ identity: IdentityID, now: Timestamp, into effects: inout [Effect]
    ) {
        guard let attempt = attempts[match] else { return }
        let other = slots[Int(attempt.first)].entry.identity == identity ? attempt.second : attempt.first
        let refuser = other == attempt.first ? attempt.second : attempt.first
        // Whatever the reason (a block this queue has not heard of, or another engagement), these two are not tried again.
        slots[Int(other)].entry.excluded.insert(identity)
        release(match, now: now, into: &effects)
        slots[Int(refuser)].probed = 0
    }

    /// Both go on waiting, and look again at once: whoever came meanwhile passed over them.
    private mutating func release(_ match: MatchID, now: Timestamp, into effects: inout [Effect]) {
        guard let attempt = attempts.removeValue(forKey: match) else { return }
        for slot in [attempt.first, attempt.second] {
            slots[Int(slot)].state = .waiting
            slots[Int(slot)].probed = 0
            effects.tell(.person(slots[Int(slot)].entry.identity, .release(match)))
            retry(slot, at: now)
        }
    }
}
