import Cluster
import Signaling
import TestSupport
import Wire

/// A model of the streams in Redis through which the nodes of a simulated cluster post letters, with each node's outbox and inbox.
///
/// Everything takes time. Redis can be away, fail over to a replica that lacks the newest entries, and carry a command out whose
/// answer is lost.
struct SimulatedPost {
    /// A life that posts and reads.
    private struct Life {
        var outbox = PostOutbox()
        var inbox = PostInbox()
        var unpackers: [NodeTag: LetterUnpacker] = [:]
        /// The number of the connection; nil while there is none.
        var connection: Int?
        /// The Redis that was read last, and how many entries of it.
        var store = 0
        var cursor = 0
    }

    private struct Stored {
        let sender: NodeTag
        let entry: PostEntry
        let time: Timestamp
    }

    private enum Step {
        case append([PostEntry], number: UInt64, connection: Int)
        case answer(PostOutbox.Answer, number: UInt64, connection: Int)
        case read
        case connect
    }

    private struct Due {
        var at: Timestamp
        var life: NodeTag
        var step: Step
    }

    private var lives: [NodeTag: Life] = [:]
    private var fenced: Set<NodeTag> = []
    private var streams: [NodeTag: [Stored]] = [:]
    private var due: [Due] = []
    private var stores = 0
    private var connections = 0
    private(set) var isAway = false
    /// Until when entries are acknowledged and lost, and when Redis fails over because of that; nil if none are.
    private var losing: (until: Timestamp, failover: Timestamp)?
    private var random: SeededGenerator
    /// The letters that were posted and handled, and how often two lives began again with each other.
    private(set) var figures: [String: Int] = [:]
    /// What must not happen; nil if it did not.
    private(set) var fault: String?

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    private static func instant(_ now: Timestamp) -> Instant { Instant(.milliseconds(now.milliseconds)) }

    // MARK: Lives

    /// A node begins a life.
    mutating func begin(_ tag: NodeTag, now: Timestamp) {
        lives[tag] = Life()
        add(.connect, of: tag, now, 0...2)
    }

    /// The node has stopped. What it sent may still be carried out.
    mutating func forget(_ tag: NodeTag) { lives[tag] = nil }

    /// The life is over: nothing that it sends is stored, and nothing that it sent counts.
    mutating func fence(_ tag: NodeTag) {
        fenced.insert(tag)
        streams[tag] = nil
        for other in lives.keys {
            lives[other]?.outbox.ended(tag)
            lives[other]?.inbox.ended(tag)
            lives[other]?.unpackers[tag] = nil
        }
    }

    // MARK: Faults

    mutating func setAway(_ isAway: Bool, now: Timestamp) {
        self.isAway = isAway
        if isAway { disconnectAll() } else { connectAll(now) }
    }

    /// A replica takes over that lacks the entries of the last `loss`.
    mutating func failOver(losing loss: Duration, now: Timestamp) {
        stores += 1
        for tag in streams.keys { streams[tag]?.removeAll { $0.time > now - loss } }
        disconnectAll()
        if !isAway { connectAll(now) }
    }

    /// Redis acknowledges entries for a second, and loses them in a failover that comes when nobody can post them again.
    mutating func loseEntries(now: Timestamp) {
        if losing == nil { losing = (now + .seconds(1), now + .seconds(8)) }
    }

    private mutating func disconnectAll() {
        for tag in lives.keys {
            lives[tag]?.connection = nil
            lives[tag]?.outbox.disconnected()
        }
    }

    private mutating func connectAll(_ now: Timestamp) {
        for tag in lives.keys.sorted(by: { $0.rawValue < $1.rawValue }) { add(.connect, of: tag, now, 0...1500) }
    }

    // MARK: Time

    var nextDue: Timestamp? {
        let wakeUps = lives.values.compactMap(\.outbox.nextWakeUp).map {
            Timestamp(milliseconds: $0.reading.wholeMilliseconds)
        }
        return ([due.first?.at, losing?.failover].compactMap(\.self) + wakeUps).min()
    }

    private mutating func add(_ step: Step, of tag: NodeTag, _ now: Timestamp, _ delay: ClosedRange<Int>) {
        let at = now + .milliseconds(Int.random(in: delay, using: &random))
        let index = due.firstIndex { $0.at > at } ?? due.count
        due.insert(Due(at: at, life: tag, step: step), at: index)
    }

    /// Performs what is due. Returns the inputs that arrive at nodes, in order.
    mutating func takeDue(_ now: Timestamp) -> [(NodeTag, Input)] {
        var inputs: [(NodeTag, Input)] = []
        if let failover = losing?.failover, failover <= now {
            losing = nil
            failOver(losing: .zero, now: now)
        }
        for tag in lives.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let at = lives[tag]?.outbox.nextWakeUp, at <= Self.instant(now) else { continue }
            perform(lives[tag]?.outbox.tick(at: Self.instant(now)) ?? [], of: tag, now, &inputs)
        }
        while let first = due.first, first.at <= now {
            due.removeFirst()
            perform(first, now, &inputs)
        }
        return inputs
    }

    private mutating func perform(_ due: Due, _ now: Timestamp, _ inputs: inout [(NodeTag, Input)]) {
        switch due.step {
        case .append(let entries, let number, let connection): append(entries, number, connection, of: due.life, now)
        case .answer(let answer, let number, let connection):
            guard lives[due.life]?.connection == connection else { return }
            let effects = lives[due.life]?.outbox.answered(number, answer, at: Self.instant(now)) ?? []
            perform(effects, of: due.life, now, &inputs)
        case .read: read(due.life, now, &inputs)
        case .connect:
            guard !isAway, let life = lives[due.life], life.connection == nil else { return }
            connections += 1
            lives[due.life]?.connection = connections
            if life.store != stores {
                lives[due.life]?.store = stores
                lives[due.life]?.cursor = 0
            }
            let effects = lives[due.life]?.outbox.connected(store: "\(stores)", at: Self.instant(now)) ?? []
            perform(effects, of: due.life, now, &inputs)
            add(.read, of: due.life, now, 0...2)
        }
    }

    // MARK: Posting

    /// Takes a letter that a node posts.
    mutating func post(_ letter: Letter, from tag: NodeTag, to receiver: NodeTag, now: Timestamp) -> [(NodeTag, Input)]
    {
        var packer = LetterPacker(entrySize: 500)
        do throws(LetterError) { try packer.append(letter) } catch { fault = "\(letter) cannot be posted: \(error)" }
        figures["letters posted", default: 0] += 1
        var inputs: [(NodeTag, Input)] = []
        for entry in packer.entries {
            let effects = lives[tag]?.outbox.post(.letters(entry), to: receiver, at: Self.instant(now)) ?? []
            perform(effects, of: tag, now, &inputs)
        }
        return inputs
    }

    private mutating func perform(
        _ effects: [PostOutbox.Effect], of tag: NodeTag, _ now: Timestamp, _ inputs: inout [(NodeTag, Input)]
    ) {
        for effect in effects {
            switch effect {
            case .append(let entries, let number):
                guard let connection = lives[tag]?.connection else { continue }
                add(.append(entries, number: number, connection: connection), of: tag, now, 0...2)
            case .lost(let other): lost(other, for: tag, &inputs)
            }
        }
    }

    private mutating func lost(_ other: NodeTag, for tag: NodeTag, _ inputs: inout [(NodeTag, Input)]) {
        figures["letters lost", default: 0] += 1
        lives[tag]?.unpackers[other] = nil
        inputs.append((tag, .lettersLost(other)))
    }

    private mutating func append(
        _ entries: [PostEntry], _ number: UInt64, _ connection: Int, of tag: NodeTag, _ now: Timestamp
    ) {
        // If the connection was lost, the command may have been carried out before.
        let isConnected = lives[tag]?.connection == connection
        guard !isAway, !fenced.contains(tag), isConnected || Bool.random(using: &random) else { return }
        let ended = Set(entries.map(\.receiver)).intersection(fenced)
        guard ended.isEmpty else {
            return add(.answer(.ended(Array(ended)), number: number, connection: connection), of: tag, now, 0...2)
        }
        let isLost = losing.map { now < $0.until } ?? false
        for entry in entries where !isLost {
            streams[entry.receiver, default: []].append(Stored(sender: tag, entry: entry, time: now))
            add(.read, of: entry.receiver, now, 0...2)
        }
        add(.answer(.stored, number: number, connection: connection), of: tag, now, 0...2)
    }

    // MARK: Reading

    private mutating func read(_ tag: NodeTag, _ now: Timestamp, _ inputs: inout [(NodeTag, Input)]) {
        guard let life = lives[tag], life.connection != nil, life.store == stores, let stream = streams[tag],
            life.cursor < stream.count
        else { return }
        lives[tag]?.cursor = stream.count
        for stored in stream[life.cursor...] { judge(stored, for: tag, now, &inputs) }
        trim(tag, now)
    }

    private mutating func judge(
        _ stored: Stored, for tag: NodeTag, _ now: Timestamp, _ inputs: inout [(NodeTag, Input)]
    ) {
        let isReset = if case .reset = stored.entry.content { true } else { false }
        let effects =
            lives[tag]?.inbox.receive(
                stored.entry.position, isReset: isReset, from: stored.sender,
                standing: fenced.contains(stored.sender) ? .ended : .living, at: Self.instant(now)) ?? []
        for effect in effects {
            switch effect {
            case .accept: accept(stored, for: tag, now, &inputs)
            case .keep: break
            case .lost(let other): lost(other, for: tag, &inputs)
            case .askReset(let other, let series):
                let effects =
                    lives[tag]?.outbox.post(.reset(series: series), to: other, at: Self.instant(now)) ?? []
                perform(effects, of: tag, now, &inputs)
            }
        }
    }

    private mutating func accept(
        _ stored: Stored, for tag: NodeTag, _ now: Timestamp, _ inputs: inout [(NodeTag, Input)]
    ) {
        switch stored.entry.content {
        case .reset(let series):
            let effects = lives[tag]?.outbox.reset(by: stored.sender, series: series, at: Self.instant(now)) ?? []
            perform(effects, of: tag, now, &inputs)
        case .letters(let bytes):
            for result in lives[tag]?.unpackers[stored.sender, default: LetterUnpacker()].read(bytes) ?? [] {
                guard case .success(let letter) = result else {
                    fault = "a letter cannot be read: \(result)"
                    continue
                }
                figures["letters received", default: 0] += 1
                inputs.append((tag, .received(letter, from: stored.sender)))
            }
        }
    }

    /// Removes what was read long ago. A failover brings back what was removed shortly before.
    private mutating func trim(_ tag: NodeTag, _ now: Timestamp) {
        guard let life = lives[tag], let stream = streams[tag] else { return }
        let old = stream[..<life.cursor].prefix { now - $0.time > .seconds(20) }.count
        guard old > 0 else { return }
        streams[tag]?.removeFirst(old)
        lives[tag]?.cursor -= old
    }
}
