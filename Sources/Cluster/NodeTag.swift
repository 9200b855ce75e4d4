/// Identifies one life of a node: the node's number, and a number that is taken once for each start.
///
/// A tag is 40 bits: 16 for the node and 24 for the life. It is the beginning of the ids that the node creates, so every node
/// knows from an id where its state machine is.
public struct NodeTag: Hashable, Sendable, CustomStringConvertible {
    /// The node's number from the configuration, from 1.
    public let node: UInt16
    /// The number of the start, from 1. Lives are numbered across all nodes, and no number is used twice.
    public let life: UInt32

    /// The largest number of a life.
    public static let lastLife: UInt32 = 1 << 24 - 1

    /// Creates a tag. Returns nil if a number is zero or too large.
    public init?(node: UInt16, life: UInt32) {
        guard node > 0, (1...Self.lastLife).contains(life) else { return nil }
        (self.node, self.life) = (node, life)
    }

    /// Creates a tag from its 40 bits. Returns nil if a number is zero, or if there are more bits.
    public init?(rawValue: UInt64) {
        guard rawValue >> 40 == 0 else { return nil }
        self.init(node: UInt16(rawValue >> 24), life: UInt32(rawValue & UInt64(Self.lastLife)))
    }

    /// Parses the text of ``description``. Returns nil for any other text.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let node = UInt16(parts[0]), let life = UInt32(parts[1]) else { return nil }
        self.init(node: node, life: life)
        guard description == text else { return nil }
    }

    /// The node's number in the upper 16 bits, the life in the lower 24.
    public var rawValue: UInt64 { UInt64(node) << 24 | UInt64(life) }

    /// The two numbers, such as `2-17` for the 17th life, which is one of node 2.
    public var description: String { "\(node)-\(life)" }

    /// The name of the node in messages to clients, such as `n2`.
    public var nodeName: String { "n\(node)" }
}

extension NodeTag: Codable {
    /// Reads the text of ``description``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let tag = NodeTag(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "This is no tag of a node.")
        }
        self = tag
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
