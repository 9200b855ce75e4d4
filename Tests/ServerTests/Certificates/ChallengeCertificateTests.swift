import Foundation
import SwiftASN1
import Testing
import X509

@testable import Server

@Suite("Certificates for challenges over TLS") struct ChallengeCertificateTests {
    private static let challenge = ACMEChallenge(
        domain: "chat.example.org", token: "token", answer: "token.thumbprint")

    @Test("a certificate has the domain and, in a critical extension, the hash of the key authorization")
    func content() throws {
        let now = Date()
        let certificate = try ChallengeCertificate.make(for: Self.challenge, now: now).certificate
        let names = try #require(try certificate.extensions.subjectAlternativeNames)
        #expect(Array(names) == [.dnsName("chat.example.org")])
        let identifier = try #require(certificate.extensions[oid: [1, 3, 6, 1, 5, 5, 7, 1, 31]])
        #expect(identifier.critical)
        // An octet string (4) of 32 bytes, which are those of: printf token.thumbprint | sha256sum
        let value = identifier.value.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        #expect(value == "0420eb5ac167fe249c76e53b430da3116c5d9fde4c5507ba6d01e885516e1bd49f92")
        #expect(certificate.notValidBefore < now && certificate.notValidAfter > now + 3600)
        #expect(certificate.notValidAfter < now + 7 * 86400)
    }

    @Test("a certificate signs itself, and each has a key of its own")
    func signature() throws {
        let first = try ChallengeCertificate.make(for: Self.challenge, now: Date())
        let second = try ChallengeCertificate.make(for: Self.challenge, now: Date())
        for certificate in [first.certificate, second.certificate] {
            #expect(certificate.issuer == certificate.subject)
            #expect(certificate.publicKey.isValidSignature(certificate.signature, for: certificate))
        }
        #expect(first.certificate.publicKey != second.certificate.publicKey)
    }
}
