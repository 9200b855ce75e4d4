import Cluster
import Foundation
import Logging

/// A life of this server as a node of a cluster, from its beginning in the ledger. It holds the lock of the data directory.
///
/// The data directory remembers the life, so that the next start can prove that this one has ended: it holds the same lock. Other
/// nodes then need not wait until the lease of the earlier life expires.
public struct NodeLife: Sendable {
    let tag: NodeTag
    /// The life that the data directory had before; nil if it had none, or if the directory is a copy.
    let former: NodeTag?
    let ledger: PostgresLedger
    let lock: DirectoryLock
    /// Renews the lease until the node does.
    let renewal: StartupRenewal

    /// How long to wait for an earlier life with the same node number, which this server cannot prove to have ended.
    private static let longestWait = Duration.seconds(15)

    /// Begins a life. Returns nil if the configuration is not that of a node.
    ///
    /// - Throws: `DataDirectoryError`, ``StorageError``, `LedgerError`, or ``NodeNumberInUse`` if another server has the node's number.
    public static func begin(_ configuration: ConfabConfiguration, logger: Logger) async throws -> NodeLife? {
        guard let node = configuration.cluster.node, let url = configuration.storage.url else { return nil }
        let directory = configuration.dataDirectory
        let lock = try DirectoryLock(directory: directory, timeout: configuration.storage.lockTimeout) {
            logger.notice("\($0)")
        }
        let file = NodeLifeFile(directory: directory)
        let former = file.read().flatMap { $0.node == node ? $0 : nil }
        let end = ContinuousClock.now + max(longestWait, configuration.storage.busyTimeout)
        let ledger = try await connect(to: url, until: end, logger)
        do {
            let tag = try await begin(node, former: former, in: ledger, until: end, logger)
            let renewal = StartupRenewal(of: tag, in: ledger)
            try file.write(tag)
            logger.info("This node has begun a life", metadata: ["node": "\(tag.node)", "life": "\(tag.life)"])
            return NodeLife(tag: tag, former: former, ledger: ledger, lock: lock, renewal: renewal)
        } catch {
            await ledger.close()
            throw error
        }
    }

    /// Connects to PostgreSQL, which may start after this server.
    private static func connect(
        to url: SecretText, until end: ContinuousClock.Instant, _ logger: Logger
    ) async throws -> PostgresLedger {
        var isLogged = false
        while true {
            do {
                return try PostgresLedger(url: url)
            } catch let error as StorageError where error.code == .unreachable && ContinuousClock.now < end {
                if !isLogged { logger.warning("\(error.message) The node waits for it.") }
                isLogged = true
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }

    private static func begin(
        _ node: UInt16, former: NodeTag?, in ledger: PostgresLedger, until end: ContinuousClock.Instant,
        _ logger: Logger
    ) async throws -> NodeTag {
        var isLogged = false
        while true {
            do {
                switch try await ledger.begin(node: node, former: former) {
                case .begun(let tag): return tag
                case .held(let holder, let duration):
                    guard ContinuousClock.now < end else {
                        throw NodeNumberInUse(description: try await ledger.explainHolder(holder))
                    }
                    if !isLogged {
                        logger.notice("Waiting for the lease of an earlier life of node \(node) (life \(holder.life))")
                    }
                    isLogged = true
                    try await Task.sleep(for: max(.milliseconds(50), min(duration, .seconds(1))))
                }
            } catch let error as LedgerError where error.code == .unreachable && ContinuousClock.now < end {
                logger.warning("\(error.message) The node waits for it.")
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }
}

/// Another server has this node's number.
public struct NodeNumberInUse: Error, CustomStringConvertible {
    /// Which server has the number, and what to do.
    public let description: String
}

/// This node was declared dead, because it could not renew its lease in time. Its state is void. The server can run again, as
/// another life.
public struct NodeFenced: Error, CustomStringConvertible {
    /// Whether the node has acted in that life, so that its clients were answered.
    let hasActed: Bool

    public var description: String {
        "This node was declared dead, because it did not reach PostgreSQL in time. It begins again."
    }
}

/// The file `node.life` in the data directory: the life that this directory had last.
///
/// It contains its own inode number. In a copy of the directory that number is wrong, so a copy proves nothing about the life of
/// the original, which may be running.
struct NodeLifeFile {
    static let fileName = "node.life"
    let path: String

    init(directory: String) { path = directory + "/" + Self.fileName }

    /// Returns the life; nil if there is no file, or if it is a copy or damaged.
    func read() -> NodeTag? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8), let inode else { return nil }
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 2, words[1] == "\(inode)" else { return nil }
        return NodeTag(words[0])
    }

    /// - Throws: `DataDirectoryError` if the file cannot be written.
    func write(_ tag: NodeTag) throws(DataDirectoryError) {
        do {
            if inode == nil { try Data().write(to: URL(fileURLWithPath: path)) }
            guard let inode else { throw CocoaError(.fileWriteUnknown) }
            // Not atomically, which would make another file with another inode. A file that is cut off is not read.
            try Data("\(tag) \(inode)\n".utf8).write(to: URL(fileURLWithPath: path))
        } catch {
            throw DataDirectoryError("Cannot write \(path): \(error.localizedDescription) Check its permissions.")
        }
    }

    private var inode: UInt64? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.systemFileNumber] as? NSNumber)?.uint64Value
    }
}
