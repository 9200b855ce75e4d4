import Cluster
import Crypto
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Seals what a node publishes about itself in Redis: AES-256-GCM, with a key that is derived from the project's secret (HKDF,
/// RFC 5869). A person who can write to Redis can delete a record, but neither read nor forge one.
///
/// A sealed record is a version (one byte), the record's number (8 bytes, the most significant first), a random nonce (12 bytes),
/// the ciphertext, and the authentication tag (16 bytes). The version, the number and the node's tag are authenticated too.
struct NodeRecordSeal: Sendable {
    /// Why a record is refused.
    enum Refusal: Error, Equatable, Sendable {
        /// It was not sealed by this life with this project's secret, or it was changed.
        case forged
        /// It is larger than ``maxSize``.
        case tooLarge
        /// A newer one of this life was opened before.
        case replayed
    }

    /// The largest sealed record in bytes. A record has some hundred bytes.
    static let maxSize = 16_384
    private static let version: UInt8 = 1
    private static let headerSize = 9
    /// Keeps this key apart from those for other purposes.
    private static let purpose = "confab node record 1"

    private let key: SymmetricKey
    private let formerKey: SymmetricKey?

    /// - Parameters:
    ///   - secret: the project's secret.
    ///   - former: the secret before the last rotation, which still opens records.
    init(secret: String, former: String? = nil) {
        key = Self.key(secret)
        formerKey = former.map(Self.key)
    }

    init(_ secrets: SealingSecrets) { self.init(secret: secrets.current, former: secrets.former) }

    private static func key(_ secret: String) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: Data(secret.utf8)), info: Data(purpose.utf8), outputByteCount: 32)
    }

    /// Seals a record.
    ///
    /// - Parameters:
    ///   - tag: the life that publishes it.
    ///   - number: larger than that of each earlier record of this life.
    func seal(_ record: [UInt8], of tag: NodeTag, number: UInt64) throws -> [UInt8] {
        let header = Self.header(number)
        // A random nonce is enough: a life seals two records a second.
        let box = try AES.GCM.seal(Data(record), using: key, authenticating: Data(header + Self.bytes(tag.rawValue)))
        guard let combined = box.combined, header.count + combined.count <= Self.maxSize else {
            throw Refusal.tooLarge
        }
        return header + Array(combined)
    }

    /// Opens a record that is said to be of this life.
    func open(_ sealed: [UInt8], of tag: NodeTag) throws(Refusal) -> (number: UInt64, record: [UInt8]) {
        guard sealed.count <= Self.maxSize else { throw .tooLarge }
        guard sealed.count > Self.headerSize, sealed[0] == Self.version else { throw .forged }
        let header = sealed.prefix(Self.headerSize)
        let authenticated = Data(header + Self.bytes(tag.rawValue))
        for key in [key, formerKey].compactMap(\.self) {
            guard let box = try? AES.GCM.SealedBox(combined: Data(sealed.dropFirst(Self.headerSize))),
                let record = try? AES.GCM.open(box, using: key, authenticating: authenticated)
            else { continue }
            return (header.dropFirst().reduce(0) { $0 << 8 | UInt64($1) }, Array(record))
        }
        throw .forged
    }

    private static func header(_ number: UInt64) -> [UInt8] { [version] + bytes(number) }

    private static func bytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}

/// Opens the records of other nodes, and refuses those that are older than one that was opened before.
struct NodeRecordReader: Sendable {
    /// More than the lives that a ledger's view has.
    private static let maxLives = 4096

    private var seal: NodeRecordSeal
    /// The largest number of each life's records.
    private var newest: [NodeTag: UInt64] = [:]

    init(_ seal: NodeRecordSeal) { self.seal = seal }

    /// Replaces the secret.
    mutating func use(_ seal: NodeRecordSeal) { self.seal = seal }

    /// Opens a record. The newest one can be opened again.
    mutating func open(_ sealed: [UInt8], of tag: NodeTag) throws(NodeRecordSeal.Refusal) -> [UInt8] {
        let (number, record) = try seal.open(sealed, of: tag)
        guard number >= newest[tag] ?? 0 else { throw .replayed }
        newest[tag] = number
        return record
    }

    /// Forgets lives that have ended. Their records are not wanted any more.
    mutating func keep(_ living: some Collection<NodeTag>) {
        let living = Set(living.prefix(Self.maxLives))
        newest = newest.filter { living.contains($0.key) }
    }
}
