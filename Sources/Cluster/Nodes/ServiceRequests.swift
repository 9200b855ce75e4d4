/// Carries out what an operator has requested of this node through another one (``NodeRequests``), once for each request.
///
/// The request stays in the ledger until this node has noted there that it is carried out. If that fails, later views still have the
/// request. It is not carried out again, because an operator may have changed this node since.
public struct ServiceRequests: Sendable {
    /// What the shell has to do.
    public enum Effect: Hashable, Sendable {
        /// Take this node out of service, or put it back.
        case change(NodeRecord.State)
        /// Call ``NodeRequests/noteCarriedOut(_:by:)`` with this node's life.
        case note(NodeRecord.State)
    }

    /// The request that was carried out and that the last view still had.
    private var last: NodeRecord.State?

    /// Creates a value for a life that has carried out nothing.
    public init() {}

    /// Handles a view of the ledger.
    ///
    /// - Parameter requested: the request in the row of this life; nil for none.
    public mutating func looked(_ requested: NodeRecord.State?) -> [Effect] {
        defer { last = requested }
        guard let requested else { return [] }
        return requested == last ? [.note(requested)] : [.change(requested), .note(requested)]
    }
}
