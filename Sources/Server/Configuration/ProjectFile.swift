#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Signaling
import Wire

/// The project: its API key, the secret that signs tokens, and the server key that creates IDs.
///
/// The first start generates them. The API key and the secret are in `project.json`, the server key is in `server.key`,
/// and only their owner can read the files. Processes that start at the same time all end up with the same files: each
/// writes a temporary file and links it to the final name, which succeeds for exactly one of them. Then all read that
/// file.
///
/// A project file from a version without server keys has no `server.key` next to it. Its secret then also creates the
/// IDs, as before, and `keepServerKey` stores it as the server key.
public struct ProjectFile: Sendable, Equatable {
    /// 8 to 20 digits.
    public let apiKey: String
    public let apiSecret: SecretText
    /// The secret before the last rotation. Nil if the secret was never rotated, or if the configuration sets the
    /// secret.
    public let previous: Previous?
    /// The server key as text: base64, as in `server.key`.
    let serverKey: SecretText
    /// Warnings for the operator, as sentences.
    public let warnings: [String]

    /// A secret that was replaced.
    public struct Previous: Sendable, Equatable {
        public let secret: SecretText
        /// Tokens signed by this secret are refused after this time.
        public let acceptedUntil: Timestamp
    }

    public static let fileName = "project.json"

    /// The project with its keys, for signing and verifying tokens. Throws if the API key is not numeric, the secret is
    /// too short or the server key is invalid.
    public var project: Project {
        get throws(DataDirectoryError) {
            let project = ServerKeyFile.bytes(of: serverKey).flatMap { ServerKey(bytes: $0) }.flatMap {
                Project(
                    apiKey: apiKey, secret: apiSecret.revealed, serverKey: $0,
                    previous: previous.map {
                        Project.PreviousSecret(secret: $0.secret.revealed, acceptedUntil: $0.acceptedUntil)
                    })
            }
            guard let project else {
                throw DataDirectoryError("The API key must be numeric and the secret at least 32 bytes long.")
            }
            return project
        }
    }

    /// Opens the project. Creates the directory (mode 0700) and the files (mode 0600) if they are missing.
    ///
    /// The key and secret in `configuration` take precedence. If both are set, the project file is neither read nor written.
    ///
    /// - Throws: `DataDirectoryError` if a file cannot be created or read, or is invalid.
    public static func open(_ configuration: ConfabConfiguration) throws(DataDirectoryError) -> ProjectFile {
        let directory = configuration.dataDirectory
        if let key = configuration.apiKey, let secret = configuration.apiSecret {
            let serverKey = try ServerKeyFile.read(directory) ?? ServerKeyFile.text(of: secret)
            return ProjectFile(apiKey: key, apiSecret: secret, previous: nil, serverKey: serverKey, warnings: [])
        }
        var random = SystemRandomNumberGenerator()
        return try open(directory: directory, using: &random).overridden(by: configuration, directory)
    }

    /// Opens the project again while the server runs. Unlike `open`, creates nothing, and throws if the project file
    /// is needed but missing.
    static func reopen(_ configuration: ConfabConfiguration) throws(DataDirectoryError) -> ProjectFile {
        if configuration.apiKey != nil, configuration.apiSecret != nil { return try open(configuration) }
        let directory = configuration.dataDirectory
        guard let kept = try read(directory) else {
            throw DataDirectoryError("\(directory)/\(fileName) is missing. Restore it from a backup.")
        }
        return try kept.overridden(by: configuration, directory)
    }

    private func overridden(
        by configuration: ConfabConfiguration, _ directory: String
    ) throws(DataDirectoryError) -> ProjectFile {
        let secret = configuration.apiSecret ?? apiSecret
        // If no server key is stored, the current secret created the IDs, so use it as the server key.
        let serverKey = try ServerKeyFile.read(directory) ?? ServerKeyFile.text(of: secret)
        return ProjectFile(
            apiKey: configuration.apiKey ?? apiKey, apiSecret: secret,
            previous: configuration.apiSecret == nil ? previous : nil, serverKey: serverKey, warnings: warnings)
    }

    /// Stores the server key if it is not stored yet, so that IDs stay valid when the secret changes.
    ///
    /// Only the server does this. A command may run without the variables that override the project, and would then
    /// store a different key.
    func keepServerKey(in directory: String) throws(DataDirectoryError) {
        try PrivateFiles.makeDirectory(directory)
        let kept = try ServerKeyFile.create(directory, serverKey)
        guard kept == serverKey else {
            throw DataDirectoryError("The server key changed while the server was starting. Start it again.")
        }
    }

    /// Opens the project file in a directory. Creates it and the server key if neither it nor a database exists.
    static func open(
        directory: String, using random: inout some RandomNumberGenerator
    ) throws(DataDirectoryError) -> ProjectFile {
        try PrivateFiles.makeDirectory(directory)
        if let existing = try read(directory) { return existing }
        guard !FileManager.default.fileExists(atPath: directory + "/" + DataFiles.database) else {
            throw missing(directory)
        }
        // Create the server key first, so that a project file without a server key next to it always comes from an
        // earlier version.
        _ = try ServerKeyFile.create(
            directory, ServerKeyFile.text(of: (0..<32).map { _ in .random(in: 0...255, using: &random) }))
        let made = Contents(
            apiKey: String(UInt64.random(in: 10_000_000...99_999_999, using: &random)),
            apiSecret: SecretText.generated(using: &random).revealed, serverKeyFile: ServerKeyFile.fileName)
        try PrivateFiles.create(
            directory + "/" + fileName, contents: made.json,
            suffix: String(UInt64.random(in: 0 ... .max, using: &random)))
        guard let kept = try read(directory) else {
            throw DataDirectoryError(
                "\(directory)/\(fileName) was deleted while it was being created. Start the server again.")
        }
        return kept
    }

    /// Returns the error for a directory with a database but no project file. Creating a new project would invalidate
    /// all IDs and tokens in the database.
    private static func missing(_ directory: String) -> DataDirectoryError {
        DataDirectoryError(
            "\(directory) has a database but no \(fileName). If the server gets its API key and secret from CONFAB_API_KEY and "
                + "CONFAB_API_SECRET, set both here too. Otherwise restore \(fileName) and \(ServerKeyFile.fileName) from a "
                + "backup, or move the directory away to start a new project.")
    }

    /// Returns the fingerprint of the server key in a directory, or nil if the directory has none.
    static func keyFingerprint(in directory: String) throws(DataDirectoryError) -> Data? {
        if let file = try read(directory) { return ServerKeyFile.fingerprint(of: file.serverKey) }
        guard let key = try ServerKeyFile.read(directory) else { return nil }
        return ServerKeyFile.fingerprint(of: key)
    }

    /// Reads the project file. Returns nil if it does not exist.
    private static func read(_ directory: String) throws(DataDirectoryError) -> ProjectFile? {
        let path = directory + "/" + fileName
        guard let file = try PrivateFiles.read(path, limit: 64 << 10) else { return nil }
        let advice =
            "Restore it from a backup, or move the data directory away to start a new project."
        guard let contents = try? JSONDecoder().decode(Contents.self, from: Data(file.bytes)) else {
            throw DataDirectoryError("\(path) is not a project file: apiKey and apiSecret are required. \(advice)")
        }
        guard isAPIKey(contents.apiKey) else {
            throw DataDirectoryError("The apiKey in \(path) is invalid; expected 8 to 20 digits. \(advice)")
        }
        guard isAPISecret(contents.apiSecret) else {
            throw DataDirectoryError("The apiSecret in \(path) is invalid; expected \(acceptedSecret). \(advice)")
        }
        let serverKey = try ServerKeyFile.read(directory)
        if serverKey == nil, contents.serverKeyFile != nil { throw ServerKeyFile.missing(directory) }
        var warnings: [String] = []
        if file.isReadableByOthers {
            warnings.append("Other users of this machine can read \(path). Run chmod 600 on it.")
        }
        return ProjectFile(
            apiKey: contents.apiKey, apiSecret: SecretText(contents.apiSecret),
            previous: try contents.previous(path),
            serverKey: serverKey ?? ServerKeyFile.text(of: SecretText(contents.apiSecret)), warnings: warnings)
    }

    /// True for 8 to 20 digits. OpenTok's API keys are numbers, and its SDKs reject others.
    static func isAPIKey(_ text: String) -> Bool {
        (8...20).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    static let acceptedSecret =
        "32 to 1024 bytes without spaces, for example 48 hexadecimal digits. The value must not end like a file name, "
        + "such as .env"

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
}

// MARK: Rotating the secret

extension ProjectFile {
    /// The project file with its new secret, and the overlap that the rotation cut short.
    public struct Rotation: Sendable {
        public let file: ProjectFile
        /// When the overlap of the previous rotation would have ended; nil if it was already over or there was none.
        /// Only the last two secrets are accepted, so tokens signed by the one before them are refused now.
        public let cutShort: Timestamp?
    }

    /// Replaces the secret. Tokens signed with the replaced secret are accepted until `overlap` has passed. A running
    /// server notices that the file has changed.
    ///
    /// - Throws: `DataDirectoryError` if the secret cannot be rotated here, with a message that says what to do
    ///   instead.
    public static func rotate(
        _ configuration: ConfabConfiguration, overlap: Duration, now: Timestamp
    ) throws(DataDirectoryError) -> Rotation {
        guard configuration.apiSecret == nil else {
            throw DataDirectoryError(
                "The API secret is set by CONFAB_API_SECRET or the configuration, so it cannot be rotated here. Change it "
                    + "there and reload or restart the server. Tokens signed with the old secret are then refused."
            )
        }
        let directory = configuration.dataDirectory
        let path = directory + "/" + fileName
        return try PrivateFiles.withLock(on: directory) { () throws(DataDirectoryError) -> Rotation in
            guard let file = try PrivateFiles.read(path, limit: 64 << 10), let before = try read(directory),
                var contents = try? JSONDecoder().decode(Contents.self, from: Data(file.bytes))
            else {
                throw DataDirectoryError(
                    "\(path) does not exist. If the server gets its secret from CONFAB_API_SECRET, change it there. "
                        + "Otherwise check --data-dir, or start the server once.")
            }
            guard try ServerKeyFile.read(directory) != nil else {
                throw DataDirectoryError(
                    "This data directory was last used by a version that cannot rotate the secret. Start this version of "
                        + "the server once, then rotate. Otherwise existing IDs could become invalid.")
            }
            try PrivateFiles.requireOwner(of: path)
            var random = SystemRandomNumberGenerator()
            contents.serverKeyFile = ServerKeyFile.fileName
            contents.previousSecret = contents.apiSecret
            contents.previousSecretUntil = TimeText.write(overlap > .zero ? now + overlap : now)
            contents.apiSecret = SecretText.generated(using: &random).revealed
            try PrivateFiles.replace(
                path, contents: contents.json, suffix: String(UInt64.random(in: 0 ... .max, using: &random)))
            guard let after = try read(directory) else {
                throw DataDirectoryError("\(path) was deleted during the rotation. Restore it from a backup.")
            }
            let earlier = before.previous?.acceptedUntil
            return Rotation(file: after, cutShort: earlier.flatMap { $0 > now ? $0 : nil })
        }
    }

    /// The contents of `project.json`.
    fileprivate struct Contents: Codable {
        var apiKey: String
        var apiSecret: String
        /// The name of the server key's file, which must exist. Nil in project files from versions without server
        /// keys.
        var serverKeyFile: String?
        var previousSecret: String?
        /// When the previous secret stops being accepted, as an ISO 8601 time.
        var previousSecretUntil: String?

        var json: [UInt8] {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            // Encoding text cannot fail.
            return Array((try? encoder.encode(self)) ?? Data()) + [UInt8(ascii: "\n")]
        }

        func previous(_ path: String) throws(DataDirectoryError) -> Previous? {
            guard previousSecret != nil || previousSecretUntil != nil else { return nil }
            guard let secret = previousSecret, isAPISecret(secret),
                let end = previousSecretUntil.flatMap(TimeText.parse)
            else {
                throw DataDirectoryError(
                    "previousSecret or previousSecretUntil in \(path) is invalid; expected a secret and a time such as "
                        + "2026-01-31T12:00:00Z. Remove both to refuse the previous secret.")
            }
            return Previous(secret: SecretText(secret), acceptedUntil: end)
        }
    }
}

/// Times in ISO 8601 format, with whole seconds in UTC: `2026-01-31T12:00:00Z`.
public enum TimeText {
    public static func write(_ time: Timestamp) -> String {
        Date(timeIntervalSince1970: TimeInterval(time.milliseconds / 1000)).formatted(.iso8601)
    }

    static func parse(_ text: String) -> Timestamp? {
        (try? Date(text, strategy: .iso8601)).map { Timestamp(milliseconds: Int64($0.timeIntervalSince1970) * 1000) }
    }
}
