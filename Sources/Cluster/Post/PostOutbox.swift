/// Posts entries to other lives: numbers them, appends them to streams in Redis in the order in which they were posted, and posts
/// again what a failover of Redis may have lost.
///
/// Redis acknowledges before it replicates, so a failover can lose the newest entries. What was stored within the last 5 s is
/// therefore kept, and appended again to a Redis that took over; receivers drop what they have (``PostInbox``). If more was lost,
/// the receiver notices the gap and asks for a new series.
///
/// One command is under way at a time. It appends a batch of entries, all or none, so the order holds for all receivers together:
/// what a life posts because of an entry comes after that entry, everywhere.
public struct PostOutbox: Sendable {
    /// What the shell has to do.
    public enum Effect: Hashable, Sendable {
        /// Append these entries in this order, all or none, and pass on the answer with this number.
        case append([PostEntry], number: UInt64)
        /// Entries for this life were lost, in the one direction or the other. Treat what is on it as lost, and begin again with it.
        case lost(NodeTag)
    }

    /// The answer to an `append`.
    public enum Answer: Hashable, Sendable {
        /// All entries are stored.
        case stored
        /// The streams of these receivers are full, so nothing was stored.
        case full([NodeTag])
        /// These lives have ended, so nothing was stored. Entries for them are dropped.
        case ended([NodeTag])
        /// Nothing is known. The entries may be stored.
        case failed
    }

    /// The limits of memory and time.
    public struct Limits: Sendable {
        /// How long a stored entry is kept: longer than replicas lag behind.
        public var keptFor = Duration.seconds(5)
        /// How many bytes of stored entries are kept.
        public var kept = 16 << 20
        /// With more bytes that wait, ``isCongested`` is true.
        public var waiting = 4 << 20
        /// With more bytes that wait, those of the receiver with the newest entry are given up.
        public var maxWaiting = 64 << 20
        /// How many bytes a batch has at most. An entry that is larger is a batch of its own.
        public var batch = 256 << 10
        /// How many entries a batch has at most.
        public var batchCount = 100
        /// How long a receiver may leave its stream full before its entries are given up. A node that only cannot reach Redis keeps
        /// its lease and reads nothing, and must not stop the letters to all others.
        public var fullFor = Duration.seconds(5)
        /// How long nothing is posted to a receiver whose entries were given up because its stream was full.
        public var silence = Duration.seconds(30)
        /// The time until a refused or failed batch is tried again.
        public var retry = Duration.milliseconds(100)
        /// Creates the usual limits.
        public init() {}
    }

    /// An entry with the time at which it was posted, or posted again, and the time at which it was stored; nil before.
    private struct Item: Sendable {
        let entry: PostEntry
        var posted: Instant
        var stored: Instant?
    }

    private let limits: Limits
    /// The entries by the order in which they were posted. Those before ``next`` were stored and are kept for a failover.
    private var items: [UInt64: Item] = [:]
    private var oldest: UInt64 = 1
    /// The first item that is not stored.
    private var next: UInt64 = 1
    private var end: UInt64 = 1
    private var last: [NodeTag: PostPosition] = [:]
    /// The lives that have ended. Nothing is posted to them: their positions would begin again, and a position must not be sealed twice
    /// with different contents. A few bytes for each start of a node.
    private var over: Set<NodeTag> = []
    private var waitingSize = 0
    private var keptSize = 0
    private var isConnected = false
    /// The Redis to which entries were last appended.
    private var store: String?
    /// The batch that is under way: its number, and the item after its last one.
    private var open: (number: UInt64, end: UInt64)?
    private var lastNumber: UInt64 = 0
    private var retryAt: Instant?
    /// Since when the streams of these receivers have been full.
    private var fullSince: [NodeTag: Instant] = [:]
    /// Until when nothing is posted to these receivers.
    private var silentUntil: [NodeTag: Instant] = [:]
    /// Requests for a new series that are posted when the silence is over.
    private var silenced: [NodeTag: PostContent] = [:]

    /// Creates an outbox that is not connected.
    public init(_ limits: Limits = Limits()) { self.limits = limits }

    /// How many entries were posted again, because another Redis took over.
    public private(set) var repostedCount = 0

    /// When the oldest entry of the batch that is under way was posted; nil if no batch has this number.
    public func oldestPosted(inBatch number: UInt64) -> Instant? {
        guard let open, open.number == number else { return nil }
        // The first entry of a batch can have been dropped meanwhile.
        return (next..<open.end).lazy.compactMap { items[$0]?.posted }.first
    }

    /// Whether the node should read no more from its clients' sockets, because too much waits.
    public var isCongested: Bool { waitingSize > limits.waiting }

    /// When the shell must call ``tick(at:)``: to try again, or to forget what no longer has to be kept.
    public var nextWakeUp: Instant? {
        guard isConnected else { return nil }
        let next = retryAt ?? items[oldest]?.stored.map { $0 + limits.keptFor }
        return [next, silentUntil.values.min()].compactMap(\.self).min()
    }

    /// Posts an entry.
    public mutating func post(_ content: PostContent, to receiver: NodeTag, at now: Instant) -> [Effect] {
        guard !over.contains(receiver) else { return [] }
        guard silentUntil[receiver] == nil else {
            if content.isReset { silenced[receiver] = content }
            return []
        }
        var effects: [Effect] = []
        if waitingSize + content.size > limits.maxWaiting {
            let request = drop(receiver)
            beginSeries(to: receiver, with: request, at: now)
            effects.append(.lost(receiver))
        }
        enqueue(content, to: receiver, at: now)
        return effects + advance(at: now)
    }

    /// A connection was made. `store` identifies what that Redis remembers, as in ``Epoch/store``.
    public mutating func connected(store: String, at now: Instant) -> [Effect] {
        (isConnected, open, retryAt) = (true, nil, nil)
        if let former = self.store, former != store {
            postAgain(at: now)
            announce(at: now)
        }
        self.store = store
        return advance(at: now)
    }

    /// The connection was lost. What was under way is appended again, and receivers drop it if they have it.
    public mutating func disconnected() { (isConnected, open, retryAt) = (false, nil, nil) }

    /// Handles the answer to the `append` with this number.
    public mutating func answered(_ number: UInt64, _ answer: Answer, at now: Instant) -> [Effect] {
        guard let batch = open, batch.number == number else { return [] }
        open = nil
        switch answer {
        case .stored:
            markStored(until: batch.end, at: now)
            fullSince = [:]
        case .ended(let lives): for life in lives { ended(life) }
        case .full(let lives):
            let effects = lives.flatMap { giveUpIfFull($0, at: now) }
            fullSince = fullSince.filter { lives.contains($0.key) }
            guard effects.isEmpty else { return effects + advance(at: now) }
            retryAt = now + limits.retry
            return []
        case .failed:
            retryAt = now + limits.retry
            return []
        }
        return advance(at: now)
    }

    /// Tries again, and forgets what was stored long enough ago.
    public mutating func tick(at now: Instant) -> [Effect] {
        if let retryAt, now >= retryAt { self.retryAt = nil }
        let audible = silentUntil.filter { now >= $0.value }.keys.sorted { $0.rawValue < $1.rawValue }
        for life in audible {
            silentUntil[life] = nil
            if let request = silenced.removeValue(forKey: life) { enqueue(request, to: life, at: now) }
        }
        return audible.map(Effect.lost) + advance(at: now)
    }

    /// A receiver has noticed that entries of a series were lost on the way to it.
    public mutating func reset(by receiver: NodeTag, series: UInt32, at now: Instant) -> [Effect] {
        guard last[receiver]?.series == series else { return [] }
        let request = drop(receiver)
        beginSeries(to: receiver, with: request, at: now)
        return [.lost(receiver)] + advance(at: now)
    }

    /// A life has ended. Nothing is posted to it any more.
    public mutating func ended(_ life: NodeTag) {
        _ = drop(life)
        (last[life], fullSince[life], silentUntil[life], silenced[life]) = (nil, nil, nil, nil)
        over.insert(life)
    }

    // MARK: Parts

    private mutating func advance(at now: Instant) -> [Effect] {
        forget(at: now)
        guard isConnected, open == nil, retryAt == nil else { return [] }
        var (entries, size, index) = ([PostEntry](), 0, next)
        while index < end, entries.count < limits.batchCount {
            if let entry = items[index]?.entry {
                guard entries.isEmpty || size + entry.content.size <= limits.batch else { break }
                entries.append(entry)
                size += entry.content.size
            }
            index += 1
        }
        guard !entries.isEmpty else {
            next = index
            return []
        }
        lastNumber += 1
        open = (lastNumber, index)
        return [.append(entries, number: lastNumber)]
    }

    /// Notes that a receiver's stream is full. If it has been for too long, drops its entries and posts nothing to it for a while.
    private mutating func giveUpIfFull(_ life: NodeTag, at now: Instant) -> [Effect] {
        let since = fullSince[life] ?? now
        fullSince[life] = since
        guard now - since >= limits.fullFor else { return [] }
        silenced[life] = drop(life)
        beginSeries(to: life, at: now)
        fullSince[life] = nil
        silentUntil[life] = now + limits.silence
        return [.lost(life)]
    }

    private mutating func markStored(until index: UInt64, at now: Instant) {
        while next < index {
            if let size = items[next]?.entry.content.size {
                items[next]?.stored = now
                waitingSize -= size
                keptSize += size
            }
            next += 1
        }
    }

    /// Forgets stored entries that are older than a failover can lose, or more than can be kept. Without a connection, the Redis that
    /// stored them may be gone, so age does not count.
    private mutating func forget(at now: Instant) {
        while oldest < next {
            if let item = items[oldest] {
                let isOld = item.stored.map { now - $0 >= limits.keptFor } ?? false
                guard isOld && isConnected || keptSize > limits.kept else { return }
                keptSize -= item.entry.content.size
                items[oldest] = nil
            }
            oldest += 1
        }
    }

    /// Another Redis has taken over. It may lack what was stored in the one before.
    private mutating func postAgain(at now: Instant) {
        for index in oldest..<next {
            guard let item = items[index] else { continue }
            items[index]?.stored = nil
            items[index]?.posted = now
            repostedCount += 1
            keptSize -= item.entry.content.size
            waitingSize += item.entry.content.size
        }
        next = oldest
    }

    /// Posts an empty entry to everybody, so that they notice a gap even if nothing more is posted to them.
    private mutating func announce(at now: Instant) {
        for receiver in last.keys.sorted(by: { $0.rawValue < $1.rawValue }) where silentUntil[receiver] == nil {
            enqueue(.letters([]), to: receiver, at: now)
        }
    }

    private mutating func enqueue(_ content: PostContent, to receiver: NodeTag, at now: Instant) {
        var position = last[receiver] ?? PostPosition(series: 1, number: 0)
        position.number += 1
        last[receiver] = position
        items[end] = Item(entry: PostEntry(receiver: receiver, position: position, content: content), posted: now)
        end += 1
        waitingSize += content.size
    }

    /// Drops the entries for a receiver. Returns the newest request for a new series among them; nil if there is none.
    private mutating func drop(_ receiver: NodeTag) -> PostContent? {
        var request: PostContent?
        for index in oldest..<end {
            guard let item = items[index], item.entry.receiver == receiver else { continue }
            items[index] = nil
            if item.entry.content.isReset { request = item.entry.content }
            if index < next { keptSize -= item.entry.content.size } else { waitingSize -= item.entry.content.size }
        }
        return request
    }

    /// Begins a new series.
    ///
    /// - Parameter request: the request for a new series that was dropped with the former series. It is posted again, because ``PostInbox``
    ///   asks again only when the receiver posts something more. Until then, this life drops what the receiver has posted.
    private mutating func beginSeries(to receiver: NodeTag, with request: PostContent? = nil, at now: Instant) {
        last[receiver] = PostPosition(series: (last[receiver]?.series ?? 0) &+ 1, number: 0)
        if let request { enqueue(request, to: receiver, at: now) }
    }
}
