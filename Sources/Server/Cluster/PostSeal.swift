import Cluster
import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Seals the entries that a life posts to another in Redis: AES-256-GCM, with a key for each pair of lives that is derived from the
/// project's secret (HKDF, RFC 5869).
///
/// Who can write into Redis can neither read nor forge an entry, and an entry opens only for the life that it was posted to. That
/// it is not repeated is what ``PostInbox`` sees to, by the authenticated position.
///
/// A sealed entry is a version (1 byte), the position (series, 4 bytes; number, 8 bytes; the most significant first), the ciphertext
/// and the authentication tag (16 bytes). The first byte of the plaintext says what it contains: 0 letters, 1 a request for a new series,
/// followed by the series.
///
/// The position is also the nonce (NIST SP 800-38D, section 8.2.1): a life posts to another at most one entry with a position, and
/// keeps it for appending it again. Random nonces would allow only 2³² entries for a key.
struct PostSeal: Sendable {
    /// The entry was not posted by this life to that one with this project's secret, or it was changed.
    struct Forged: Error, Equatable, Sendable {}

    /// The largest sealed entry in bytes.
    static let maxSize = 256 << 10
    /// The most bytes of letters in an entry.
    static let maxLetters = maxSize - headerSize - tagSize - 1
    private static let version: UInt8 = 1
    private static let headerSize = 13
    private static let tagSize = 16
    /// Keeps these keys apart from those for other purposes.
    private static let purpose = "confab post 1"

    private let key: SymmetricKey
    private let formerKey: SymmetricKey?

    /// - Parameters:
    ///   - secret: the project's secret.
    ///   - former: the secret before the last rotation, which still opens entries.
    ///   - sender: the life that posts.
    ///   - receiver: the life that reads.
    init(secret: String, former: String? = nil, from sender: NodeTag, to receiver: NodeTag) {
        func derived(_ secret: String) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: Data(secret.utf8)),
                info: Data(Self.purpose.utf8) + Self.bytes(sender.rawValue) + Self.bytes(receiver.rawValue),
                outputByteCount: 32)
        }
        key = derived(secret)
        formerKey = former.map(derived)
    }

    /// Seals an entry.
    func seal(_ content: PostContent, at position: PostPosition) throws -> [UInt8] {
        let header = Self.header(position)
        let nonce = try AES.GCM.Nonce(data: header.dropFirst())
        let box = try AES.GCM.seal(Data(Self.plaintext(content)), using: key, nonce: nonce, authenticating: header)
        return Array(header + box.ciphertext + box.tag)
    }

    /// Opens an entry. One that is larger than ``maxSize`` is refused without a look at it.
    func open(_ sealed: [UInt8]) throws(Forged) -> (position: PostPosition, content: PostContent) {
        guard sealed.count <= Self.maxSize, sealed.count > Self.headerSize + Self.tagSize, sealed[0] == Self.version
        else { throw Forged() }
        let header = Data(sealed.prefix(Self.headerSize))
        let ciphertext = Data(sealed.dropFirst(Self.headerSize).dropLast(Self.tagSize))
        let tag = Data(sealed.suffix(Self.tagSize))
        for key in [key, formerKey].compactMap(\.self) {
            guard let nonce = try? AES.GCM.Nonce(data: header.dropFirst()),
                let box = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag),
                let plaintext = try? AES.GCM.open(box, using: key, authenticating: header)
            else { continue }
            let number = { (bytes: ArraySlice<UInt8>) in bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
            let position = PostPosition(
                series: UInt32(truncatingIfNeeded: number(sealed[1..<5])), number: number(sealed[5..<13]))
            return (position, try Self.content(Array(plaintext)))
        }
        throw Forged()
    }

    private static func plaintext(_ content: PostContent) -> [UInt8] {
        switch content {
        case .letters(let bytes): [0] + bytes
        case .reset(let series): [1] + bytes(series)
        }
    }

    private static func content(_ plaintext: [UInt8]) throws(Forged) -> PostContent {
        switch plaintext.first {
        case 0: return .letters(Array(plaintext.dropFirst()))
        case 1 where plaintext.count == 5:
            return .reset(series: plaintext.dropFirst().reduce(0) { $0 << 8 | UInt32($1) })
        default: throw Forged()
        }
    }

    private static func header(_ position: PostPosition) -> Data {
        Data([version] + bytes(position.series) + bytes(position.number))
    }

    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}
