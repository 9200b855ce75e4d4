import Cluster
import Signaling
import TestSupport
import Wire

/// A model of the registry of places and of its clients on the nodes: it takes time, can be away, and voids the places of a life
/// that is over.
///
/// Questions of one node are carried out in order, and so are the answers, as on one connection. A release that cannot be
/// carried out while the registry is away follows later.
struct SimulatedRegistry {
    /// Something that arrives at the registry, or an answer that arrives at a node.
    enum Step {
        case reach(PlaceKey, PlacedMachine, claims: Bool)
        case release(PlaceKey)
        case answer(Input)
    }

    struct Due {
        var at: Timestamp
        var node: NodeTag
        var step: Step
    }

    private(set) var places: [PlaceKey: NodeTag] = [:]
    /// In the order in which they happen.
    private var due: [Due] = []
    private var released: [(PlaceKey, NodeTag)] = []
    private(set) var isAway = false
    /// The lives that are over.
    private var fenced: Set<NodeTag> = []
    /// How long a message to or from the registry takes, in milliseconds.
    var delay = 0...2
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    var nextDue: Timestamp? { due.first?.at }

    /// Takes an effect of a node.
    mutating func carryOut(_ effect: Effect, of node: NodeTag, now: Timestamp) {
        switch effect {
        case .reach(let key, let machine, let claims): add(.reach(key, machine, claims: claims), node, now)
        case .releasePlace(let key): add(.release(key), node, now)
        default: break
        }
    }

    private mutating func add(_ step: Step, _ node: NodeTag, _ now: Timestamp) {
        var at = now + .milliseconds(Int.random(in: delay, using: &random))
        let isAnswer = if case .answer = step { true } else { false }
        // Nothing overtakes on one connection.
        for other in due where other.node == node {
            let isSameWay = if case .answer = other.step { isAnswer } else { !isAnswer }
            if isSameWay { at = max(at, other.at) }
        }
        let index = due.firstIndex { $0.at > at } ?? due.count
        due.insert(Due(at: at, node: node, step: step), at: index)
    }

    /// Performs the next step, if it is due. Returns the answer that arrives at a node, if that is the step.
    ///
    /// - Parameter stored: what storage keeps for a machine.
    mutating func takeDue(_ now: Timestamp, stored: (PlacedMachine) -> StoredState) -> (NodeTag, Input)? {
        guard let first = due.first, first.at <= now else { return nil }
        due.removeFirst()
        // The registry refuses whatever a life that is over has sent.
        guard !fenced.contains(first.node) else { return nil }
        switch first.step {
        case .answer(let input): return (first.node, input)
        case .release(let key):
            if isAway { released.append((key, first.node)) } else { release(key, first.node) }
        case .reach(let key, let machine, let claims):
            add(.answer(answer(key, machine, claims, first.node, stored)), first.node, now)
        }
        return nil
    }

    private mutating func answer(
        _ key: PlaceKey, _ machine: PlacedMachine, _ claims: Bool, _ node: NodeTag,
        _ stored: (PlacedMachine) -> StoredState
    ) -> Input {
        if let origin = key.origin, !fenced.contains(origin) { return .placed(key, at: origin) }
        if isAway { return .placesUnavailable(key) }
        if let holder = places[key], holder != node { return .placed(key, at: holder) }
        guard claims else { return places[key] == nil ? .unplaced(key) : .claimed(key, stored(machine)) }
        places[key] = node
        return .claimed(key, stored(machine))
    }

    private mutating func release(_ key: PlaceKey, _ node: NodeTag) { if places[key] == node { places[key] = nil } }

    /// The life is over: its places are void, and nothing that it sent happens anymore.
    mutating func fence(_ node: NodeTag) {
        fenced.insert(node)
        places = places.filter { $0.value != node }
        released.removeAll { $0.1 == node }
    }

    /// The node has stopped. What it sent may still arrive, but no answer does.
    mutating func forget(_ node: NodeTag) {
        due.removeAll { due in
            guard due.node == node else { return false }
            return if case .answer = due.step { true } else { false }
        }
    }

    mutating func setAway(_ isAway: Bool) {
        self.isAway = isAway
        guard !isAway else { return }
        for (key, node) in released { release(key, node) }
        released = []
    }

    /// Gives a place to another node, as after the registry has forgotten it.
    mutating func give(_ key: PlaceKey, to node: NodeTag) { places[key] = node }
}
