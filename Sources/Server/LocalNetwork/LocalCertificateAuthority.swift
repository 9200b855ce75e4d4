import Crypto
import SwiftASN1
import X509

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A certificate authority for one household, so that phones on the local network, whose browsers give no camera to
/// plain HTTP, can trust this server.
///
/// Made once and kept, because people install it on their phones; the server's own certificate is remade whenever the
/// machine's addresses change or it nears its end. Keys stay in files of mode 0600.
public struct LocalCertificateAuthority: Sendable {
    /// What a TLS server and the page that explains the installation need.
    public struct Material: Sendable, Equatable {
        /// The authority's certificate, for `/ca.crt`.
        public var authorityPEM: String
        /// The same in DER, which every phone opens.
        public var authorityDER: [UInt8]
        /// The server's certificate; the authority itself is not sent.
        public var certificatePEM: String
        public var privateKeyPEM: SecretText
        /// The addresses and names that the certificate is for, in its order.
        public var subjects: [String]
        public var expires: Date
    }

    /// Apple's systems refuse a server's certificate valid for longer than 398 days; for one of an authority that a
    /// user installed the limit is 825, but nobody knows for how long.
    static let certificateLifetime: TimeInterval = 397 * day
    static let authorityLifetime: TimeInterval = 3650 * day
    /// A server that runs for a month without a restart still serves a valid certificate.
    static let renewal: TimeInterval = 30 * day
    /// Phones' clocks run behind.
    static let backdating: TimeInterval = day
    /// More subjects than a machine has; a certificate that names hundreds outgrows TLS records on phones.
    static let maximumSubjects = 64

    private static let day: TimeInterval = 86400

    private let directory: String

    /// - Parameter dataDirectory: the server's; the authority lives in `lan/` under it.
    public init(dataDirectory: String) {
        directory = dataDirectory + "/lan"
    }

    /// The authority and a certificate for these subjects, as kept, or made now.
    ///
    /// - Parameters:
    ///   - addresses: of this machine, usually ``lanAddresses()``; loopback is added.
    ///   - hostName: of this machine; `localhost` and `<hostName>.local` are added. Nil or unusable names are left out.
    /// - Throws: `DataDirectoryError` when files cannot be read or written or the authority's is damaged; then people
    ///   who trust it must learn about it, so it is never replaced silently.
    public func material(
        addresses: [IPAddress], hostName: String?, now: Date = Date()
    ) throws(DataDirectoryError) -> Material {
        try PrivateFiles.makeDirectory(directory)
        let authority = try openAuthority(hostName: hostName, now: now)
        let subjects = Self.subjects(addresses: addresses, hostName: hostName)
        let path = directory + "/server.pem"
        var certificate: SigningIdentity?
        if let file = try PrivateFiles.read(path, limit: 64 << 10) { certificate = SigningIdentity(pem: file.bytes) }
        do {
            if let kept = certificate, Self.isUsable(kept, authority: authority, subjects: subjects, now: now) {
                return try Self.material(authority, kept, subjects)
            }
            let made = try Self.issue(subjects, by: authority, now: now)
            try PrivateFiles.replace(path, contents: made.pem(), suffix: Self.suffix())
            return try Self.material(authority, made, subjects)
        } catch let error as DataDirectoryError {
            throw error
        } catch {
            throw DataDirectoryError("Cannot make a certificate for the local network: \(error)")
        }
    }

    /// DNS names first, then addresses in canonical text; sorted, so that their order does not remake the certificate.
    static func subjects(addresses: [IPAddress], hostName: String?) -> [String] {
        var names: Set = ["localhost"]
        if let hostName = hostName?.lowercased(), isHostName(hostName) {
            names.insert(hostName)
            if let first = hostName.split(separator: ".").first { names.insert(first + ".local") }
        }
        let loopback = ["127.0.0.1", "::1"].compactMap { IPAddress($0) }
        let kept = Set(addresses.prefix(maximumSubjects)).subtracting(loopback).map(\.description).sorted()
        return names.sorted() + loopback.map(\.description) + kept
    }

    /// Letters, digits, hyphens and dots (RFC 1123 §2.1), and no address.
    private static func isHostName(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        let areLabels = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { byte in
                    byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                        || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                }
        }
        return areLabels && text.utf8.count <= 253 && IPAddress(text) == nil
    }

    private func openAuthority(hostName: String?, now: Date) throws(DataDirectoryError) -> SigningIdentity {
        let path = directory + "/authority.pem"
        if let file = try PrivateFiles.read(path, limit: 64 << 10) {
            guard let kept = SigningIdentity(pem: file.bytes) else {
                throw DataDirectoryError(
                    "\(path) does not hold a certificate authority. Restore it from a backup, or delete the directory "
                        + "\(directory) to make a new one, which every phone must then install again.")
            }
            if kept.certificate.notValidAfter > now + Self.renewal { return kept }
            // Expired, it is of use to nobody; phones must install the next one.
            unlinkExpired(path)
        }
        do {
            let made = try Self.makeAuthority(hostName: hostName, now: now)
            try PrivateFiles.create(path, contents: made.pem(), suffix: Self.suffix())
        } catch let error as DataDirectoryError {
            throw error
        } catch {
            throw DataDirectoryError("Cannot make a certificate authority for the local network: \(error)")
        }
        // Whichever process was first, its authority is everybody's.
        guard let file = try PrivateFiles.read(path, limit: 64 << 10), let kept = SigningIdentity(pem: file.bytes)
        else {
            throw DataDirectoryError("\(path) vanished while it was being made; start again.")
        }
        return kept
    }

    private func unlinkExpired(_ path: String) {
        try? FileManager.default.removeItem(atPath: path)
    }

    private static func suffix() -> String { String(UInt64.random(in: 0 ... .max)) }

    private static func material(
        _ authority: SigningIdentity, _ server: SigningIdentity, _ subjects: [String]
    ) throws -> Material {
        var serializer = DER.Serializer()
        try authority.certificate.serialize(into: &serializer)
        return Material(
            authorityPEM: try authority.certificate.serializeAsPEM().pemString,
            authorityDER: serializer.serializedBytes,
            certificatePEM: try server.certificate.serializeAsPEM().pemString,
            privateKeyPEM: SecretText(server.key.pemRepresentation),
            subjects: subjects, expires: server.certificate.notValidAfter)
    }
}

/// A P-256 key and its certificate.
struct SigningIdentity {
    var key: P256.Signing.PrivateKey
    var certificate: Certificate

    init(key: P256.Signing.PrivateKey, certificate: Certificate) {
        self.key = key
        self.certificate = certificate
    }

    /// Reads what ``pem()`` wrote. Nil when it is anything else, or when key and certificate do not belong together.
    init?(pem: [UInt8]) {
        guard let text = String(validating: pem, as: UTF8.self),
            let documents = try? PEMDocument.parseMultiple(pemString: text), documents.count == 2,
            let key = try? P256.Signing.PrivateKey(pemRepresentation: documents[0].pemString),
            let certificate = try? Certificate(pemDocument: documents[1]),
            certificate.publicKey == Certificate.PublicKey(key.publicKey)
        else { return nil }
        self.init(key: key, certificate: certificate)
    }

    /// One file for both, so that they can never be of different times.
    func pem() throws -> [UInt8] {
        Array((key.pemRepresentation + "\n" + (try certificate.serializeAsPEM().pemString) + "\n").utf8)
    }
}
