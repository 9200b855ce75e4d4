import Crypto
import CryptoExtras
import Foundation

/// The private key of an application, which signs tokens (RS256) as the vendor's newer SDKs do.
public struct ApplicationKey: Sendable {
    private let key: _RSA.Signing.PrivateKey

    public init() throws { key = try _RSA.Signing.PrivateKey(keySize: .bits2048) }

    /// The public key in PEM format.
    public var publicKey: String { key.publicKey.pemRepresentation }

    /// Returns a token with these claims, which are a JSON object.
    public func token(_ claims: String) throws -> String {
        let signed =
            Self.base64URL(Data(#"{"alg":"RS256","typ":"JWT"}"#.utf8)) + "." + Self.base64URL(Data(claims.utf8))
        let signature = try key.signature(for: SHA256.hash(data: Data(signed.utf8)), padding: .insecurePKCS1v1_5)
        return signed + "." + Self.base64URL(signature.rawRepresentation)
    }

    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}

/// Returns a T1 token with these fields, signed as OpenTok's SDKs do it.
public func t1Token(_ fields: String, key: String, secret: String) -> String {
    let code = HMAC<Insecure.SHA1>.authenticationCode(
        for: Data(fields.utf8), using: SymmetricKey(data: Data(secret.utf8)))
    let digits = code.map { String(format: "%02x", $0) }.joined()
    return "T1==" + Data("partner_id=\(key)&sig=\(digits):\(fields)".utf8).base64EncodedString()
}
