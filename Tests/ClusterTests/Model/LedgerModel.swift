import Cluster

/// PostgreSQL as ``Ledger`` describes it: its statements, its wall clock, and failovers that lose the last second.
struct LedgerModel {
    /// The durations of the rules. Control tests take one away.
    struct Rules {
        /// Microseconds until a fence, a life or an epoch counts.
        var settling: Int64 = 1_000_000
        /// Microseconds after a failover in which nobody is fenced: rule 4.
        var settlingOfServer: Int64 = 5_000_000
        /// Microseconds until the places are void of a life that was fenced although it renewed: the end of rule 7.
        var voidAfterUnregistered: Int64 = 3_000_000
    }

    struct Row {
        let tag: NodeTag
        var started: Int64
        var aliveUntil: Int64
        var heir: NodeTag?
        var voidFrom: Int64 = 0
        var epoch: UInt64?
        var isUnregistered = false
        var isFenced: Bool { heir != nil }
    }

    struct State {
        var rows: [Row] = []
        var server = 0
        var since: Int64 = 0
        var lastLife: UInt32 = 0
        var epochs: [(epoch: Epoch, since: Int64)] = []
    }

    var rules = Rules()
    var clock = ModelClock()
    var state = State()
    private var server = 0
    private var history: [(time: Int64, state: State)] = []
    private(set) var fences = 0

    // MARK: Trouble

    /// Another server becomes the ledger. It has what was there `lost` microseconds ago.
    mutating func failOver(at time: Int64, lost: Int64, offset: Int64) {
        state = history.last { $0.time <= time - lost }?.state ?? state
        history = [(time, state)]
        server += 1
        clock.offset = offset
    }

    private mutating func record(at time: Int64) {
        history.append((time, state))
        if let old = history.lastIndex(where: { $0.time < time - 1_000_000 }), old > 64 { history.removeFirst(old) }
    }

    // MARK: Operations

    /// What each operation except a renewal begins with. Returns the clock's reading.
    private mutating func prepare(at time: Int64) -> Int64 {
        let now = clock.reading(at: time)
        if state.server != server {
            state.lastLife += UInt32(100 * (server - state.server))
            (state.server, state.since) = (server, now)
        }
        state.since = min(state.since, now)
        for index in state.rows.indices {
            state.rows[index].started = min(state.rows[index].started, now)
            state.rows[index].aliveUntil = min(state.rows[index].aliveUntil, now + 3_000_000)
            state.rows[index].voidFrom = min(state.rows[index].voidFrom, now + 3_000_000)
        }
        for index in state.epochs.indices { state.epochs[index].since = min(state.epochs[index].since, now) }
        return now
    }

    mutating func begin(node: UInt16, former: NodeTag?, at time: Int64) -> Beginning {
        let now = prepare(at: time)
        defer { record(at: time) }
        let tag = NodeTag(node: node, life: state.lastLife + 1)!
        for row in state.rows
        where row.tag.node == node && !row.isFenced && row.tag != former && !canFence(row, now: now) {
            let settled = state.since + rules.settlingOfServer
            return .held(by: row.tag, for: .microseconds(max(row.aliveUntil, settled) - now))
        }
        state.lastLife += 1
        for index in state.rows.indices where state.rows[index].tag.node == node && !state.rows[index].isFenced {
            markFenced(index, heir: tag, voidFrom: now + rules.settling)
        }
        state.rows.append(Row(tag: tag, started: now, aliveUntil: now + 3_000_000))
        forgetOldRows()
        return .begun(tag)
    }

    mutating func renew(_ tag: NodeTag, at time: Int64) -> Renewal {
        guard let index = index(of: tag) else { return .fenced(heir: nil) }
        if state.rows[index].isFenced { return .fenced(heir: state.rows[index].heir) }
        state.rows[index].aliveUntil = clock.reading(at: time) + 3_000_000
        record(at: time)
        return .renewed
    }

    mutating func look(at time: Int64) -> LedgerView {
        let now = prepare(at: time)
        defer { record(at: time) }
        let settled = state.since + rules.settlingOfServer
        let lives = state.rows.map { row in
            LedgerView.Life(
                tag: row.tag,
                state: row.heir.map { .fenced(heir: $0, voidIn: .microseconds(max(row.voidFrom, settled) - now)) }
                    ?? .unfenced(expiresIn: .microseconds(row.aliveUntil - now)),
                epoch: row.epoch)
        }
        let epochSince = max(state.epochs.last?.since ?? 0, state.since)
        // A test without rule 4 has a ledger that always seems to be old.
        let age = rules.settlingOfServer == 0 ? 3_600_000_000 : now - state.since
        return LedgerView(
            clock: .microseconds(now), age: .microseconds(age), lives: lives, epoch: state.epochs.last?.epoch,
            epochAge: .microseconds(now - epochSince))
    }

    mutating func fence(_ tag: NodeTag, heir: NodeTag, at time: Int64) -> Bool {
        let now = prepare(at: time)
        defer { record(at: time) }
        guard let index = index(of: tag), let heirIndex = self.index(of: heir) else { return false }
        if state.rows[index].isFenced { return true }
        guard canFence(state.rows[index], now: now), !state.rows[heirIndex].isFenced else { return false }
        markFenced(index, heir: heir, voidFrom: now + rules.settling)
        return true
    }

    mutating func beginEpoch(of store: String, by tag: NodeTag, at time: Int64) {
        let now = prepare(at: time)
        defer { record(at: time) }
        let number = (state.epochs.last?.epoch.number ?? 0) + 1
        if let known = state.epochs.firstIndex(where: { $0.epoch.store == store }) {
            guard canReturn(to: known, by: tag, now: now) else { return }
            state.epochs.remove(at: known)
        }
        state.epochs.append((Epoch(number: number, store: store), now))
    }

    /// Whether a former epoch's store may become current again.
    private func canReturn(to known: Int, by tag: NodeTag, now: Int64) -> Bool {
        guard known < state.epochs.count - 1, let (current, since) = state.epochs.last else { return false }
        let users = state.rows.filter { !$0.isFenced && $0.epoch == current.number }
        return users.contains { $0.tag == tag } || users.isEmpty && max(since, state.since) + 15_000_000 < now
    }

    mutating func register(_ tag: NodeTag, under epoch: Epoch, at time: Int64) -> Bool {
        _ = prepare(at: time)
        defer { record(at: time) }
        guard let index = index(of: tag), !state.rows[index].isFenced, state.epochs.last?.epoch == epoch else {
            return false
        }
        state.rows[index].epoch = epoch.number
        return true
    }

    mutating func fenceUnregistered(heir: NodeTag, at time: Int64) {
        let now = prepare(at: time)
        defer { record(at: time) }
        guard let (epoch, since) = state.epochs.last, let heirIndex = index(of: heir), !state.rows[heirIndex].isFenced,
            state.rows[heirIndex].epoch == epoch.number
        else { return }
        for (index, row) in state.rows.enumerated() where !row.isFenced && row.epoch != nil && row.epoch != epoch.number
        {
            guard max(row.started, since, state.since) + 15_000_000 < now else { continue }
            markFenced(index, heir: heir, voidFrom: now + rules.voidAfterUnregistered)
            state.rows[index].isUnregistered = true
        }
    }

    // MARK: Parts

    func row(of tag: NodeTag) -> Row? { state.rows.first { $0.tag == tag } }

    private func index(of tag: NodeTag) -> Int? { state.rows.firstIndex { $0.tag == tag } }

    private func canFence(_ row: Row, now: Int64) -> Bool {
        row.aliveUntil < now && state.since + rules.settlingOfServer < now
    }

    private mutating func markFenced(_ index: Int, heir: NodeTag, voidFrom: Int64) {
        (state.rows[index].heir, state.rows[index].voidFrom) = (heir, voidFrom)
        fences += 1
    }

    /// Keeps fewer fenced lives than PostgreSQL, so that tests meet lives that are missing.
    private mutating func forgetOldRows() {
        let fenced = state.rows.filter(\.isFenced)
        guard fenced.count > 12 else { return }
        let old = Set(fenced.sorted { $0.voidFrom < $1.voidFrom }.prefix(fenced.count - 12).map(\.tag))
        state.rows.removeAll { old.contains($0.tag) }
    }
}
