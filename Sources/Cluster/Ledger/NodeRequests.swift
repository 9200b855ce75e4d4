/// Lets one node request that another one is taken out of service, or put back. Except for media, nodes do not connect to each
/// other. So the request is in the ledger, and the other node finds it when it looks the next time, within about a second.
///
/// A life has at most one request; a later one replaces it. A failover of the ledger can lose a request, or that it was carried out.
public protocol NodeRequests: Sendable {
    /// Requests a state of a life.
    ///
    ///     INSERT INTO node_request SELECT life, state FROM node WHERE node, life AND NOT fenced
    ///     ON CONFLICT (life) DO UPDATE SET state = …
    ///
    /// - Returns: false if the life is fenced.
    func request(_ state: NodeRecord.State, of tag: NodeTag) async throws(LedgerError) -> Bool

    /// Notes that a life has carried a request out. Does nothing if another one has replaced it.
    ///
    ///     DELETE FROM node_request WHERE life AND state = …
    func noteCarriedOut(_ state: NodeRecord.State, by tag: NodeTag) async throws(LedgerError)
}
