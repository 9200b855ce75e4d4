import NIOCore

#if canImport(Glibc)
import Glibc
#endif

/// What one node does each second while Redis is measured. The events of each kind come at random, independently of each other (a
/// Poisson process), as those of many people do.
struct Traffic {
    /// When a node posts.
    enum Turns {
        /// All letters of this much time at once. Letters wait for the commit of their turn, so a node posts once for each commit.
        case every(TimeAmount)
        /// Each letter for itself, in an entry of its own: the worst case.
        case ofOneLetter
    }

    /// How many seconds a person stays, on average. With the number of people it determines how many arrive, each of whom claims a
    /// place, and how many leave, each of whom releases one.
    static let stay = 1200.0
    /// The places that are looked up for a person who comes and one who goes: those of their contacts, five for each. An assumption:
    /// strangers in the roulette have none, and people who call each other have more.
    static let lookUps = 10
    /// The letters that follow each other to one node in a turn, and share an entry. An assumption; the other measurement shows
    /// what it is worth.
    static let run = 2

    /// The letters that the node posts.
    let letters: Double
    let turns: Turns
    let nodes: Int

    /// - Parameter letters: the letters that all nodes together post in a second.
    init(letters: Int, nodes: Int, turns: Turns) {
        (self.letters, self.turns, self.nodes) = (Double(letters) / Double(nodes), turns, nodes)
    }

    var name: String {
        switch turns {
        case .every(let turn): "a turn each \(turn.nanoseconds / 1_000_000) ms"
        case .ofOneLetter: "one letter in a turn"
        }
    }

    /// Returns the time until the next of events of which this many happen in a second.
    static func gap(perSecond rate: Double, using random: inout SplitMix64) -> TimeAmount {
        // No gap is longer than an hour, however rare the events are.
        let seconds = min(3600, -log(1 - Double.random(in: 0..<1, using: &random)) / rate)
        return .nanoseconds(Int64(seconds * 1e9))
    }
}
