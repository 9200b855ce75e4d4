import Crypto
import Foundation
import Testing
import Wire

@testable import Server

@Suite("Signatures of ACME requests") struct JSONWebSignatureTests {
    /// The key of RFC 7515, appendix A.3.
    private static let key = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"
    private static let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
    private static let y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"

    private static func exampleKey() throws -> P256.Signing.PrivateKey {
        let bytes = try #require(Base64URL.decode(key.utf8))
        return try P256.Signing.PrivateKey(rawRepresentation: Data(bytes))
    }

    @Test("the public key of RFC 7515 has the JWK that the RFC shows, and the thumbprint of RFC 7638")
    func publicKey() throws {
        let key = try Self.exampleKey().publicKey
        let jwk = JSONWebSignature.publicJWK(key)
        #expect(jwk.members.map(\.name) == ["crv", "kty", "x", "y"])
        #expect(jwk.text("crv") == "P-256" && jwk.text("kty") == "EC")
        #expect(jwk.text("x") == Self.x && jwk.text("y") == Self.y)
        // Computed with another implementation of SHA-256 over the members in this order.
        #expect(JSONWebSignature.thumbprint(key) == "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U")
    }

    @Test("the verifier of these tests accepts the signature in RFC 7515, and no other")
    func example() throws {
        let key = try Self.exampleKey().publicKey
        let protected = "eyJhbGciOiJFUzI1NiJ9"
        let content =
            "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
        let signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
        let message = try #require(SignedMessage(protected: protected, content: content, signature: signature))
        #expect(message.isSigned(by: key))
        #expect(!message.isSigned(by: P256.Signing.PrivateKey().publicKey))
    }

    @Test("a request has the header that RFC 8555 requires, and a payload or none")
    func request() throws {
        let key = P256.Signing.PrivateKey()
        let first = try JSONWebSignature.sign(
            JSONObject(), with: key, as: .publicKey, nonce: "bm9uY2U", url: "https://ca.example.org/new-account")
        let account = try #require(SignedMessage(first))
        #expect(account.header.members.map(\.name) == ["alg", "jwk", "nonce", "url"])
        #expect(account.payload == JSONObject() && account.isSigned(by: key.publicKey))
        let second = try JSONWebSignature.sign(
            nil, with: key, as: .account("https://ca.example.org/account/1"), nonce: "bm9uY2U",
            url: "https://ca.example.org/order")
        let order = try #require(SignedMessage(second))
        #expect(order.header.members.map(\.name) == ["alg", "kid", "nonce", "url"])
        #expect(order.payload == nil && order.isSigned(by: key.publicKey))
    }
}
