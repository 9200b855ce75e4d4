/// The record of which nodes live, with a clock of its own. It alone decides that a life has ended. PostgreSQL implements it, and
/// so does a model in the tests.
///
/// In PostgreSQL the ledger is five objects:
///
/// - a sequence, from which lives get their numbers
/// - `node (node, life, started, alive_until, fenced, void_from, heir, epoch)`, one row for each life
/// - `judge (timeline, started, since)`, one row: which server has been the ledger, and since when
/// - `epoch (number, store UNIQUE, since)`: the states of Redis under which places have been claimed. The row with the largest
///   number is the current epoch
/// - `node_request (life, state)`: what operators have requested of lives (``NodeRequests``)
///
/// `now` in the statements below is `clock_timestamp()`, not `now()`, which is the beginning of the transaction. Each operation is
/// one transaction. All times that the ledger returns are durations by its own clock, because readings of two clocks cannot be
/// compared.
///
/// **Other clocks.** Each operation except ``renew(_:)`` begins with these statements, in the same transaction. The server is
/// another one if the timeline (the first 8 digits of `pg_walfile_name(pg_current_wal_lsn())`) or `pg_postmaster_start_time()`
/// differs from the row of `judge`. Then:
///
///     UPDATE judge SET timeline = …, started = …, since = now
///     SELECT setval(sequence, last_value + 100 * the number of timelines since the last one that was noted)
///
/// In any case, times that lie too far in the future are brought back, because another server's clock may be behind, and a clock may
/// be set:
///
///     UPDATE node SET alive_until = now + 3 s WHERE alive_until > now + 3 s
///     UPDATE node SET void_from = now + 3 s WHERE void_from > now + 3 s
///     UPDATE node SET started = now WHERE started > now, and the same for `since` of epoch and judge
///
/// A failover to an asynchronous standby may lose the last second, so the sequence skips the numbers that were perhaps taken in it.
/// A second failover may lose that too, and every number must be given once: so it skips for each timeline.
/// For ``Terms/settlingOfServer`` after `judge.since` no life is fenced, except by ``begin(node:former:)``, and no places become void.
///
/// **Errors.** An operation that throws may have been carried out. Each can be repeated.
public protocol Ledger: NodeRequests {
    /// Begins a life of a node: takes the next number and inserts its row, which is unfenced and alive for
    /// ``Terms/leaseDuration``.
    ///
    ///     SELECT pg_advisory_xact_lock(…)                               -- two starts of one node number do not overlap
    ///     for each row of this node with NOT fenced:
    ///         if its life is former's, or it may be fenced as in fence(_:heir:):
    ///             UPDATE node SET fenced = true, heir = the new life, void_from = now + 1 s
    ///         else return .held
    ///     INSERT INTO node VALUES (node, nextval(sequence), now, now + 3 s, false, NULL, NULL, NULL)
    ///
    /// - Parameter former: the life whose process has ended, if the caller has proved this: it holds the lock of the data directory
    ///   in which that life had stored its tag, and the directory is no copy. That life is fenced at once.
    func begin(node: UInt16, former: NodeTag?) async throws(LedgerError) -> Beginning

    /// Renews the lease of a life. It is then alive for ``Terms/leaseDuration`` from when the ledger does this.
    ///
    ///     UPDATE node SET alive_until = now + 3 s WHERE node, life AND NOT fenced
    ///
    /// If this changes no row, the life is fenced, or a failover has lost its row.
    func renew(_ tag: NodeTag) async throws(LedgerError) -> Renewal

    /// Reads the lives, the epoch and the ledger's clock.
    ///
    ///     SELECT … FROM node WHERE NOT fenced
    ///     UNION ALL (SELECT … FROM node WHERE fenced ORDER BY void_from DESC LIMIT 64)
    ///
    /// Rows that are left out may be deleted. No time limits them, because the clock may have been set.
    func look() async throws(LedgerError) -> LedgerView

    /// Fences a life whose lease has expired. Final: it never acts again. The heir is answerable for what it leaves behind.
    ///
    ///     UPDATE node SET fenced = true, heir = …, void_from = now + 1 s
    ///     WHERE node, life AND NOT fenced AND alive_until < now
    ///       AND (SELECT since FROM judge) + 5 s < now
    ///       AND EXISTS (SELECT … WHERE the heir's life AND NOT fenced)
    ///
    /// Waits for transactions that hold the row, so for commits of that life that are under way.
    /// - Returns: whether the life is fenced now, by this call or an earlier one.
    func fence(_ tag: NodeTag, heir: NodeTag) async throws(LedgerError) -> Bool

    /// Begins a new epoch, unless this store is current already.
    ///
    ///     INSERT INTO epoch VALUES ((SELECT max(number) FROM epoch) + 1, store, now)
    ///     ON CONFLICT (store) DO UPDATE SET number = …, since = now
    ///     WHERE it is not current AND (the life AND NOT fenced AND its epoch = the current number
    ///         OR NOT EXISTS (a life that is NOT fenced AND whose epoch = the current number)
    ///             AND greatest(the current epoch's since, judge.since) + 15 s < now)
    ///
    /// A store that another one has replaced becomes current again only if nobody uses the other one: if a life asks for it that has
    /// registered under the other one and has left it, or if no life has registered under that in time. Without this, nodes that
    /// still see a former Redis and come late could make it current for good. A node that sees a former Redis for longer must not
    /// take the epoch back and forth.
    /// - Parameters:
    ///   - store: identifies what Redis remembers, as in ``Epoch/store``.
    ///   - tag: the life that asks.
    func beginEpoch(of store: String, by tag: NodeTag) async throws(LedgerError)

    /// Notes that a life has registered all its places under an epoch.
    ///
    ///     UPDATE node SET epoch = number WHERE node, life AND NOT fenced AND number = (SELECT max(number) FROM epoch)
    ///
    /// - Returns: whether it was noted. If not, there is another epoch, or the life is fenced: look.
    func register(_ tag: NodeTag, under epoch: Epoch) async throws(LedgerError) -> Bool

    /// Fences the lives that registered under an earlier epoch and have not registered under the current one in time, although they may
    /// renew their leases. A life that has never registered has no places, so nobody waits for it.
    ///
    ///     UPDATE node SET fenced = true, heir = …, void_from = now + 3 s
    ///     WHERE NOT fenced AND epoch <> the current number
    ///       AND greatest(started, the epoch's since, judge.since) + 15 s < now
    ///       AND EXISTS (SELECT … WHERE the heir's life AND NOT fenced AND epoch = the current number)
    func fenceUnregistered(heir: NodeTag) async throws(LedgerError)
}

/// An error of an operation of a ``Ledger``.
public struct LedgerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of errors.
    public enum Code: Hashable, Sendable {
        /// No answer came in time, or the connection failed. The operation may have been carried out. Retrying can help.
        case unreachable
        /// The ledger answered, but it cannot do this: a table or a permission is missing, or no life number is left. Retrying does
        /// not help until an operator has done something.
        case unusable
    }

    /// What kind of error this is.
    public var code: Code
    /// A sentence for the operator, with advice.
    public var message: String

    public init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }

    public var description: String { "\(message) (\(code))" }
}
