import Signaling

/// Takes over the calls of nodes whose lives are over.
///
/// If the answer of storage is lost, the calls may belong to this node already, and storage no longer lists them for the other
/// life. So the calls of each attempt are kept until an answer arrives.
actor CallTakeover {
    /// Returns the calls of a life.
    let openCalls: @Sendable (_ life: UInt32) async throws -> [StoredCall]
    /// Reads what is needed to restore these calls.
    let restoring: @Sendable ([StoredCall]) async throws -> [Input]
    /// Makes the calls of a life this node's. Returns all calls of this node.
    let takeOver: @Sendable (_ life: UInt32) async throws -> [StoredCall]
    private var attempted: [UInt32: [StoredCall]] = [:]

    init(
        openCalls: @escaping @Sendable (UInt32) async throws -> [StoredCall],
        restoring: @escaping @Sendable ([StoredCall]) async throws -> [Input],
        takeOver: @escaping @Sendable (UInt32) async throws -> [StoredCall]
    ) {
        (self.openCalls, self.restoring, self.takeOver) = (openCalls, restoring, takeOver)
    }

    /// Takes over the calls of a life. If this throws, it can be repeated.
    ///
    /// - Returns: the inputs that restore the calls which this node has now.
    func inputs(of life: UInt32) async throws -> [Input] {
        let open = try await openCalls(life)
        let calls = open + attempted[life, default: []].filter { call in !open.contains { $0.id == call.id } }
        guard !calls.isEmpty else { return [] }
        // Read everything first: what fails before the calls are taken over can be repeated.
        let inputs = try await restoring(calls)
        attempted[life] = calls
        // Another node may have taken them over in between.
        let taken = Set(try await takeOver(life).map(\.id))
        attempted[life] = nil
        return inputs.filter { if case .restored(let call, _, _) = $0 { taken.contains(call.id) } else { false } }
    }
}
