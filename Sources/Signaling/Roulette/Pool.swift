import Cluster
import Wire
import DequeModule
import HeapModule

/// The queue of the roulette. Decides who is matched with whom.
///
/// Owns only the order of waiting. The pool first reserves two people, and each person's state machine decides whether that
/// person is free. The pool then matches or releases both. A match is a separate state machine. The eligible person who has
/// waited longest is chosen first. During `interestWait`, only people with shared interests are eligible, and after that
/// everyone is. People who blocked each other are never matched. The previous partner is matched again only after `rematchWait`
/// and if no one else is eligible.
/// Invariant: if two waiting people may be matched, a retry is scheduled for at least one of them.
///
/// A search does not visit people who cannot match. It walks only the queues of the person's own interests and, once the person
/// is open to anyone, the queues of open people. It checks at most `candidatesPerAttempt` people, and a retry checks the rest.
/// A person who finds a partner on entering joins no queue unless that match fails.
public struct Pool: Machine {
    /// A waiting person.
    struct Slot: Sendable {
        /// The person's number in the order of entry; 0 if the slot is unused.
        var number: UInt64
        var entered: Timestamp
        /// The number of the attempted match for which this person is reserved; nil if there is none.
        var attempt: Int32?
        /// Whether this person may be matched with people who share no interest, because the person has none, or has
        /// waited for `interestWait`.
        var isOpen: Bool
        /// Whether this person is in the queues. A person for whom a partner was found on entering is not.
        var isQueued = false
        /// The key of the address for which this person is counted; nil if the address is unknown.
        var address: UInt64?
        var entry: PoolEntry
    }

    /// An attempted match, which both people must still accept.
    private struct Attempt: Sendable {
        var match: MatchID
        /// The slot of the person who searched.
        var first: Int32
        /// The slot of the candidate that was found.
        var second: Int32
        /// The slot of the person who accepted first; nil if neither has accepted yet.
        var agreed: Int32?

        func other(than slot: Int32) -> Int32 { slot == first ? second : first }
    }

    /// The progress of a search that has more candidates than one attempt may check.
    private struct Unfinished: Sendable {
        /// Candidates up to this number in the order of entry have been checked.
        var probed: UInt64
        /// The queue place of a previous partner, who is matched again if no other candidate is found; nil if the
        /// search has found none so far.
        var fallback: WaitQueue.Place?
    }

    /// A deadline for the person at a queue place: when to stop waiting for shared interests, or when to retry the search.
    private struct Due: Comparable, Sendable {
        var at: Timestamp
        var place: WaitQueue.Place
        static func < (left: Due, right: Due) -> Bool { (left.at, left.place.number) < (right.at, right.place.number) }
        static func == (left: Due, right: Due) -> Bool { left.at == right.at && left.place == right.place }
    }

    private var slots = Numbered<Slot>()
    private var byIdentity = NumberIndex()
    /// Maps the key of each address to the number of people waiting from it.
    private var perAddress = NumberIndex()
    private var attempts = Numbered<Attempt>()
    private var byMatch = NumberIndex()
    /// Until when the two people of each attempt may answer, in the order of the attempts. Only in a cluster, where the
    /// node of one of them can die: without one, both answer at once.
    private var answerable: Deque<(until: Timestamp, match: MatchID)> = []
    private var unfinished: [UInt64: Unfinished] = [:]

    private var queues = Numbered<WaitQueue>()
    /// The people waiting with each interest. The value is the slot if only one person has the interest (the common case), and
    /// otherwise the bitwise complement of a queue's number.
    private var byInterest = NumberIndex()

    /// The people who are still waiting for shared interests, and when each wait ends. All waits are equally long, so the
    /// people are in the order of entry.
    private var exclusive: Deque<Due> = []
    private var retries = Heap<Due>()
    private var lastNumber: UInt64 = 0
    /// Collects the results of prefetching, so that the compiler keeps the reads. The value has no meaning. To handle
    /// an event, the pool first reads all memory that it will need. With a million people waiting, each access misses
    /// the cache, and the processor can overlap these misses only if the accesses do not depend on each other.
    private var readAhead: UInt64 = 0
    private let rules: Rules

    public init(rules: Rules) {
        self.rules = rules
        // For each chat mode, create two queues of people who are open to anyone (see `openQueue`).
        for _ in 0..<2 * ChatMode.allCases.count { _ = queues.insert(WaitQueue()) }
    }

    public var waitingCount: Int { slots.count }

    /// The waiting people in the order of entry, for tests.
    public var waitingIdentities: [IdentityID] { waiting { _ in true }.map(\.identity) }

    /// Returns the waiting people on nodes for which a condition is true, in the order of entry. Visits all people, so use it only when a
    /// node or the hall is lost.
    func waiting(onNodes isIncluded: (NodeTag?) -> Bool) -> [PoolEntry] {
        slots.all.filter { $0.number > 0 && isIncluded($0.entry.node) }.sorted { $0.number < $1.number }.map(\.entry)
    }

    /// Returns the node of a waiting person; nil if the person is not waiting, or without a cluster.
    func node(of identity: IdentityID) -> NodeTag? { slot(of: identity).flatMap { slots[$0].entry.node } }

    public var nextTimeout: Timestamp? {
        var due = retries.min?.at
        if let first = exclusive.first?.at { due = due.map { min($0, first) } ?? first }
        if let first = answerable.first?.until { due = due.map { min($0, first) } ?? first }
        return due
    }

    public mutating func handle(_ event: PoolEvent, _ context: inout Context) {
        switch event {
        case .enter(let entry): enter(entry, &context)
        case .withdraw(let identity): withdraw(identity, &context)
        case .reserved(let match, let identity): agreed(match, identity, &context)
        case .refused(let match, let identity): refused(match, identity, &context)
        case .exclude(let identity, let other):
            if let slot = slot(of: identity) { slots[slot].entry.excluded.insert(other) }
        case .count(let client, let re, let others):
            let count = RouletteNotice.Count(re: re, online: others.clients, waiting: waitingCount + others.waiting)
            context.send(.roulette(.count(count)), to: client)
        }
    }

    public mutating func handleTimeout(_ context: inout Context) {
        while let first = answerable.first, first.until <= context.now {
            answerable.removeFirst()
            if let number = number(of: first.match) { expire(number, &context) }
        }
        while let due = exclusive.first, due.at <= context.now {
            exclusive.removeFirst()
            guard isAlive(due.place) else { continue }
            open(due.place)
            attemptAgain(due.place.slot, &context)
        }
        while let due = retries.min, due.at <= context.now {
            retries.removeMin()
            guard isAlive(due.place) else { continue }
            attemptAgain(due.place.slot, &context)
        }
    }

    private func slot(of identity: IdentityID) -> Int32? {
        byIdentity[NumberIndex.key(identity)].flatMap { slots[$0].entry.identity == identity ? $0 : nil }
    }

    // MARK: Entering and leaving

    private mutating func enter(_ entry: PoolEntry, _ context: inout Context) {
        let key = NumberIndex.key(entry.identity)
        let address = entry.address.isEmpty ? nil : NumberIndex.key(entry.address)
        let topics = NumberIndex.topics(of: entry)
        readAhead &+= byIdentity.touch(key) &+ perAddress.touch(address ?? 0) &+ byInterest.touch(topics.first ?? 0)
        if byIdentity[key] != nil {
            // The person has moved to another node. The former node's letter that withdraws its entry may be in transit.
            guard let former = self.slot(of: entry.identity), slots[former].entry.node != entry.node else { return }
            withdraw(entry.identity, &context)
        }
        guard admit(from: address) else { return context.tell(entry.identity, .queueFull, at: entry.node) }
        lastNumber += 1
        let isOpen = entry.interests.isEmpty || rules.interestWait <= .zero
        let slot = slots.insert(
            Slot(number: lastNumber, entered: context.now, isOpen: isOpen, address: address, entry: entry))
        byIdentity.insert(key, slot)
        attempt(slot, topics, &context)
        if slots[slot].attempt == nil { queue(slot, topics, now: context.now) }
    }

    /// Counts another person from this address. Returns false if the limit per address is reached.
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

    /// Adds a person to the queues, where others can find them.
    private mutating func queue(_ slot: Int32, _ topics: [UInt64], now: Timestamp) {
        guard !slots[slot].isQueued else { return }
        slots[slot].isQueued = true
        let place = place(of: slot)
        for topic in topics { join(topic, place) }
        if slots[slot].isOpen { return queues[openQueue(of: slot)].insert(place) }
        let due = Due(at: slots[slot].entered + rules.interestWait, place: place)
        // Open the person to anyone now if the wait for shared interests ended while they were reserved for a match
        // that failed.
        if due.at <= now { return open(place) }
        let later = exclusive.reversed().prefix { due < $0 }.count
        exclusive.insert(due, at: exclusive.count - later)
    }

    private mutating func join(_ topic: UInt64, _ place: WaitQueue.Place) {
        guard let position = byInterest.position(of: topic) else { return byInterest.insert(topic, place.slot) }
        if byInterest[position] >= 0 {
            var queue = WaitQueue()
            queue.insert(self.place(of: byInterest[position]))
            byInterest[position] = ~queues.insert(queue)
        }
        queues[~byInterest[position]].insert(place)
    }

    private func place(of slot: Int32) -> WaitQueue.Place { WaitQueue.Place(number: slots[slot].number, slot: slot) }

    /// Removes a person from the pool and returns their entry.
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
        if slots[slot].isQueued { leaveQueues(slot) }
        // Release the entry's contents now, not when the slot is reused.
        var entry = PoolEntry(identity: IdentityID(high: 0, low: 0))
        swap(&entry, &slots[slot].entry)
        slots.free(slot)
        return entry
    }

    private mutating func leaveQueues(_ slot: Int32) {
        let (interests, mode) = (slots[slot].entry.interests, slots[slot].entry.mode)
        for interest in interests { leave(NumberIndex.topic(interest, mode)) }
        if slots[slot].isOpen { leave(queue: openQueue(of: slot)) }
    }

    private mutating func leave(_ topic: UInt64) {
        guard let position = byInterest.position(of: topic) else { return }
        let number = byInterest[position]
        if number < 0 {
            leave(queue: ~number)
            guard queues[~number].isEmpty else { return }
            queues.free(~number)
        }
        byInterest.remove(at: position)
    }

    private mutating func leave(queue: Int32) {
        queues[queue].leave { [slots] in Self.isAlive($0, in: slots) }
    }

    private static func isAlive(_ place: WaitQueue.Place, in slots: Numbered<Slot>) -> Bool {
        slots[place.slot].number == place.number
    }

    private func isAlive(_ place: WaitQueue.Place) -> Bool { Self.isAlive(place, in: slots) }

    /// Returns this slot's queue of people who are open to anyone. People who were open from the start and people who first
    /// waited for shared interests have separate queues, because that way appending keeps each queue in the order of entry.
    private func openQueue(of slot: Int32) -> Int32 {
        let isFromStart = slots[slot].entry.interests.isEmpty || rules.interestWait <= .zero
        return Self.openQueue(slots[slot].entry.mode, fromStart: isFromStart)
    }

    private static func openQueue(_ mode: ChatMode, fromStart: Bool) -> Int32 {
        (mode == .video ? 0 : 2) + (fromStart ? 0 : 1)
    }

    private mutating func open(_ place: WaitQueue.Place) {
        guard !slots[place.slot].isOpen else { return }
        slots[place.slot].isOpen = true
        unfinished[place.number] = nil
        queues[Self.openQueue(slots[place.slot].entry.mode, fromStart: false)].insert(place)
    }

    private mutating func withdraw(_ identity: IdentityID, _ context: inout Context) {
        guard let slot = slot(of: identity) else { return }
        if let number = slots[slot].attempt { release(number, &context) }
        remove(slot)
    }

    // MARK: Finding a partner

    private mutating func attemptAgain(_ slot: Int32, _ context: inout Context) {
        guard slots[slot].attempt == nil else { return }
        attempt(slot, NumberIndex.topics(of: slots[slot].entry), &context)
    }

    private mutating func attempt(_ slot: Int32, _ topics: [UInt64], _ context: inout Context) {
        switch search(for: slot, topics, now: context.now) {
        case .found(let candidate):
            let match: MatchID = context.newID(at: context.tag == nil ? nil : home(of: slot, and: candidate))
            let number = attempts.insert(Attempt(match: match, first: slot, second: candidate))
            byMatch.insert(match.low, number)
            if context.tag != nil { answerable.append((context.now + rules.reservationTime, match)) }
            slots[slot].attempt = number
            slots[candidate].attempt = number
            let (first, second) = (slots[slot].entry.identity, slots[candidate].entry.identity)
            let (firstNode, secondNode) = (slots[slot].entry.node, slots[candidate].entry.node)
            context.tell(first, .reserve(match, with: second, at: secondNode), at: firstNode)
            context.tell(second, .reserve(match, with: first, at: firstNode), at: secondNode)
        case .retry(let at): retry(slot, at: at)
        case .nobody: break
        }
    }

    /// The node for the match of two people: the node of the person who has waited longer. If a legacy client is among them, the node of
    /// its session.
    private func home(of slot: Int32, and candidate: Int32) -> NodeTag? {
        for slot in [slot, candidate] where slots[slot].entry.home != nil { return slots[slot].entry.node }
        return slots[slots[slot].number < slots[candidate].number ? slot : candidate].entry.node
    }

    private mutating func retry(_ slot: Int32, at: Timestamp) {
        retries.insert(Due(at: at, place: place(of: slot)))
    }

    /// The result of a search.
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
        while let place = walk.next(in: queues) {
            guard place.slot != slot, isAlive(place), slots[place.slot].attempt == nil else { continue }
            guard probes < rules.candidatesPerAttempt else {
                unfinished[number] = Unfinished(probed: probed, fallback: fallback)
                return .retry(now + rules.retryInterval)
            }
            probes += 1
            probed = place.number
            if slots[slot].entry.isBlocked(with: slots[place.slot].entry) { continue }
            guard slots[slot].entry.isFormerPartner(of: slots[place.slot].entry) else { return .found(place.slot) }
            fallback = fallback ?? place
        }
        return rematch(slot, with: fallback, now: now)
    }

    /// Returns the previous partner if both people have waited for `rematchWait`, otherwise when to retry. Returns
    /// `nobody` if the search found no previous partner. Called if the search found no one else.
    private func rematch(_ slot: Int32, with fallback: WaitQueue.Place?, now: Timestamp) -> Finding {
        guard let fallback else { return .nobody }
        // The previous partner may have left or been reserved since the search found them. There may be another
        // previous partner, so retry.
        guard isAlive(fallback), slots[fallback.slot].attempt == nil else { return .retry(now + rules.retryInterval) }
        let at = max(slots[slot].entered, slots[fallback.slot].entered) + rules.rematchWait
        return at <= now ? .found(fallback.slot) : .retry(at)
    }

    /// Returns a walk over all queues in which this person may find a partner.
    private func walk(for slot: Int32, _ topics: [UInt64], after number: UInt64) -> Walk {
        var walk = Walk(after: number, count: topics.count + (slots[slot].isOpen ? 2 : 0))
        for topic in topics {
            guard let found = byInterest[topic] else { continue }
            if found >= 0 { walk.add(place(of: found)) } else { walk.add(~found, in: queues) }
        }
        guard slots[slot].isOpen else { return walk }
        let mode = slots[slot].entry.mode
        walk.add(Self.openQueue(mode, fromStart: true), in: queues)
        walk.add(Self.openQueue(mode, fromStart: false), in: queues)
        return walk
    }

    // MARK: Agreement of both people

    /// Returns the number of the attempt for this match and the person's slot, or nil if this person is not in it.
    private func attempt(_ match: MatchID, of identity: IdentityID) -> (number: Int32, slot: Int32)? {
        guard let number = number(of: match) else { return nil }
        let (first, second) = (attempts[number].first, attempts[number].second)
        if slots[first].entry.identity == identity { return (number, first) }
        return slots[second].entry.identity == identity ? (number, second) : nil
    }

    private func number(of match: MatchID) -> Int32? {
        byMatch[match.low].flatMap { attempts[$0].match == match ? $0 : nil }
    }

    private mutating func agreed(_ match: MatchID, _ identity: IdentityID, _ context: inout Context) {
        guard let (number, slot) = attempt(match, of: identity) else { return }
        guard let agreed = attempts[number].agreed, agreed != slot else { return attempts[number].agreed = slot }
        let attempt = end(number)
        var (first, second) = (remove(attempt.first), remove(attempt.second))
        // The match, which may be on another node, does not need them.
        (first.excluded, second.excluded) = ([], [])
        context.tell(.match(match, .begin(first.mode, first, second)))
    }

    private mutating func end(_ number: Int32) -> Attempt {
        let attempt = attempts[number]
        if let position = byMatch.position(of: attempt.match.low) { byMatch.remove(at: position) }
        attempts.free(number)
        while let first = answerable.first, self.number(of: first.match) == nil { answerable.removeFirst() }
        return attempt
    }

    /// Handles a match that one of the two people refused. Both keep waiting.
    private mutating func refused(_ match: MatchID, _ identity: IdentityID, _ context: inout Context) {
        guard let (number, slot) = attempt(match, of: identity) else { return }
        // Do not propose these two people to each other again. The person may have refused because of a block that the
        // pool has not received yet, or because they are busy.
        slots[attempts[number].other(than: slot)].entry.excluded.insert(identity)
        release(number, &context)
    }

    /// Handles a match that was not answered in time. A person who did not answer may be gone, so their entry is removed. If they are still
    /// connected, they enter again.
    private mutating func expire(_ number: Int32, _ context: inout Context) {
        let attempt = attempts[number]
        release(number, &context)
        for slot in [attempt.first, attempt.second] where slot != attempt.agreed {
            let silent = remove(slot)
            context.tell(silent.identity, .hallClosed, at: silent.node)
        }
    }

    /// Ends an attempted match that failed. Both people keep waiting and search again immediately, because people who
    /// entered in the meantime could not be matched with them.
    private mutating func release(_ number: Int32, _ context: inout Context) {
        let attempt = end(number)
        for slot in [attempt.first, attempt.second] {
            slots[slot].attempt = nil
            unfinished[slots[slot].number] = nil
            queue(slot, NumberIndex.topics(of: slots[slot].entry), now: context.now)
            context.tell(slots[slot].entry.identity, .release(attempt.match), at: slots[slot].entry.node)
            retry(slot, at: context.now)
        }
    }
}
