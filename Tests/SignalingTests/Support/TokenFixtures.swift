import Crypto
import Foundation
import Signaling
import Wire

/// Signs arbitrary data, to play an attacker or a faulty program that has the secret. It uses only Foundation's base64
/// and Crypto's HMAC, not the code under test.
enum Forge {
    static func token(
        _ claims: String, header: String = #"{"alg":"HS256","typ":"JWT"}"#, secret: String = Stage.secret
    ) -> String {
        let signed = base64URL(header) + "." + base64URL(claims)
        let code = HMAC<SHA256>.authenticationCode(
            for: Data(signed.utf8), using: SymmetricKey(data: Data(secret.utf8))
        )
        return signed + "." + base64URL(Data(code))
    }

    static func base64URL(_ text: String) -> String { base64URL(Data(text.utf8)) }

    private static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }

    /// Returns a session token's claims in order. `changes` replaces claims; nil removes one. Values are JSON.
    static func sessionClaims(_ session: SessionID, at now: Timestamp, _ changes: [String: String?] = [:]) -> String {
        claims(
            [
                ("iss", "\"\(Stage.apiKey)\""), ("ist", "\"project\""), ("scope", "\"session.connect\""),
                ("session_id", "\"\(session)\""), ("role", "\"publisher\""), ("iat", "\(now.seconds)"),
                ("exp", "\(now.seconds + 3600)"), ("nonce", "1"),
            ], changes)
    }

    static func userClaims(at now: Timestamp, _ changes: [String: String?] = [:]) -> String {
        claims(
            [
                ("iss", "\"\(Stage.apiKey)\""), ("ist", "\"project\""), ("scope", "\"user.connect\""),
                ("sub", "\"ada\""), ("iat", "\(now.seconds)"), ("exp", "\(now.seconds + 3600)"),
            ], changes)
    }

    private static func claims(_ usual: [(String, String)], _ changes: [String: String?]) -> String {
        var members = usual.compactMap { name, value in
            (changes[name] ?? value).map { "\"\(name)\":\($0)" }
        }
        let known = Set(usual.map(\.0))
        for (name, value) in changes.sorted(by: { $0.key < $1.key }) where !known.contains(name) {
            if let value { members.append("\"\(name)\":\(value)") }
        }
        return "{" + members.joined(separator: ",") + "}"
    }
}
