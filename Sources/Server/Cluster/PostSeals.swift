import Cluster

/// The project's secret, from which the keys of nodes are derived, and the one before the last rotation while it still counts.
struct SealingSecrets: Equatable, Sendable {
    var current: String
    /// Still opens what was sealed with it; nil if it does not count any more.
    var former: String?

    init(current: String, former: String? = nil) { (self.current, self.former) = (current, former) }
}

/// The seals of one life for all others with which it exchanges entries.
struct PostSeals {
    private let tag: NodeTag
    private var secrets: SealingSecrets
    private var sealing: [NodeTag: PostSeal] = [:]
    private var opening: [NodeTag: PostSeal] = [:]

    init(of tag: NodeTag, _ secrets: SealingSecrets) { (self.tag, self.secrets) = (tag, secrets) }

    /// Replaces the secrets, after the operator has rotated them.
    mutating func use(_ secrets: SealingSecrets) {
        guard secrets != self.secrets else { return }
        self = PostSeals(of: tag, secrets)
    }

    /// Forgets the seals for a life that has ended.
    mutating func forget(_ life: NodeTag) { (sealing[life], opening[life]) = (nil, nil) }

    mutating func seal(_ entry: PostEntry) throws -> [UInt8] {
        let seal = sealing[entry.receiver] ?? seal(from: tag, to: entry.receiver)
        sealing[entry.receiver] = seal
        return try seal.seal(entry.content, at: entry.position)
    }

    /// Opens what `sender` is said to have posted to this life.
    mutating func open(
        _ sealed: [UInt8], from sender: NodeTag
    ) throws(PostSeal.Forged) -> (position: PostPosition, content: PostContent) {
        let seal = opening[sender] ?? seal(from: sender, to: tag)
        let opened = try seal.open(sealed)
        // Who writes into Redis can name any life, so a seal is remembered only after it has opened something.
        opening[sender] = seal
        return opened
    }

    private func seal(from sender: NodeTag, to receiver: NodeTag) -> PostSeal {
        PostSeal(secret: secrets.current, former: secrets.former, from: sender, to: receiver)
    }
}
