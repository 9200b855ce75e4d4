import Cluster
import Wire

/// The statements of the ledger. Each function but `renew` and `process` runs in a transaction that has called
/// `prepareOperation` first.
///
/// `clock_timestamp()` is the time at which it is called. `now()` would be the beginning of the transaction.
extension PostgresConnection {
    /// The class of the advisory locks under which nodes begin lives. The other half of its number is the schema's and the node's.
    private static let beginningLock = 0x434F_4E4C
    /// How many numbers of lives are skipped for each failover of the ledger. The new server may not know the last that were given. The
    /// number of failovers is the difference of the timelines, because a failover may also be unknown to the next one.
    private static let skippedLives = 100
    /// How many fenced lives are kept, the last ones. The view has fewer.
    private static let keptLives = 1000
    /// How many fenced lives are in the view, the last ones.
    private static let shownLives = 64
    /// How many epochs are kept, so that a store that another one has replaced is recognized.
    private static let keptEpochs = 1000

    private static let now = "clock_timestamp()"
    private static let currentEpoch = "(SELECT max(number) FROM epoch)"

    private static func interval(_ duration: Duration) -> String {
        "INTERVAL '\(duration.wholeMilliseconds) milliseconds'"
    }

    private static func microseconds(_ interval: String) -> String {
        "CAST(extract(epoch FROM \(interval)) * 1000000 AS BIGINT)"
    }

    /// The number of a timeline, from its eight hexadecimal digits.
    private static func number(_ timeline: String) -> String { "CAST(CAST('x' || \(timeline) AS BIT(32)) AS BIGINT)" }

    // MARK: The server

    /// Begins an operation. If another server has become the ledger, or it has started again, notes that: for some seconds no life
    /// is fenced then, because a failover or a crash can have lost renewals.
    func prepareOperation() throws {
        let changed = try rows(
            """
            UPDATE judge SET timeline = server.timeline, started = server.started, since = \(Self.now) FROM (
                SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline, pg_postmaster_start_time() AS started
            ) AS server, (SELECT timeline FROM judge) AS former
            WHERE (judge.timeline, judge.started) IS DISTINCT FROM (server.timeline, server.started)
            RETURNING CASE WHEN former.timeline ~ '^[0-9A-F]{8}$'
                THEN greatest(1, \(Self.number("server.timeline")) - \(Self.number("former.timeline"))) ELSE 1 END AS failovers
            """, [])
        if let failovers: Int64 = try changed.first?.value("failovers") {
            _ = try rows(
                "SELECT setval('nodeLife', least(last_value + ? * \(Self.skippedLives), \(NodeTag.lastLife))) AS life FROM nodeLife",
                [failovers])
        }
        try bringTimesBack()
    }

    /// Brings times back that lie too far in the future, because the clock was set or is that of another server. Usually there are
    /// none.
    private func bringTimesBack() throws {
        let latest = "\(Self.now) + \(Self.interval(Terms.leaseDuration))"
        try run(
            """
            WITH lives AS (
                UPDATE node SET started = least(started, \(Self.now)), aliveUntil = least(aliveUntil, \(latest)),
                    voidFrom = CASE WHEN fenced THEN least(voidFrom, \(latest)) END
                WHERE started > \(Self.now) OR aliveUntil > \(latest) OR voidFrom > \(latest)
            ), epochs AS (UPDATE epoch SET since = \(Self.now) WHERE since > \(Self.now))
            UPDATE judge SET since = \(Self.now) WHERE since > \(Self.now)
            """, [])
    }

    // MARK: Lives

    func beginLife(node: UInt16, former: NodeTag?, process: String) throws -> Beginning {
        try command(
            "SELECT pg_advisory_xact_lock(\(Self.beginningLock), hashtext(current_schema() || ' \(node)'))")
        let earlier = try rows(
            """
            SELECT life, \(Self.microseconds("aliveUntil - \(Self.now)")) AS expiresIn,
                \(Self.microseconds("since + \(Self.interval(Terms.settlingOfServer)) - \(Self.now)")) AS settlesIn
            FROM node, judge WHERE node = ? AND NOT fenced FOR UPDATE OF node
            """, [Int64(node)])
        for row in earlier {
            let holder = try row.tag(node: node)
            let left = max(try row.duration("expiresIn"), try row.duration("settlesIn"))
            guard holder == former || left < .zero else { return .held(by: holder, for: left) }
        }
        let number: Int64 = try rows("SELECT nextval('nodeLife') AS life", []).first?.value("life") ?? 0
        guard let life = UInt32(exactly: number), let begun = NodeTag(node: node, life: life) else {
            throw SQLRow.unreadable("life")
        }
        try run(
            "UPDATE node SET \(Self.fencing(voidAfter: Terms.settling)) WHERE node = ?2 AND NOT fenced",
            [begun.description, Int64(node)])
        try run(
            """
            INSERT INTO node (node, life, process, started, aliveUntil)
            VALUES (?, ?, ?, \(Self.now), \(Self.now) + \(Self.interval(Terms.leaseDuration)))
            """, [Int64(node), number, process.withoutNUL])
        try run(
            "DELETE FROM node WHERE fenced AND life NOT IN (SELECT life FROM \(Self.lastFenced(Self.keptLives)))", [])
        try run("DELETE FROM nodeRequest WHERE life NOT IN (SELECT life FROM node WHERE NOT fenced)", [])
        return .begun(begun)
    }

    private static func lastFenced(_ count: Int) -> String {
        "(SELECT * FROM node WHERE fenced ORDER BY voidFrom DESC, life DESC LIMIT \(count)) AS last"
    }

    /// The assignments that fence a life. The parameter `?1` is the heir.
    private static func fencing(voidAfter duration: Duration) -> String {
        "fenced = TRUE, heir = ?1, voidFrom = \(now) + \(interval(duration))"
    }

    func renew(_ tag: NodeTag) throws -> Renewal {
        let renewed = try run(
            """
            UPDATE node SET aliveUntil = \(Self.now) + \(Self.interval(Terms.leaseDuration))
            WHERE node = ? AND life = ? AND NOT fenced
            """, tag.key)
        guard renewed == 0 else { return .renewed }
        let row = try rows("SELECT heir FROM node WHERE node = ? AND life = ?", tag.key).first
        let heir: String? = try row?.optional("heir")
        return .fenced(heir: heir.flatMap { NodeTag($0) })
    }

    func fence(_ tag: NodeTag, heir: NodeTag) throws -> Bool {
        if try isUnfenced(heir) {
            try run(
                """
                UPDATE node SET \(Self.fencing(voidAfter: Terms.settling))
                WHERE node = ?2 AND life = ?3 AND NOT fenced AND aliveUntil < \(Self.now) AND \(Self.isSettled)
                """, [heir.description] + tag.key)
        }
        return try rows("SELECT fenced FROM node WHERE node = ? AND life = ?", tag.key).first?.value("fenced") ?? false
    }

    /// Whether this server has been the ledger for long enough that lives may be fenced.
    private static let isSettled =
        "EXISTS (SELECT 1 FROM judge WHERE since + \(interval(Terms.settlingOfServer)) < \(now))"

    /// Returns whether a life may become the heir of another, and keeps it from being fenced before the commit. Otherwise two lives
    /// could fence each other.
    private func isUnfenced(_ tag: NodeTag, and condition: String = "TRUE") throws -> Bool {
        try !rows(
            "SELECT life FROM node WHERE node = ? AND life = ? AND NOT fenced AND \(condition) FOR KEY SHARE", tag.key
        ).isEmpty
    }

    /// Returns what a life said about its process when it began; nil if there is no row of it.
    func process(of tag: NodeTag) throws -> String? {
        try rows("SELECT process FROM node WHERE node = ? AND life = ?", tag.key).first?.value("process")
    }

    // MARK: Requests

    func request(_ state: NodeRecord.State, of tag: NodeTag) throws -> Bool {
        try run(
            """
            INSERT INTO nodeRequest (life, state)
            SELECT life, CAST(?3 AS TEXT) FROM node WHERE node = ?1 AND life = ?2 AND NOT fenced
            ON CONFLICT (life) DO UPDATE SET state = excluded.state
            """, tag.key + [state.rawValue]) > 0
    }

    func noteCarriedOut(_ state: NodeRecord.State, by tag: NodeTag) throws {
        try run("DELETE FROM nodeRequest WHERE life = ? AND state = ?", [Int64(tag.life), state.rawValue])
    }

    // MARK: Epochs

    func beginEpoch(of store: String, by tag: NodeTag) throws {
        // Two nodes must not take the same number.
        _ = try rows("SELECT timeline FROM judge FOR UPDATE", [])
        try run(
            """
            INSERT INTO epoch (number, store, since) SELECT COALESCE(max(number), 0) + 1, ?3, \(Self.now) FROM epoch
            ON CONFLICT (store) DO UPDATE SET number = excluded.number, since = excluded.since
            WHERE epoch.number < \(Self.currentEpoch) AND (\(Self.hasLeftEpoch) OR \(Self.isUnusedEpoch))
            """, tag.key + [store])
        try run("DELETE FROM epoch WHERE number <= \(Self.currentEpoch) - \(Self.keptEpochs)", [])
    }

    /// Whether the life `?1`, `?2` has registered under the current epoch.
    private static let hasLeftEpoch =
        "EXISTS (SELECT 1 FROM node WHERE node = ?1 AND life = ?2 AND NOT fenced AND epoch = \(currentEpoch))"

    /// Whether no life has registered under the current epoch in time.
    private static let isUnusedEpoch = """
        NOT EXISTS (SELECT 1 FROM node WHERE NOT fenced AND epoch = \(currentEpoch))
            AND (SELECT greatest(max(epoch.since), max(judge.since)) FROM epoch, judge)
                + \(interval(Terms.registrationTime)) < \(now)
        """

    func register(_ tag: NodeTag, under epoch: Epoch) throws -> Bool {
        try run(
            """
            UPDATE node SET epoch = ?3 WHERE node = ?1 AND life = ?2 AND NOT fenced AND EXISTS (
                SELECT 1 FROM epoch WHERE number = ?3 AND number = \(Self.currentEpoch) AND store = ?4)
            """, tag.key + [Int64(clamping: epoch.number), epoch.store]) > 0
    }

    func fenceUnregistered(heir: NodeTag) throws {
        guard try isUnfenced(heir, and: "epoch = \(Self.currentEpoch)") else { return }
        try run(
            """
            UPDATE node SET \(Self.fencing(voidAfter: Terms.leaseDuration))
            FROM judge, (SELECT number, since FROM epoch ORDER BY number DESC LIMIT 1) AS latest
            WHERE NOT fenced AND node.epoch <> latest.number
                AND greatest(node.started, latest.since, judge.since) + \(Self.interval(Terms.registrationTime)) < \(Self.now)
            """, [heir.description])
    }

    // MARK: Looking

    /// Reads the ledger in one statement, so that it shows one moment. If there is no life, the only row has none.
    func ledgerView() throws -> LedgerView {
        let found = try rows(
            """
            WITH moment AS MATERIALIZED (SELECT \(Self.now) AS now),
                latest AS (SELECT number, store, since FROM epoch ORDER BY number DESC LIMIT 1)
            SELECT \(Self.microseconds("now")) AS clock, \(Self.microseconds("now - judge.since")) AS age,
                latest.number AS epoch, store, \(Self.microseconds("now - latest.since")) AS epochAge,
                node, life, fenced, heir, node.epoch AS registered, requested,
                \(Self.microseconds("aliveUntil - now")) AS expiresIn,
                \(Self.microseconds("greatest(voidFrom, judge.since + \(Self.interval(Terms.settlingOfServer))) - now")) AS voidIn
            FROM moment CROSS JOIN judge LEFT JOIN latest ON TRUE
                LEFT JOIN (SELECT * FROM node WHERE NOT fenced UNION ALL SELECT * FROM \(Self.lastFenced(Self.shownLives)))
                    AS node ON TRUE
                LEFT JOIN (SELECT life AS ofLife, state AS requested FROM nodeRequest) AS request ON ofLife = node.life
            ORDER BY life
            """, [])
        guard let first = found.first else { throw SQLRow.unreadable("judge") }
        let age = max(.zero, try first.duration("age"))
        let (number, store): (Int64?, String?) = (try first.optional("epoch"), try first.optional("store"))
        let epoch = number.flatMap { number in store.map { Epoch(number: UInt64(clamping: number), store: $0) } }
        return LedgerView(
            clock: try first.duration("clock"), age: age, lives: try found.compactMap { try $0.life() }, epoch: epoch,
            epochAge: epoch == nil ? .zero : min(age, max(.zero, try first.duration("epochAge"))))
    }
}

extension NodeTag {
    /// The parameters for `node = ? AND life = ?`.
    fileprivate var key: [(any SQLArgument)?] { [Int64(node), Int64(life)] }
}

extension SQLRow {
    fileprivate func duration(_ column: String) throws -> Duration {
        .microseconds(try value(column) as Int64)
    }

    /// Returns the tag of the column `life` and a node.
    fileprivate func tag(node: UInt16) throws -> NodeTag {
        let life: Int64 = try value("life")
        guard let tag = UInt32(exactly: life).flatMap({ NodeTag(node: node, life: $0) }) else {
            throw SQLRow.unreadable("life")
        }
        return tag
    }

    /// Returns the life of a row of the view; nil if the row has none.
    fileprivate func life() throws -> LedgerView.Life? {
        guard let number: Int64 = try optional("node") else { return nil }
        guard let node = UInt16(exactly: number) else { throw SQLRow.unreadable("node") }
        let registered: Int64? = try optional("registered")
        let requested: String? = try optional("requested")
        return LedgerView.Life(
            tag: try tag(node: node), state: try state(), epoch: registered.map { UInt64(clamping: $0) },
            requested: requested.flatMap { NodeRecord.State(rawValue: $0) })
    }

    private func state() throws -> LedgerView.Life.State {
        guard try value("fenced") else { return .unfenced(expiresIn: try duration("expiresIn")) }
        let heir: String = try value("heir")
        guard let tag = NodeTag(heir) else { throw SQLRow.unreadable("heir") }
        return .fenced(heir: tag, voidIn: try duration("voidIn"))
    }
}
