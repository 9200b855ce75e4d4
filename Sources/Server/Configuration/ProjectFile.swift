#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The project: the API key that names this server's customer and the secret that signs its sessions and tokens.
///
/// The first start makes both and keeps them in `project.json`, readable by the owner only. However many processes
/// start at once, all end up with the same file: each writes a file of its own and links it to the name, which succeeds
/// for exactly one; then everybody reads what is there.
public struct ProjectFile: Sendable, Equatable {
    /// Digits.
    public let apiKey: String
    public let apiSecret: SecretText
    /// What the operator should hear about, in sentences.
    public let warnings: [String]

    public static let fileName = "project.json"

    /// Opens the project, making directory (mode 0700) and file (mode 0600) when they are missing. What `configuration`
    /// overrides wins; when it overrides both, nothing is read or written.
    ///
    /// - Throws: `DataDirectoryError` when the file cannot be made or read, or holds anything but a project.
    public static func open(_ configuration: ConfabConfiguration) throws(DataDirectoryError) -> ProjectFile {
        if let key = configuration.apiKey, let secret = configuration.apiSecret {
            return ProjectFile(apiKey: key, apiSecret: secret, warnings: [])
        }
        var random = SystemRandomNumberGenerator()
        let kept = try open(directory: configuration.dataDirectory, using: &random)
        return ProjectFile(
            apiKey: configuration.apiKey ?? kept.apiKey, apiSecret: configuration.apiSecret ?? kept.apiSecret,
            warnings: kept.warnings)
    }

    /// The file in one directory, without overrides.
    static func open(
        directory: String, using random: inout some RandomNumberGenerator
    ) throws(DataDirectoryError) -> ProjectFile {
        try PrivateFiles.makeDirectory(directory)
        let path = directory + "/" + fileName
        if let existing = try read(path) { return existing }
        let made = Contents(
            apiKey: String(UInt64.random(in: 10_000_000...99_999_999, using: &random)),
            apiSecret: (0..<24).map { _ in hex(UInt8.random(in: 0...255, using: &random)) }.joined())
        let text = "{\n  \"apiKey\": \"\(made.apiKey)\",\n  \"apiSecret\": \"\(made.apiSecret)\"\n}\n"
        try PrivateFiles.create(
            path, contents: Array(text.utf8), suffix: String(UInt64.random(in: 0 ... .max, using: &random)))
        guard let kept = try read(path) else {
            throw DataDirectoryError("\(path) vanished while it was being made; start again.")
        }
        return kept
    }

    private struct Contents: Decodable {
        var apiKey: String
        var apiSecret: String
    }

    /// Nil when there is no such file.
    private static func read(_ path: String) throws(DataDirectoryError) -> ProjectFile? {
        guard let file = try PrivateFiles.read(path, limit: 64 << 10) else { return nil }
        let advice =
            "Restore it from a backup, or delete it to get a new project; tokens of the old one then stop working."
        guard let contents = try? JSONDecoder().decode(Contents.self, from: Data(file.bytes)) else {
            throw DataDirectoryError("\(path) does not hold a project: it needs apiKey and apiSecret. \(advice)")
        }
        guard isAPIKey(contents.apiKey) else {
            throw DataDirectoryError("The apiKey in \(path) is not accepted; it has 8 to 20 digits. \(advice)")
        }
        guard isAPISecret(contents.apiSecret) else {
            throw DataDirectoryError("The apiSecret in \(path) is not accepted; it is \(acceptedSecret). \(advice)")
        }
        var warnings: [String] = []
        if file.isReadableByOthers {
            warnings.append("\(path) can be read by other users of this machine; run chmod 600 on it.")
        }
        return ProjectFile(apiKey: contents.apiKey, apiSecret: SecretText(contents.apiSecret), warnings: warnings)
    }

    /// OpenTok's keys are numbers, and its SDKs check that.
    static func isAPIKey(_ text: String) -> Bool {
        (8...20).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    static let acceptedSecret =
        "at least 32 bytes without blanks, not ending in a dot and letters, such as 48 hexadecimal digits"

    /// 32 bytes are what HS256 wants of its key (RFC 7518 §3.2). OpenTok's SDKs take a secret that ends like a file
    /// name (`[.][a-zA-Z0-9_]+$`) for the path of a private key and fail to open it.
    static func isAPISecret(_ text: String) -> Bool {
        guard text.utf8.count >= 32, text.utf8.count <= 1024,
            text.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f && !$0.properties.isWhitespace })
        else { return false }
        guard let dot = text.utf8.lastIndex(of: UInt8(ascii: ".")) else { return true }
        let ending = text.utf8[text.utf8.index(after: dot)...]
        return ending.isEmpty || !ending.allSatisfy(isWordByte)
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: byte == UInt8(ascii: "_")
        }
    }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }
}
