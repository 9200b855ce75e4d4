/// A life's claim of a place, as it is stored under the place's key.
public struct PlaceClaim: Hashable, Sendable, CustomStringConvertible {
    /// The life that has the place.
    public let tag: NodeTag
    /// Counts the claims of that life. So a release that arrives late does not remove a newer claim of the same life.
    public let number: UInt64

    /// Creates a claim.
    public init(tag: NodeTag, number: UInt64) { (self.tag, self.number) = (tag, number) }

    /// Parses the text of ``description``. Returns nil for any other text.
    public init?(_ text: String) {
        guard let dot = text.lastIndex(of: "."), let tag = NodeTag(text[..<dot]),
            let number = UInt64(text[text.index(after: dot)...])
        else { return nil }
        self.init(tag: tag, number: number)
        guard description == text else { return nil }
    }

    /// The value in Redis: the tag, a dot and the number, such as `2-17.5`.
    public var description: String { "\(tag).\(number)" }
}

/// What a node asks of the table of places. Each is one script in Redis, so it is carried out wholly, and in one order with others.
public enum PlaceCommand: Hashable, Sendable {
    /// Claims a place, unless another life has it that is not among `void`. `epoch` is the number of the current epoch.
    case claim(PlaceKey, PlaceClaim, epoch: UInt64, void: [NodeTag])
    /// Reads who has a place.
    case find(PlaceKey, epoch: UInt64)
    /// Removes this claim, if the place still has it.
    case release(PlaceKey, PlaceClaim)
    /// Enters claims of an earlier epoch under a new one. The node sends its claims in several commands.
    case register([PlaceKey: PlaceClaim], epoch: UInt64, void: [NodeTag])
}

/// The answer to a ``PlaceCommand``.
public enum PlaceReply: Hashable, Sendable {
    /// The place has the claim, or had it already.
    case claimed
    /// Another claim has the place, or nobody: the answer to ``PlaceCommand/find(_:epoch:)``, and to a claim that was refused.
    case held(PlaceClaim?)
    /// The claim is not there, whether or not it was before.
    case released
    /// The claims are entered, except those of places that other lives have.
    case registered(taken: [PlaceKey: PlaceClaim])
    /// Nothing was done. The table is of another epoch, or of none because Redis forgot it.
    case otherEpoch(UInt64?)
}

/// What the scripts in Redis do, as a value. The tests use it as a model of Redis, and compare the scripts with it.
///
/// In Redis the epoch is the key `epoch`, and each claim is a key `place:<kind>:<id>`, all behind one prefix.
public struct PlaceStore: Hashable, Sendable {
    /// The number of the epoch in which claims are accepted. Nil until a life registers.
    public private(set) var epoch: UInt64?
    /// Who has which place.
    public private(set) var claims: [PlaceKey: PlaceClaim] = [:]

    /// Creates an empty table.
    public init() {}

    /// Carries out a command.
    public mutating func handle(_ command: PlaceCommand) -> PlaceReply {
        switch command {
        case .claim(let key, let claim, let epoch, let void):
            guard epoch == self.epoch else { return .otherEpoch(self.epoch) }
            guard enter(claim, at: key, void: void) else { return .held(claims[key]) }
            return .claimed
        case .find(let key, let epoch):
            guard epoch == self.epoch else { return .otherEpoch(self.epoch) }
            return .held(claims[key])
        case .release(let key, let claim):
            if claims[key] == claim { claims[key] = nil }
            return .released
        case .register(let entries, let epoch, let void):
            if let known = self.epoch, known > epoch { return .otherEpoch(known) }
            self.epoch = epoch
            return .registered(
                taken: entries.filter { !enter($0.value, at: $0.key, void: void) }.compactMapKeys(claims))
        }
    }

    /// Enters a claim. Returns false if another life has the place, or the same life with a newer claim.
    private mutating func enter(_ claim: PlaceClaim, at key: PlaceKey, void: [NodeTag]) -> Bool {
        if let holder = claims[key] {
            let isOlder = holder.tag == claim.tag && holder.number <= claim.number
            guard isOlder || void.contains(holder.tag) else { return false }
        }
        claims[key] = claim
        return true
    }

    /// Forgets some claims, like a failover to a replica that had not received them. For models.
    ///
    /// - Parameter lost: is called for the keys in their order, so that a model that uses random numbers here repeats.
    public mutating func forget(where lost: (PlaceKey) -> Bool) {
        for key in claims.keys.sorted(by: { $0.description < $1.description }) where lost(key) { claims[key] = nil }
    }
}

extension [PlaceKey: PlaceClaim] {
    /// Returns the claims that `holders` has under these keys.
    fileprivate func compactMapKeys(_ holders: [PlaceKey: PlaceClaim]) -> [PlaceKey: PlaceClaim] {
        holders.filter { self[$0.key] != nil }
    }
}
