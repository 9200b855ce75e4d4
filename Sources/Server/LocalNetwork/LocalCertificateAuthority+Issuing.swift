import Crypto
import SwiftASN1
import X509

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
