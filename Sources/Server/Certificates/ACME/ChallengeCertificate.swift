import Crypto
import SwiftASN1
import X509

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The certificate that answers a challenge of the type `tls-alpn-01` (RFC 8737 §3). Only the authority gets it.
enum ChallengeCertificate {
    /// The extension `id-pe-acmeIdentifier` (RFC 8737 §6.1).
    static let identifier: ASN1ObjectIdentifier = [1, 3, 6, 1, 5, 5, 7, 1, 31]
    /// An order takes at most a quarter of an hour. The rest is for clocks that differ.
    private static let lifetime: TimeInterval = 86400

    /// Makes a self-signed certificate with the challenge's domain and the hash of its key authorization.
    static func make(for challenge: ACMEChallenge, now: Date) throws -> SigningIdentity {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("Confab challenge") }
        let hash = Array(SHA256.hash(data: Array(challenge.answer.utf8)))
        var serializer = DER.Serializer()
        try serializer.serialize(ASN1OctetString(contentBytes: hash[...]))
        let authorization = Certificate.Extension(
            oid: identifier, critical: true, value: serializer.serializedBytes[...])
        let certificate = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: Certificate.PublicKey(key.publicKey),
            notValidBefore: now - lifetime, notValidAfter: now + lifetime, issuer: name, subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                SubjectAlternativeNames([GeneralName.dnsName(challenge.domain)])
                authorization
            },
            issuerPrivateKey: Certificate.PrivateKey(key))
        return SigningIdentity(key: key, certificate: certificate)
    }
}
