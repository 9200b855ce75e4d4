import Crypto
import NIOSSL
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The keys by which push services know this server.
public struct PushKeys: Sendable {
    /// Browsers accept pushes only from whoever holds it (RFC 8292). Made at the first start.
    let web: P256.Signing.PrivateKey
    /// Apple's, or none: then no app is woken.
    let apns: APNSKey?
    /// What the operator should hear about, in sentences.
    public let warnings: [String]

    /// In the data directory. Losing it makes every browser's subscription useless until its page is opened again.
    public static let fileName = "push.pem"
    /// A PEM file of a P-256 key has 250 bytes.
    private static let largestFile = 16 << 10

    init(web: P256.Signing.PrivateKey, apns: APNSKey? = nil, warnings: [String] = []) {
        (self.web, self.apns, self.warnings) = (web, apns, warnings)
    }

    /// The public key of Web Push in base64url: `welcome.push.vapidKey`, which pages subscribe with.
    public var vapidKey: String { Base64URL.encode(web.publicKey.x963Representation) }

    /// Opens the keys, making the data directory and the key of Web Push (mode 0600) when they are missing. Several
    /// processes that start at once end up with the same key, as with ``ProjectFile``.
    ///
    /// - Throws: `DataDirectoryError` when a file cannot be made or read, holds no such key, or Apple's is named
    ///   without
    ///   what belongs to it.
    public static func open(_ configuration: ConfabConfiguration) throws(DataDirectoryError) -> PushKeys {
        try PrivateFiles.makeDirectory(configuration.dataDirectory)
        let path = configuration.dataDirectory + "/" + fileName
        var kept = try PrivateFiles.read(path, limit: largestFile)
        if kept == nil {
            let made = Array((P256.Signing.PrivateKey().pemRepresentation + "\n").utf8)
            try PrivateFiles.create(path, contents: made, suffix: String(UInt64.random(in: 0 ... .max)))
            kept = try PrivateFiles.read(path, limit: largestFile)
        }
        guard let kept else { throw DataDirectoryError("\(path) vanished while it was being made; start again.") }
        guard let key = signingKey(kept.bytes) else {
            throw DataDirectoryError(
                "\(path) does not hold a P-256 private key. Restore it from a backup, or delete it to get a new one; "
                    + "browsers are then woken again only after their page was opened.")
        }
        try checkAuthorities(configuration.push)
        var warnings = exposure(of: path, kept)
        let apns = try APNSKey.open(configuration.push, warnings: &warnings)
        return PushKeys(web: key, apns: apns, warnings: warnings)
    }

    /// At start, rather than at the first push.
    private static func checkAuthorities(_ configuration: ConfabConfiguration.Push) throws(DataDirectoryError) {
        guard let path = configuration.authorities else { return }
        let file = try PrivateFiles.read(path, limit: 1 << 20)
        guard let file, (try? NIOSSLCertificate.fromPEMBytes(file.bytes))?.isEmpty == false else {
            throw DataDirectoryError("\(path), which push.authorities names, holds no certificates in PEM.")
        }
    }

    static func signingKey(_ bytes: [UInt8]) -> P256.Signing.PrivateKey? {
        String(validating: bytes, as: UTF8.self).flatMap { try? P256.Signing.PrivateKey(pemRepresentation: $0) }
    }

    static func exposure(of path: String, _ file: PrivateFiles.File) -> [String] {
        file.isReadableByOthers
            ? ["\(path) can be read by other users of this machine; run chmod 600 on it."] : []
    }
}

/// The key that Apple gives developers for its push service (a `.p8` file), and what belongs to it.
struct APNSKey: Sendable {
    let key: P256.Signing.PrivateKey
    /// Ten characters each, as Apple's pages show them.
    let keyID: String
    let teamID: String
    /// The app's bundle identifier.
    let bundle: String

    /// A `.p8` file has 260 bytes.
    private static let largestFile = 16 << 10

    /// Nil when no key is named.
    static func open(
        _ configuration: ConfabConfiguration.Push, warnings: inout [String]
    ) throws(DataDirectoryError) -> APNSKey? {
        guard let path = configuration.apnsKey else { return nil }
        guard let keyID = configuration.apnsKeyID, let teamID = configuration.apnsTeamID,
            let bundle = configuration.apnsBundle
        else {
            throw DataDirectoryError("push.apnsKey needs push.apnsKeyID, push.apnsTeamID and push.apnsBundle.")
        }
        guard let file = try PrivateFiles.read(path, limit: largestFile) else {
            throw DataDirectoryError("There is no \(path), which push.apnsKey names.")
        }
        guard let key = PushKeys.signingKey(file.bytes) else {
            throw DataDirectoryError("\(path) is not a key of Apple's push service: a .p8 file, as downloaded.")
        }
        warnings += PushKeys.exposure(of: path, file)
        return APNSKey(key: key, keyID: keyID, teamID: teamID, bundle: bundle)
    }
}
