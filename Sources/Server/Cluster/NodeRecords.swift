import Cluster

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What this node and the others publish about themselves in Redis.
///
/// Records are sealed with the project's secret. A person who can write to Redis can delete them, but cannot read, forge or replay
/// them. Nothing that must be right depends on them: without a node's record, the others only choose it less often.
struct NodeRecords {
    /// Why the record of a living node is ignored.
    enum Refusal: Equatable {
        /// It was not sealed with this node's secret, or is older than one that was read before.
        case sealed(NodeRecordSeal.Refusal)
        /// This release cannot read what it contains.
        case unreadable
    }

    /// What the records of the others say about this node's secret.
    enum SecretVerdict: Equatable {
        /// A record could be opened.
        case same
        /// There is no record.
        case unknown
        /// No record could be opened. These lives have another secret, or a stranger wrote their records.
        case different([NodeTag])
    }

    private var seal: NodeRecordSeal
    private var reader: NodeRecordReader
    private var lastNumber: UInt64 = 0
    /// The records of the other living nodes that could be read.
    private(set) var records: [NodeTag: NodeRecord] = [:]
    private var refused: Set<NodeTag> = []

    init(_ seal: NodeRecordSeal) { (self.seal, reader) = (seal, NodeRecordReader(seal)) }

    /// Replaces the secret, after the operator has rotated it.
    mutating func use(_ seal: NodeRecordSeal) {
        self.seal = seal
        reader.use(seal)
        refused = []
    }

    /// Returns the record of this node in the form for Redis.
    mutating func sealed(_ record: NodeRecord) throws -> [UInt8] {
        lastNumber += 1
        return try seal.seal(Array(JSONEncoder().encode(record)), of: record.tag, number: lastNumber)
    }

    /// Reads the records that were found in Redis. Those that are missing there do not count any more.
    ///
    /// - Parameter living: the other lives that are not fenced.
    /// - Returns: the records that are ignored for the first time.
    mutating func read(_ found: [NodeTag: [UInt8]], living: some Collection<NodeTag>) -> [(tag: NodeTag, Refusal)] {
        records = [:]
        reader.keep(living)
        refused.formIntersection(living)
        var refusals: [(tag: NodeTag, Refusal)] = []
        for tag in living.sorted(by: { $0.life < $1.life }) {
            guard let sealed = found[tag] else { continue }
            do {
                records[tag] = try open(sealed, of: tag)
                refused.remove(tag)
            } catch {
                if refused.insert(tag).inserted { refusals.append((tag, error)) }
            }
        }
        return refusals
    }

    private mutating func open(_ sealed: [UInt8], of tag: NodeTag) throws(Refusal) -> NodeRecord {
        let bytes: [UInt8]
        do {
            bytes = try reader.open(sealed, of: tag)
        } catch {
            throw .sealed(error)
        }
        guard let record = try? JSONDecoder().decode(NodeRecord.self, from: Data(bytes)), record.tag == tag else {
            throw .unreadable
        }
        return record
    }

    /// Compares this node's secret with that of the others, before it begins to act.
    static func compare(_ seal: NodeRecordSeal, with found: [NodeTag: [UInt8]]) -> SecretVerdict {
        guard !found.isEmpty else { return .unknown }
        for (tag, sealed) in found where (try? seal.open(sealed, of: tag)) != nil { return .same }
        return .different(found.keys.sorted { $0.node < $1.node })
    }

    // MARK: Choosing

    /// Returns the node on which to create a machine that may be anywhere, if that is not this node: this one is busy or draining, and
    /// another one is not.
    func choice(insteadOf own: NodeRecord, using random: inout some RandomNumberGenerator) -> NodeTag? {
        guard own.state == .draining || own.load.share >= NodeChoice.loadLimit,
            let tag = NodeChoice.choose(from: Array(records.values), region: own.region, using: &random),
            let other = records[tag], other.load.share < NodeChoice.loadLimit
        else { return nil }
        return tag
    }
}

extension NodeRecords.Refusal: Error {}

extension NodeRecords.Refusal: CustomStringConvertible {
    /// Why the record is ignored, as the end of a sentence for the operator.
    var description: String {
        switch self {
        case .sealed(.forged): "that node has another project secret, or something else wrote the record"
        case .sealed(.tooLarge): "it is too large, so something else wrote it"
        case .sealed(.replayed): "something else has written an old record again"
        case .unreadable: "that node runs another release"
        }
    }
}

/// This node has another project secret than the nodes that run.
public struct NodeSecretDiffers: Error, CustomStringConvertible {
    let nodes: [NodeTag]

    public var description: String {
        let names = nodes.map { "node \($0.node)" }.joined(separator: ", ")
        return """
            The records of the other nodes in Redis (\(names)) cannot be opened with this node's project secret. Copy project.json \
            from one of them to this node's data directory.
            """
    }
}

/// This machine's clock differs from that of PostgreSQL by more than ``ClockCheck/maxAtStart``.
public struct NodeClockDiffers: Error, CustomStringConvertible {
    /// Positive if this machine's clock is ahead.
    let difference: Duration

    public var description: String {
        let side = difference > .zero ? "ahead of" : "behind"
        let seconds = max(difference, .zero - difference).components.seconds
        return """
            This machine's clock is about \(seconds) seconds \(side) that of PostgreSQL. Set the clocks of all machines with NTP, and \
            start this node again.
            """
    }
}
