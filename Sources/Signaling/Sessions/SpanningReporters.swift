import Cluster
import Wire

/// The two people of a match that spans nodes, who may report each other.
struct SpanningReporters: Equatable, Sendable {
    let match: MatchID
    /// The node of each of the two.
    let people: [IdentityID: NodeTag]

    /// Whether the reporter is one of the two, is on the given node, and reports the other one.
    func permits(_ report: Report, from node: NodeTag) -> Bool {
        people[report.by] == node && report.against != report.by && people[report.against] != nil
    }
}
