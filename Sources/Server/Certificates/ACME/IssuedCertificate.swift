import Crypto
import SwiftASN1
import Wire
import X509

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Requests for certificates (PKCS #10, RFC 2986).
enum CertificateRequest {
    /// Returns the request in DER. The names are in the extension for alternative names, which is all that authorities read.
    static func der(
        _ domains: [String], _ key: P256.Signing.PrivateKey
    ) throws(ACMEFailure) -> [UInt8] {
        do {
            let extensions = try Certificate.Extensions {
                SubjectAlternativeNames(domains.map { .dnsName($0) })
            }
            let request = try CertificateSigningRequest(
                version: .v1, subject: DistinguishedName(), privateKey: Certificate.PrivateKey(key),
                attributes: CertificateSigningRequest.Attributes([
                    .init(ExtensionRequest(extensions: extensions))
                ]), signatureAlgorithm: .ecdsaWithSHA256)
            var serializer = DER.Serializer()
            try serializer.serialize(request)
            return serializer.serializedBytes
        } catch {
            throw ACMEFailure(
                code: .local, reason: "The request for the certificate cannot be made (\(error)).",
                advice: "Check acme.domains.")
        }
    }
}

/// A certificate with its key and the certificates of the authorities that issued it.
struct IssuedCertificate: Equatable, Sendable {
    /// Maximum number of certificates in a chain.
    private static let maxChain = 10

    /// The key and then the chain, in PEM. They share a file, so that they always match.
    let pem: SecretText
    /// The domains in the certificate, in lower case.
    let domains: Set<String>
    /// The first and the last moment at which the certificate is valid.
    let validFrom: Timestamp
    let validUntil: Timestamp

    /// Parses ``pem`` of an earlier value. Returns nil if it is damaged, or if key and certificate do not match.
    init?(stored text: String) {
        guard let documents = try? PEMDocument.parseMultiple(pemString: text), let first = documents.first,
            let key = try? P256.Signing.PrivateKey(pemRepresentation: first.pemString),
            let made = try? Self(chain: Array(documents.dropFirst()), key: key)
        else { return nil }
        self = made
    }

    /// Reads the authority's response, and checks that the certificate is the one that was ordered.
    ///
    /// - Parameter now: the time of the order; nil skips the check of the validity.
    init(_ body: [UInt8], _ settings: ACMEOrder.Settings, now: Timestamp?) throws(ACMEFailure) {
        guard body.count <= ACMEResponse.maxBodySize, let text = String(validating: body, as: UTF8.self),
            let documents = try? PEMDocument.parseMultiple(pemString: text)
        else { throw .badResponse("it is not a chain of certificates") }
        self = try Self(chain: documents, key: settings.certificateKey)
        guard domains.isSuperset(of: settings.domains) else {
            throw Self.unusable("it does not contain all domains of acme.domains")
        }
        if let now, validUntil <= now { throw Self.unusable("it has expired") }
    }

    private init(chain: [PEMDocument], key: P256.Signing.PrivateKey) throws(ACMEFailure) {
        let certificates = chain.prefix(Self.maxChain + 1).compactMap { try? Certificate(pemDocument: $0) }
        guard certificates.count == chain.count, chain.count <= Self.maxChain, let leaf = certificates.first else {
            throw .badResponse("it is not a chain of certificates")
        }
        guard leaf.publicKey == Certificate.PublicKey(key.publicKey) else {
            throw Self.unusable("it belongs to another key")
        }
        let names = (try? leaf.extensions.subjectAlternativeNames).map { Array($0) } ?? []
        let texts = names.compactMap { name -> String? in
            if case .dnsName(let text) = name { text.lowercased() } else { nil }
        }
        domains = Set(texts)
        validFrom = Self.timestamp(leaf.notValidBefore)
        validUntil = Self.timestamp(leaf.notValidAfter)
        pem = SecretText(([key.pemRepresentation] + chain.map(\.pemString)).map { $0 + "\n" }.joined())
    }

    private static func unusable(_ why: String) -> ACMEFailure {
        ACMEFailure(
            code: .badCertificate, reason: "The authority's certificate cannot be used: \(why).",
            advice: "The server tries again later. Check this machine's clock.")
    }

    private static func timestamp(_ date: Date) -> Timestamp {
        Timestamp(milliseconds: Int64(date.timeIntervalSince1970) * 1000)
    }
}
