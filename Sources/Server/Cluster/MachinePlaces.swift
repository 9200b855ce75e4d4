import Cluster
import Signaling

/// Where the machines are that exist once in a cluster.
///
/// `HubRunner` calls this on its event loop, after all changes that the hub has made before are stored. The answer to each
/// `reach` is one input for the runner: `claimed`, `placed`, `unplaced` or `placesUnavailable`. It must not be submitted
/// before `reach` has returned.
protocol MachinePlaces: AnyObject {
    /// Asks where a machine is.
    ///
    /// - Parameters:
    ///   - machine: whose stored state to read after a claim, for `Input.claimed`.
    ///   - claims: whether this node takes the place if no living node has it. If this node already has the place, the
    ///     answer is `claimed` too.
    func reach(_ key: PlaceKey, _ machine: PlacedMachine, claims: Bool)

    /// Gives a place up, if this node has it. A later `reach` must not overtake this.
    func release(_ key: PlaceKey)
}
