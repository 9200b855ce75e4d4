import Crypto
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Signatures of requests to an ACME server (RFC 8555 §6.2): flattened JWS (RFC 7515 §7.2.2) with ES256 (RFC 7518 §3.4).
enum JSONWebSignature {
    /// How a request names the account's key.
    enum KeyReference: Equatable, Sendable {
        /// The public key itself, for the request that creates or finds the account.
        case publicKey
        /// The account's URL, for all other requests.
        case account(String)
    }

    /// Returns the signed body of a POST request.
    ///
    /// - Parameters:
    ///   - payload: the JSON to send; nil for POST-as-GET (RFC 8555 §6.3).
    ///   - url: the URL of the request, which the signature covers.
    /// - Throws: an error if the key cannot sign.
    static func sign(
        _ payload: JSONObject?, with key: P256.Signing.PrivateKey, as reference: KeyReference, nonce: String,
        url: String
    ) throws -> [UInt8] {
        json(try message(payload, with: key, as: reference, nonce: nonce, url: url))
    }

    /// Returns a signed message, which can be the payload of another one.
    ///
    /// - Parameter nonce: nil for a message inside another one, which has the nonce (RFC 8555 §7.3.5).
    static func message(
        _ payload: JSONObject?, with key: P256.Signing.PrivateKey, as reference: KeyReference, nonce: String?,
        url: String
    ) throws -> JSONObject {
        var header = JSONObject([.init(name: "alg", value: .string("ES256"))])
        switch reference {
        case .publicKey: header.members.append(.init(name: "jwk", value: .object(publicJWK(key.publicKey))))
        case .account(let account): header.members.append(.init(name: "kid", value: .string(account)))
        }
        if let nonce { header.members.append(.init(name: "nonce", value: .string(nonce))) }
        header.members.append(.init(name: "url", value: .string(url)))
        let protected = Base64URL.encode(json(header))
        let content = payload.map { Base64URL.encode(json($0)) } ?? ""
        let signature = try key.signature(for: Data("\(protected).\(content)".utf8))
        return JSONObject([
            .init(name: "protected", value: .string(protected)), .init(name: "payload", value: .string(content)),
            .init(name: "signature", value: .string(Base64URL.encode(signature.rawRepresentation))),
        ])
    }

    /// The public key as a JWK, with its members in the order that the thumbprint requires.
    static func publicJWK(_ key: P256.Signing.PublicKey) -> JSONObject {
        // 0x04, then the coordinates with 32 bytes each.
        let point = Array(key.x963Representation)
        return JSONObject([
            .init(name: "crv", value: .string("P-256")), .init(name: "kty", value: .string("EC")),
            .init(name: "x", value: .string(Base64URL.encode(point[1..<33]))),
            .init(name: "y", value: .string(Base64URL.encode(point[33..<65]))),
        ])
    }

    /// The SHA-256 thumbprint of the key in base64url (RFC 7638).
    static func thumbprint(_ key: P256.Signing.PublicKey) -> String {
        Base64URL.encode(SHA256.hash(data: json(publicJWK(key))))
    }

    private static func json(_ object: JSONObject) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(.object(object))
        return writer.bytes
    }
}
