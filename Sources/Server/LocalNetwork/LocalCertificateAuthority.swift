import Crypto
import SwiftASN1
import X509

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A certificate authority for the local network. With it, phones can trust this server over HTTPS, which browsers require for
/// camera access.
///
/// The authority is created once and kept, because people install it on their phones. The server's certificate is reissued
/// when the machine's addresses change or the certificate is about to expire. Keys are stored in files with mode 0600.
public struct LocalCertificateAuthority: Sendable {
    /// The data for the TLS server, and for the page that explains how to install the authority on a phone.
    public struct Material: Sendable, Equatable {
        /// The authority's certificate, for `/ca.crt`.
        public var authorityPEM: String
        /// The authority's certificate in DER, which all phones can open.
        public var authorityDER: [UInt8]
        /// The server's certificate, without the authority's certificate, which the TLS server does not send.
        public var certificatePEM: String
        public var privateKeyPEM: SecretText
        /// The names and addresses in the server's certificate, in the certificate's order.
        public var subjects: [String]
        public var expires: Date
    }

    /// How long the server's certificate is valid. Apple's systems reject server certificates that are valid for more
    /// than 398 days. The limit for user-installed authorities is currently 825 days, but may change.
    static let certificateLifetime: TimeInterval = 397 * day
    static let authorityLifetime: TimeInterval = 3650 * day
    /// Certificates are renewed this long before they expire, so that a server can run for a month without a restart.
    static let renewal: TimeInterval = 30 * day
    /// How far the start of a certificate's validity is backdated, for phones whose clocks are slow.
    static let backdating: TimeInterval = day
    /// Maximum number of addresses in a certificate, in addition to loopback. Some phones fail on certificates with
    /// hundreds of names.
    static let maxSubjects = 64

    private static let day: TimeInterval = 86400

    private let directory: String

    /// - Parameter dataDirectory: the server's data directory. The authority is stored in its subdirectory `lan/`.
    public init(dataDirectory: String) {
        directory = dataDirectory + "/lan"
    }

    /// Returns the authority and a server certificate for these addresses and names. Loads them from their files, or
    /// creates them if they are missing or must be renewed.
    ///
    /// - Parameters:
    ///   - addresses: the addresses of this machine, usually ``lanAddresses()``. Loopback is added.
    ///   - hostName: the name of this machine. `localhost` and `<hostName>.local` are added. Invalid names are ignored.
    /// - Throws: `DataDirectoryError` if a file cannot be read or written, if a certificate cannot be created, or if
    ///   the authority's file is damaged. A damaged authority is never replaced silently, because people have
    ///   installed it on their phones.
    public func material(
        addresses: [IPAddress], hostName: String?, now: Date = Date()
    ) throws(DataDirectoryError) -> Material {
        try PrivateFiles.makeDirectory(directory)
        let authority = try openAuthority(hostName: hostName, now: now)
        // If the clock is behind the authority's creation time, it is wrong. Use the creation time, so that the
        // certificate has not expired when the clock is corrected.
        let now = max(now, authority.certificate.notValidBefore + Self.backdating)
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
            throw DataDirectoryError("Cannot create a certificate for the local network: \(error)")
        }
    }

    /// Returns DNS names, then addresses in canonical text. They are sorted, so that the same addresses in a
    /// different order do not cause a new certificate.
    static func subjects(addresses: [IPAddress], hostName: String?) -> [String] {
        var names: Set = ["localhost"]
        if let hostName = hostName?.lowercased(), HostName.isUsable(hostName) {
            names.insert(hostName)
            if let first = hostName.split(separator: ".").first { names.insert(first + ".local") }
        }
        let loopback = ["127.0.0.1", "::1"].compactMap { IPAddress($0) }
        let kept = Set(addresses.prefix(maxSubjects)).subtracting(loopback).map(\.description).sorted()
        return names.sorted() + loopback.map(\.description) + kept
    }

    private func openAuthority(hostName: String?, now: Date) throws(DataDirectoryError) -> SigningIdentity {
        let path = directory + "/authority.pem"
        if let file = try PrivateFiles.read(path, limit: 64 << 10) {
            guard let kept = SigningIdentity(pem: file.bytes) else {
                throw DataDirectoryError(
                    "\(path) does not contain a certificate authority. Restore it from a backup. Or delete the "
                        + "directory \(directory): the server then creates a new certificate authority, which you must "
                        + "install on every phone.")
            }
            if kept.certificate.notValidAfter > now + Self.renewal { return kept }
            // Replace an authority that has expired or is about to expire. People must then install the new one on
            // their phones.
            try setAside(path)
        }
        do {
            let made = try Self.makeAuthority(hostName: hostName, now: now)
            try PrivateFiles.create(path, contents: made.pem(), suffix: Self.suffix())
        } catch let error as DataDirectoryError {
            throw error
        } catch {
            throw DataDirectoryError("Cannot create a certificate authority for the local network: \(error)")
        }
        // Read the file again: another process may have created it first, and all must use the same authority.
        guard let file = try PrivateFiles.read(path, limit: 64 << 10), let kept = SigningIdentity(pem: file.bytes)
        else {
            throw DataDirectoryError("\(path) was deleted while it was being created. Start the server again.")
        }
        return kept
    }

    /// Renames the file of an authority that is being replaced, instead of deleting it. If only the machine's clock
    /// was wrong, the operator can restore the file.
    private func setAside(_ path: String) throws(DataDirectoryError) {
        let kept = directory + "/authority-expired.pem"
        do {
            try? FileManager.default.removeItem(atPath: kept)
            try FileManager.default.moveItem(atPath: path, toPath: kept)
        } catch {
            throw DataDirectoryError("\(path) has expired and cannot be renamed to \(kept): \(error)")
        }
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

    /// Parses the output of ``pem()``. Returns nil if it is invalid or if key and certificate do not match.
    init?(pem: [UInt8]) {
        guard let text = String(validating: pem, as: UTF8.self),
            let documents = try? PEMDocument.parseMultiple(pemString: text), documents.count == 2,
            let key = try? P256.Signing.PrivateKey(pemRepresentation: documents[0].pemString),
            let certificate = try? Certificate(pemDocument: documents[1]),
            certificate.publicKey == Certificate.PublicKey(key.publicKey)
        else { return nil }
        self.init(key: key, certificate: certificate)
    }

    /// Returns the key and the certificate as PEM. They share a file, so that they always match.
    func pem() throws -> [UInt8] {
        Array((key.pemRepresentation + "\n" + (try certificate.serializeAsPEM().pemString) + "\n").utf8)
    }
}

extension LocalCertificateAuthority {
    /// Creates a root certificate that may sign server certificates but no intermediate authorities.
    static func makeAuthority(hostName: String?, now: Date) throws -> SigningIdentity {
        let key = P256.Signing.PrivateKey()
        let publicKey = Certificate.PublicKey(key.publicKey)
        let identifier = SubjectKeyIdentifier(hash: publicKey)
        // The name distinguishes the authorities of several servers in a phone's settings.
        let suffix = identifier.keyIdentifier.prefix(3).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
            .joined()
        let name = try DistinguishedName {
            CommonName("Confab local authority " + (hostName.map { $0.prefix(24) + " " } ?? "") + suffix)
        }
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: publicKey,
            notValidBefore: now - backdating, notValidAfter: now + authorityLifetime,
            issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                identifier
            },
            issuerPrivateKey: Certificate.PrivateKey(key))
        return SigningIdentity(key: key, certificate: certificate)
    }

    /// Issues a server certificate for these subjects. It does not outlive its authority.
    static func issue(_ subjects: [String], by authority: SigningIdentity, now: Date) throws -> SigningIdentity {
        let key = P256.Signing.PrivateKey()
        let publicKey = Certificate.PublicKey(key.publicKey)
        let names = subjects.map { subject -> GeneralName in
            IPAddress(subject).map { .ipAddress(ASN1OctetString(contentBytes: $0.bytes[...])) } ?? .dnsName(subject)
        }
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: publicKey,
            notValidBefore: now - backdating,
            notValidAfter: min(now - backdating + certificateLifetime, authority.certificate.notValidAfter),
            issuer: authority.certificate.subject, subject: try DistinguishedName { CommonName("Confab") },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames(names)
                SubjectKeyIdentifier(hash: publicKey)
                AuthorityKeyIdentifier(
                    keyIdentifier: SubjectKeyIdentifier(hash: authority.certificate.publicKey).keyIdentifier)
            },
            issuerPrivateKey: Certificate.PrivateKey(authority.key))
        return SigningIdentity(key: key, certificate: certificate)
    }

    /// True if a stored certificate was issued by this authority for exactly these subjects and does not need renewal.
    static func isUsable(
        _ server: SigningIdentity, authority: SigningIdentity, subjects: [String], now: Date
    ) -> Bool {
        let certificate = server.certificate
        guard certificate.notValidBefore <= now, certificate.notValidAfter > now + renewal,
            certificate.issuer == authority.certificate.subject,
            authority.certificate.publicKey.isValidSignature(certificate.signature, for: certificate),
            let named = try? certificate.extensions.subjectAlternativeNames
        else { return false }
        let found = named.compactMap { name -> String? in
            switch name {
            case .dnsName(let text): text
            case .ipAddress(let octets): IPAddress(bytes: octets.bytes)?.description
            default: nil
            }
        }
        return found == subjects
    }
}
