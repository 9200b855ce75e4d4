#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Crypto
import Signaling

/// The file `server.key` in the data directory: the key that creates session IDs, identity secrets and public person
/// IDs, as one line of base64. It is written once and never changed.
enum ServerKeyFile {
    static let fileName = "server.key"

    /// Reads the key. Returns nil if the file does not exist.
    static func read(_ directory: String) throws(DataDirectoryError) -> SecretText? {
        let path = directory + "/" + fileName
        guard let file = try PrivateFiles.read(path, limit: 4 << 10) else { return nil }
        let text = SecretText(String(decoding: file.bytes, as: UTF8.self).trimmingBlanks())
        guard let bytes = bytes(of: text), bytes.count >= ServerKey.shortest else {
            throw DataDirectoryError("\(path) is damaged. \(advice)")
        }
        return text
    }

    /// Creates the file with this key, unless it exists. Returns the key in the file.
    static func create(_ directory: String, _ key: SecretText) throws(DataDirectoryError) -> SecretText {
        try PrivateFiles.create(
            directory + "/" + fileName, contents: Array((key.revealed + "\n").utf8),
            suffix: String(UInt64.random(in: 0 ... .max)))
        guard let kept = try read(directory) else { throw missing(directory) }
        return kept
    }

    static func missing(_ directory: String) -> DataDirectoryError {
        DataDirectoryError("\(directory)/\(fileName) is missing. \(advice)")
    }

    private static let advice =
        "Restore it from a backup. Without it, every session ID is invalid and every anonymous identity is refused."

    /// Returns a value that tells whether two keys are the same, without the key itself.
    static func fingerprint(of key: SecretText) -> Data {
        var hash = SHA256()
        hash.update(data: Data("confab server key".utf8))
        hash.update(data: Data(bytes(of: key) ?? Array(key.revealed.utf8)))
        return Data(hash.finalize())
    }

    static func bytes(of text: SecretText) -> [UInt8]? { Data(base64Encoded: text.revealed).map(Array.init) }

    static func text(of bytes: [UInt8]) -> SecretText { SecretText(Data(bytes).base64EncodedString()) }

    /// Returns an API secret in the form of a server key. Versions without server keys used the API secret as the key.
    static func text(of secret: SecretText) -> SecretText { text(of: Array(secret.revealed.utf8)) }
}
