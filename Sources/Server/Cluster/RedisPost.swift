import Cluster
import Logging
import NIOCore
import Redis
import Signaling

/// Posts letters to other lives through streams in Redis, and reads the stream of this life. Used on the event loop of the Redis
/// client.
///
/// It contains no rules. ``PostOutbox`` numbers the entries and appends them again to a Redis that took over, ``PostInbox`` accepts
/// each entry once and in order, and ``PostSeal`` refuses what no node with the project's secret has posted.
/// Invariant: letters of one sender keep their order. Letters of different senders keep it too, except that those of a life of which
/// this node is not sure wait, and others overtake them.
final class RedisPost {
    /// Something that another life has caused here.
    enum Received: Equatable {
        case letter(Letter, from: NodeTag)
        /// Letters to or from this life were lost. Both sides begin again.
        case lost(NodeTag)
    }

    /// What has happened since the start, for metrics, tests and logs.
    struct Figures: Equatable {
        /// Letters that were posted.
        var posted = 0
        /// Letters that have no form for other nodes, and were dropped.
        var refused = 0
        /// Letters that were received.
        var received = 0
        /// Entries that were not sealed by their sender for this life.
        var forged = 0
        /// Letters that this release cannot read.
        var unreadable = 0
        /// How often letters to or from another life were lost.
        var losses = 0
    }

    /// The limits, which tests lower.
    struct Settings {
        var outbox = PostOutbox.Limits()
        /// See ``PostScripts/maxLength``.
        var maxLength = PostScripts.maxLength
        /// With more bytes of entries that are kept until the lives of their senders are clear, nothing more is read.
        var maxKept = 16 << 20
    }

    /// An entry that was opened.
    private struct Opened {
        let sender: NodeTag
        let position: PostPosition
        let content: PostContent
        /// When this node read it.
        let heard: Cluster.Instant

        var isReset: Bool { if case .reset = content { true } else { false } }
        var size: Int { if case .letters(let bytes) = content { bytes.count } else { 0 } }
    }

    /// Time for Redis to answer. After that, the entries are appended again.
    private static let answerTime = Duration.seconds(2)
    /// How many entries are read at a time.
    private static let readCount = 100
    /// How long a read waits for an entry.
    private static let readTime = Duration.seconds(1)
    /// The pause after a read that failed.
    private static let readPause = TimeAmount.milliseconds(100)
    /// The time between two lines in the log about forged entries.
    private static let warningInterval = Duration.seconds(60)

    let tag: NodeTag
    private let redis: any RedisClient
    private let stream: String
    private let settings: Settings
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let clock: () -> Cluster.Instant
    private var seals: PostSeals
    private var outbox: PostOutbox
    private var inbox = PostInbox()
    private(set) var figures = Figures()

    /// What is known of a life; see ``Lives/standing(of:heard:)``.
    var standing: (NodeTag, Cluster.Instant) -> Lives.Standing = { _, _ in .unclear }
    /// Gets what was received. `handled` must be called when the rules have handled all of it, and `carriedOut` when its effects are
    /// carried out.
    var receive: (_ items: [Received], _ handled: @escaping () -> Void, _ carriedOut: @escaping () -> Void) -> Void = {
        $1()
        $2()
    }
    /// Called when ``isCongested`` has become false.
    var relieved: () -> Void = {}
    /// Called for each batch that Redis has stored, with the time since its oldest entry was posted.
    var stored: (Duration) -> Void = { _ in }

    /// The connection on which entries are appended; nil while there is none.
    private var connection: UInt64?
    /// The Redis from which this life reads.
    private var store: String?
    /// Counts the stores, so that what was read from another one is ignored.
    private var generation = 0
    /// The id of the last entry that was read.
    private var cursor = "0"
    private var isReading = false
    /// Whether the rules have not handled the last entries. Nothing is read meanwhile, so that Redis keeps what is too much.
    private var isHandling = false
    /// Letters that the current turn has posted. Those that follow each other to one life share entries.
    private var pending: [(receiver: NodeTag, packer: LetterPacker)] = []
    private var willFlush = false
    private var unpackers: [NodeTag: LetterUnpacker] = [:]
    /// Entries of lives that may have ended, in their order.
    private var kept: [NodeTag: [Opened]] = [:]
    private var keptSize = 0
    private var timer: Scheduled<Void>?
    private var wasCongested = false
    private var warnedAt: Cluster.Instant?
    private var hasStopped = false
    /// The entries in the stream of this life when Redis was last asked; nil if it has not answered.
    private(set) var streamLength: Int?
    private var isMeasuring = false

    /// - Parameters:
    ///   - tag: this life.
    ///   - eventLoop: that of the client.
    ///   - clock: a monotonic clock, the same as that of ``ClusterNode``.
    init(
        _ redis: any RedisClient, of tag: NodeTag, secrets: SealingSecrets, settings: Settings = Settings(),
        eventLoop: any EventLoop, logger: Logger, clock: @escaping () -> Cluster.Instant
    ) {
        (self.redis, self.tag, self.settings) = (redis, tag, settings)
        seals = PostSeals(of: tag, secrets)
        (self.eventLoop, self.logger, self.clock) = (eventLoop, logger, clock)
        stream = PostScripts.streamKey(of: tag)
        outbox = PostOutbox(settings.outbox)
    }

    /// Entries that were dropped because they had been received before, or because their sender's life is over.
    var dropped: Int { inbox.dropped }
    /// Entries that are kept until the lives of their senders are clear.
    var keptCount: Int { kept.values.reduce(0) { $0 + $1.count } }
    /// Entries that were appended again, because another Redis took over.
    var repostedCount: Int { outbox.repostedCount }
    /// Whether there is a connection to a Redis that can be used.
    var isConnected: Bool { connection != nil }
    /// Whether Redis has refused this life, because it is over. The node notices that when it renews its lease.
    private(set) var isFenced = false
    /// Whether the node should read no more from its clients, because too much waits to be posted.
    var isCongested: Bool { outbox.isCongested }

    /// Stops for good.
    func stop() {
        hasStopped = true
        timer?.cancel()
    }

    /// Replaces the secrets, after the operator has rotated them.
    func use(_ secrets: SealingSecrets) { seals.use(secrets) }

    // MARK: Redis

    /// A connection to a Redis was made.
    ///
    /// - Parameter store: what identifies its memory, from ``RedisPlaces/identify(onlyOn:)``.
    func connected(store: String, connection: UInt64) {
        guard !hasStopped else { return }
        if self.store != store {
            // Ids of another Redis can be smaller than those that were read. What was received before is dropped.
            generation += 1
            (self.store, cursor) = (store, "0")
        }
        self.connection = connection
        carryOut(outbox.connected(store: store, at: clock()))
        settle()
        read()
    }

    /// The connection was lost.
    func disconnected() {
        connection = nil
        outbox.disconnected()
        settle()
    }

    // MARK: Lives

    /// Judges the entries that were kept, because ``Lives`` has looked again.
    func looked() {
        guard !kept.isEmpty else { return }
        var items: [Received] = []
        let waiting = kept
        (kept, keptSize) = ([:], 0)
        for sender in waiting.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            for entry in waiting[sender] ?? [] { judge(entry, &items) }
        }
        pass(items)
        read()
    }

    /// A life has ended. Nothing is posted to it, and nothing from it counts any more.
    func ended(_ life: NodeTag) {
        outbox.ended(life)
        inbox.ended(life)
        keptSize -= (kept.removeValue(forKey: life) ?? []).reduce(0) { $0 + $1.size }
        unpackers[life] = nil
        seals.forget(life)
        settle()
    }

    private func wereLost(_ life: NodeTag, _ items: inout [Received]) {
        figures.losses += 1
        logger.warning(
            "Letters between this node and node \(life.node) were lost. Both begin again.",
            metadata: ["life": "\(life)"])
        unpackers[life] = nil
        items.append(.lost(life))
    }

    // MARK: Measuring

    /// Asks Redis for the length of this life's stream.
    func measureStream() {
        guard !hasStopped, let connection, !isMeasuring else { return }
        isMeasuring = true
        let post = NIOLoopBound(self, eventLoop: eventLoop)
        redis.submit(
            .command(RedisCommand("XLEN", .text(stream))), timeout: Self.answerTime, onlyOn: connection
        ) { result in
            post.value.isMeasuring = false
            let length = (try? result.get())?.integer
            post.value.streamLength = length.map { Int(clamping: $0) }
        }
    }

    // MARK: Posting

    /// Posts a letter to another life. It is appended after this turn of the event loop, and after all that were posted before.
    func post(_ letter: Letter, to receiver: NodeTag) {
        guard !hasStopped, receiver != tag else { return }
        if pending.last?.receiver != receiver {
            pending.append((receiver, LetterPacker(entrySize: PostSeal.maxLetters)))
        }
        do throws(LetterError) {
            try pending[pending.count - 1].packer.append(letter)
            figures.posted += 1
        } catch {
            figures.refused += 1
            logger.error("A letter was not posted to node \(receiver.node): \(error)")
        }
        guard !willFlush else { return }
        willFlush = true
        let post = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.execute { post.value.flush() }
    }

    private func flush() {
        let packed = pending
        (pending, willFlush) = ([], false)
        for (receiver, packer) in packed {
            for entry in packer.entries { carryOut(outbox.post(.letters(entry), to: receiver, at: clock())) }
        }
        settle()
    }

    private func carryOut(_ effects: [PostOutbox.Effect]) {
        var items: [Received] = []
        carryOut(effects, &items)
        pass(items)
    }

    private func carryOut(_ effects: [PostOutbox.Effect], _ items: inout [Received]) {
        for effect in effects {
            switch effect {
            case .append(let entries, let number): append(entries, number)
            case .lost(let life): wereLost(life, &items)
            }
        }
    }

    private func append(_ entries: [PostEntry], _ number: UInt64) {
        var receivers: [NodeTag] = []
        var sealed: [(receiver: Int, sealed: [UInt8])] = []
        do {
            for entry in entries {
                let index = receivers.firstIndex(of: entry.receiver) ?? receivers.count
                if index == receivers.count { receivers.append(entry.receiver) }
                sealed.append((index, try seals.seal(entry)))
            }
        } catch {
            logger.error("Entries for other nodes could not be sealed: \(error)")
            return answered(number, .answer(.failed))
        }
        let request = PostScripts.append(sealed, to: receivers, by: tag, maxLength: settings.maxLength)
        let post = NIOLoopBound(self, eventLoop: eventLoop)
        redis.submit(request, timeout: Self.answerTime, onlyOn: connection) { [receivers] result in
            post.value.answered(number, post.value.reply(result, receivers))
        }
    }

    private func reply(_ result: Result<RESPValue, RedisError>, _ receivers: [NodeTag]) -> PostScripts.Reply {
        do throws(RedisError) {
            return try PostScripts.reply(result.get(), receivers: receivers)
        } catch {
            logger.debug("Redis did not store entries for other nodes: \(error)")
            return .answer(.failed)
        }
    }

    private func answered(_ number: UInt64, _ reply: PostScripts.Reply) {
        guard !hasStopped else { return }
        switch reply {
        case .answer(let answer):
            if answer == .stored, let posted = outbox.oldestPosted(inBatch: number) { stored(clock() - posted) }
            carryOut(outbox.answered(number, answer, at: clock()))
        case .fenced:
            isFenced = true
            outbox.disconnected()
        }
        settle()
    }

    /// Sets the timer of the outbox, and reports the end of a congestion.
    private func settle() {
        timer?.cancel()
        timer = nil
        if let wakeUp = outbox.nextWakeUp, !hasStopped {
            let post = NIOLoopBound(self, eventLoop: eventLoop)
            let delay = max(.zero, wakeUp - clock()) + .milliseconds(1)
            timer = eventLoop.scheduleTask(in: TimeAmount(delay)) { post.value.wake() }
        }
        let isCongested = outbox.isCongested
        let isRelieved = wasCongested && !isCongested
        wasCongested = isCongested
        if isRelieved { relieved() }
    }

    private func wake() {
        carryOut(outbox.tick(at: clock()))
        settle()
    }

    // MARK: Reading

    private func read() {
        guard !hasStopped, store != nil, !isReading, !isHandling, keptSize <= settings.maxKept else { return }
        isReading = true
        let (post, generation) = (NIOLoopBound(self, eventLoop: eventLoop), generation)
        redis.read([RedisStreamPosition(stream, after: cursor)], count: Self.readCount, block: Self.readTime) {
            post.value.hasRead($0, generation)
        }
    }

    private func hasRead(_ result: Result<[RedisStreamEntry], RedisError>, _ generation: Int) {
        guard !hasStopped else { return }
        switch result {
        case .success(let entries):
            isReading = false
            guard generation == self.generation, let last = entries.last else { return read() }
            cursor = last.id
            var items: [Received] = []
            for entry in entries {
                if let opened = open(entry) { judge(opened, &items) }
            }
            pass(items, through: last.id)
            read()
        case .failure(let error):
            logger.debug("The letters for this node were not read from Redis: \(error)")
            let post = NIOLoopBound(self, eventLoop: eventLoop)
            eventLoop.scheduleTask(in: Self.readPause) {
                post.value.isReading = false
                post.value.read()
            }
        }
    }

    /// Opens an entry. Returns nil if it was not sealed for this life by the life that it names.
    private func open(_ entry: RedisStreamEntry) -> Opened? {
        func value(_ name: String) -> [UInt8]? { entry.fields.first { $0.name.elementsEqual(name.utf8) }?.value }
        guard let name = value("from"), name.count <= 32, let sender = NodeTag(String(decoding: name, as: UTF8.self)),
            sender != tag, let bytes = value("entry")
        else { return wasForged() }
        do throws(PostSeal.Forged) {
            let (position, content) = try seals.open(bytes, from: sender)
            return Opened(sender: sender, position: position, content: content, heard: clock())
        } catch {
            return wasForged()
        }
    }

    private func wasForged() -> Opened? {
        figures.forged += 1
        let now = clock()
        if warnedAt.map({ now - $0 >= Self.warningInterval }) ?? true {
            warnedAt = now
            logger.warning(
                """
                An entry for this node in Redis is ignored: another node has another project secret, or something else writes \
                into Redis.
                """, metadata: ["entries": "\(figures.forged)"])
        }
        return nil
    }

    private func judge(_ entry: Opened, _ items: inout [Received]) {
        guard kept[entry.sender] == nil else { return keep(entry) }
        let effects = inbox.receive(
            entry.position, isReset: entry.isReset, from: entry.sender, standing: standing(entry.sender, entry.heard),
            at: clock())
        for effect in effects {
            switch effect {
            case .accept: accept(entry, &items)
            case .keep: keep(entry)
            case .lost(let life): wereLost(life, &items)
            case .askReset(let life, let series):
                carryOut(outbox.post(.reset(series: series), to: life, at: clock()), &items)
            }
        }
    }

    private func keep(_ entry: Opened) {
        kept[entry.sender, default: []].append(entry)
        keptSize += entry.size
    }

    private func accept(_ entry: Opened, _ items: inout [Received]) {
        switch entry.content {
        case .reset(let series): carryOut(outbox.reset(by: entry.sender, series: series, at: clock()), &items)
        case .letters(let bytes):
            for result in unpackers[entry.sender, default: LetterUnpacker()].read(bytes) {
                switch result {
                case .success(let letter):
                    figures.received += 1
                    items.append(.letter(letter, from: entry.sender))
                case .failure(let error):
                    figures.unreadable += 1
                    logger.warning("A letter of node \(entry.sender.node) cannot be read: \(error)")
                }
            }
        }
    }

    /// Passes on what was received.
    ///
    /// - Parameter id: the last of the entries. It and all before it are removed from the stream when their effects are carried out.
    private func pass(_ items: [Received], through id: String? = nil) {
        if !items.isEmpty {
            let generation = generation
            if id != nil { isHandling = true }
            receive(
                items,
                {
                    guard id != nil else { return }
                    self.isHandling = false
                    self.read()
                }, { if let id { self.trim(through: id, generation) } })
        } else if let id {
            trim(through: id, generation)
        }
    }

    private func trim(through id: String, _ generation: Int) {
        guard !hasStopped, let connection, generation == self.generation else { return }
        // If this fails, the next one removes the entries too.
        redis.submit(
            .command(PostScripts.trim(stream, through: id)), timeout: Self.answerTime, onlyOn: connection
        ) { _ in }
    }
}
