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

/// The project: its API key and the secret that signs sessions and tokens.
///
/// The first start generates both and stores them in `project.json`, readable by the owner only. Processes that start at the
/// same time all end up with the same file: each writes a temporary file and links it to the final name, which succeeds for
/// exactly one of them. Then all read that file.
public struct ProjectFile: Sendable, Equatable {
    /// 8 to 20 digits.
    public let apiKey: String
    public let apiSecret: SecretText
    /// Warnings for the operator, as sentences.
    public let warnings: [String]

    public static let fileName = "project.json"

    /// Opens the project. Creates the directory (mode 0700) and the file (mode 0600) if they are missing.
    ///
    /// The key and secret in `configuration` take precedence. If both are set, no file is read or written.
    ///
    /// - Throws: `DataDirectoryError` if the file cannot be created or read, or is invalid.
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

    /// Opens the project file in a directory.
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
            throw DataDirectoryError("\(path) was deleted while it was being created. Start the server again.")
        }
        return kept
    }

    private struct Contents: Decodable {
        var apiKey: String
        var apiSecret: String
    }

    /// Reads the file. Returns nil if it does not exist.
    private static func read(_ path: String) throws(DataDirectoryError) -> ProjectFile? {
        guard let file = try PrivateFiles.read(path, limit: 64 << 10) else { return nil }
        let advice =
            "Restore it from a backup, or delete it to create a new project. Existing tokens will then stop working."
        guard let contents = try? JSONDecoder().decode(Contents.self, from: Data(file.bytes)) else {
            throw DataDirectoryError("\(path) is not a project file: apiKey and apiSecret are required. \(advice)")
        }
        guard isAPIKey(contents.apiKey) else {
            throw DataDirectoryError("The apiKey in \(path) is invalid; expected 8 to 20 digits. \(advice)")
        }
        guard isAPISecret(contents.apiSecret) else {
            throw DataDirectoryError("The apiSecret in \(path) is invalid; expected \(acceptedSecret). \(advice)")
        }
        var warnings: [String] = []
        if file.isReadableByOthers {
            warnings.append("Other users of this machine can read \(path). Run chmod 600 on it.")
        }
        return ProjectFile(apiKey: contents.apiKey, apiSecret: SecretText(contents.apiSecret), warnings: warnings)
    }

    /// True for 8 to 20 digits. OpenTok's keys are numbers, and its SDKs check that.
    static func isAPIKey(_ text: String) -> Bool {
        (8...20).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    static let acceptedSecret =
        "at least 32 bytes (and at most 1024) without spaces, not ending like a file name (.env), for example 48 hexadecimal digits"

    /// True if the text can be the secret. HS256 requires a key of at least 32 bytes (RFC 7518 §3.2). OpenTok's SDKs treat a
    /// secret that ends like a file name (`[.][a-zA-Z0-9_]+$`) as the path of a private key, and fail to open it.
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
