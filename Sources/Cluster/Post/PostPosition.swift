/// The position of an entry among those that one life posts to another.
///
/// Entries are numbered from 1 in each series. A new series begins when entries of the one before were lost.
public struct PostPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number of the series, from 1.
    public var series: UInt32
    /// The number of the entry in its series, from 1.
    public var number: UInt64

    /// Creates a position. The first one is 1 in series 1.
    public init(series: UInt32 = 1, number: UInt64 = 1) { (self.series, self.number) = (series, number) }

    public static func < (left: PostPosition, right: PostPosition) -> Bool {
        (left.series, left.number) < (right.series, right.number)
    }

    public var description: String { "\(series).\(number)" }
}

/// An entry that is appended to the stream of the life that reads it.
public struct PostEntry: Hashable, Sendable {
    /// The life that reads it.
    public var receiver: NodeTag
    /// Its position among the entries that this life posts to `receiver`.
    public var position: PostPosition
    /// What it says.
    public var content: PostContent
}

/// What an entry says.
public enum PostContent: Hashable, Sendable {
    /// Letters, encoded. Empty if the entry only shows its position.
    case letters([UInt8])
    /// Entries of this series were lost on their way to the life that sends this. The receiver of this begins a new series.
    case reset(series: UInt32)

    /// Whether this is a request for a new series.
    var isReset: Bool { if case .reset = self { true } else { false } }

    /// The size that counts for limits, in bytes.
    var size: Int {
        switch self {
        case .letters(let bytes): bytes.count + 32
        case .reset: 32
        }
    }
}
