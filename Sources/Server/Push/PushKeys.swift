import Crypto
import NIOSSL
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The keys that identify this server to push services.
public struct PushKeys: Sendable {
    /// The VAPID key (RFC 8292). A browser's subscription works only with the key for which it was created. The key
    /// is generated at the first start.
    let web: P256.Signing.PrivateKey
    /// The key for Apple's service. If nil, apps get no pushes.
    let apns: APNSKey?
    /// Warnings for the operator, as sentences.
    public let warnings: [String]

    /// The name of the VAPID key's file in the data directory. If the file is lost, each browser gets no pushes until
    /// its user opens the page again.
    public static let fileName = "push.pem"
    /// Maximum file size in bytes. A PEM file with a P-256 key has about 250.
    private static let maxFileSize = 16 << 10

    init(web: P256.Signing.PrivateKey, apns: APNSKey? = nil, warnings: [String] = []) {
        (self.web, self.apns, self.warnings) = (web, apns, warnings)
    }

    /// The public VAPID key in base64url, for `welcome.push.vapidKey`. Pages use it to subscribe.
    public var vapidKey: String { Base64URL.encode(web.publicKey.x963Representation) }

    /// Opens the keys. Creates the data directory and the VAPID key (mode 0600) if they are missing. Processes that start at
    /// the same time end up with the same key, as with ``ProjectFile``.
    ///
    /// - Throws: `DataDirectoryError` if a file cannot be created or read or contains no key, or if the configuration for
    ///   Apple's service is incomplete.
    public static func open(_ configuration: ConfabConfiguration) throws(DataDirectoryError) -> PushKeys {
        try PrivateFiles.makeDirectory(configuration.dataDirectory)
        let path = configuration.dataDirectory + "/" + fileName
        var kept = try PrivateFiles.read(path, limit: maxFileSize)
        if kept == nil {
            let made = Array((P256.Signing.PrivateKey().pemRepresentation + "\n").utf8)
            try PrivateFiles.create(path, contents: made, suffix: String(UInt64.random(in: 0 ... .max)))
            kept = try PrivateFiles.read(path, limit: maxFileSize)
        }
        guard let kept else {
            throw DataDirectoryError("\(path) was deleted while it was being created. Start the server again.")
        }
        guard let key = signingKey(kept.bytes) else {
            throw DataDirectoryError(
                "\(path) does not contain a P-256 private key. Restore it from a backup, or delete it to create a new "
                    + "one. With a new key, people get push notifications again only after they reopen the page.")
        }
        try checkAuthorities(configuration.push)
        var warnings = exposure(of: path, kept)
        let apns = try APNSKey.open(configuration.push, warnings: &warnings)
        return PushKeys(web: key, apns: apns, warnings: warnings)
    }

    /// Throws unless the file named by `push.authorities` contains at least one PEM certificate. Without this check at
    /// startup, a wrong file would be noticed only at the first push.
    private static func checkAuthorities(_ configuration: ConfabConfiguration.Push) throws(DataDirectoryError) {
        guard let path = configuration.authorities else { return }
        let file = try PrivateFiles.read(path, limit: 1 << 20)
        guard let file, (try? NIOSSLCertificate.fromPEMBytes(file.bytes))?.isEmpty == false else {
            throw DataDirectoryError("The file \(path) (push.authorities) contains no PEM certificates.")
        }
    }

    static func signingKey(_ bytes: [UInt8]) -> P256.Signing.PrivateKey? {
        String(validating: bytes, as: UTF8.self).flatMap { try? P256.Signing.PrivateKey(pemRepresentation: $0) }
    }

    static func exposure(of path: String, _ file: PrivateFiles.File) -> [String] {
        file.isReadableByOthers
            ? ["Other users of this machine can read \(path). Run chmod 600 on it."] : []
    }
}

/// The key for Apple's push service, read from a `.p8` file, and the IDs that Apple requires with it.
struct APNSKey: Sendable {
    let key: P256.Signing.PrivateKey
    /// Apple's IDs for the key and for the developer team, ten characters each.
    let keyID: String
    let teamID: String
    /// The bundle identifier of the app that gets the pushes.
    let bundle: String

    /// Maximum file size in bytes. A `.p8` file has about 260.
    private static let maxFileSize = 16 << 10

    /// Opens the key. Returns nil if none is configured.
    static func open(
        _ configuration: ConfabConfiguration.Push, warnings: inout [String]
    ) throws(DataDirectoryError) -> APNSKey? {
        guard let path = configuration.apnsKey else { return nil }
        guard let keyID = configuration.apnsKeyID, let teamID = configuration.apnsTeamID,
            let bundle = configuration.apnsBundle
        else {
            throw DataDirectoryError("push.apnsKey requires push.apnsKeyID, push.apnsTeamID and push.apnsBundle.")
        }
        guard let file = try PrivateFiles.read(path, limit: maxFileSize) else {
            throw DataDirectoryError("The file \(path) (push.apnsKey) does not exist.")
        }
        guard let key = PushKeys.signingKey(file.bytes) else {
            throw DataDirectoryError("\(path) is not a key for Apple's push service. Use the .p8 file from Apple.")
        }
        warnings += PushKeys.exposure(of: path, file)
        return APNSKey(key: key, keyID: keyID, teamID: teamID, bundle: bundle)
    }
}
