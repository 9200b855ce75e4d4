/// Chooses the node for a state machine that may be anywhere: a room, the hall, the directory.
///
/// It takes the less loaded of two random nodes. The records are up to a second old, so the least loaded of all would be chosen by
/// everybody at once.
public enum NodeChoice {
    /// A node with more load takes no further state machines, unless all have more.
    public static let loadLimit = 0.7

    /// Returns the node to choose, or nil if no node of the region serves.
    ///
    /// - Parameters:
    ///   - records: those of lives that have not ended.
    ///   - region: the region of the person for whom the state machine is created.
    public static func choose(
        from records: [NodeRecord], region: String, using random: inout some RandomNumberGenerator
    ) -> NodeTag? {
        let serving = records.filter { $0.state == .serving && $0.region == region }
        let free = serving.filter { $0.load.share < loadLimit }
        let candidates = free.isEmpty ? serving : free
        guard let first = candidates.randomElement(using: &random) else { return nil }
        guard let second = candidates.filter({ $0.tag != first.tag }).randomElement(using: &random) else {
            return first.tag
        }
        return second.load.share < first.load.share ? second.tag : first.tag
    }
}
