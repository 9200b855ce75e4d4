import Crypto
import Foundation

/// Signs tokens as an attacker would, with the project's secret or with another key. It uses only Foundation's base64
/// and Crypto's HMAC, not the code under test.
struct Forging: Sendable {
    static let header = #"{"alg":"HS256","typ":"JWT"}"#

    let apiKey: String
    let secret: String
    /// The current time in seconds since 1970, as in the claims.
    let now: Int64

    /// Reads the API key and the secret from the output of `confab project show`.
    init(printed: String) throws {
        func value(after label: String) -> String? {
            printed.split(separator: "\n").first { $0.hasPrefix(label) }
                .map { $0.dropFirst(label.count).trimmingCharacters(in: .whitespaces) }
        }
        guard let key = value(after: "API key:"), let secret = value(after: "API secret:") else {
            throw Unreadable(description: "no project in what was printed (\(printed.utf8.count) bytes)")
        }
        (apiKey, self.secret, now) = (key, secret, Int64(Date().timeIntervalSince1970))
    }

    struct Unreadable: Error, CustomStringConvertible { let description: String }

    // MARK: Signing

    func token(_ claims: String, header: String = header, secret: String? = nil) -> String {
        let signed = Self.base64URL(Data(header.utf8)) + "." + Self.base64URL(Data(claims.utf8))
        let key = SymmetricKey(data: Data((secret ?? self.secret).utf8))
        return signed + "." + Self.base64URL(Data(HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: key)))
    }

    /// Returns a T1 token: signed, base64-encoded form fields.
    func t1(_ fields: String, apiKey: String? = nil, secret: String? = nil) -> String {
        let key = SymmetricKey(data: Data((secret ?? self.secret).utf8))
        let code = HMAC<Insecure.SHA1>.authenticationCode(for: Data(fields.utf8), using: key)
        let digits = code.map { String(format: "%02x", $0) }.joined()
        return "T1==" + Data("partner_id=\(apiKey ?? self.apiKey)&sig=\(digits):\(fields)".utf8).base64EncodedString()
    }

    /// Returns the fields of a T1 token. `changes` replaces fields; nil removes one.
    func t1Fields(_ session: String, _ changes: [String: String?] = [:]) -> String {
        [
            ("session_id", session), ("create_time", "\(now)"), ("expire_time", "\(now + 3600)"), ("role", "publisher"),
            ("nonce", "0.5"), ("initial_layout_class_list", ""),
        ].compactMap { name, value in (changes[name] ?? value).map { "\(name)=\($0)" } }.joined(separator: "&")
    }

    static func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    // MARK: Claims

    /// Returns a session token's claims in order. `changes` replaces or adds claims; nil removes one. Values are JSON.
    func sessionClaims(_ session: String, _ changes: [String: String?] = [:]) -> String {
        claims(
            [
                ("iss", "\"\(apiKey)\""), ("ist", "\"project\""), ("scope", "\"session.connect\""),
                ("session_id", "\"\(session)\""), ("role", "\"publisher\""), ("iat", "\(now)"),
                ("exp", "\(now + 3600)"), ("nonce", "1"),
            ], changes)
    }

    func userClaims(_ user: String = "ada", _ changes: [String: String?] = [:]) -> String {
        claims(
            [
                ("iss", "\"\(apiKey)\""), ("ist", "\"project\""), ("scope", "\"user.connect\""),
                ("sub", "\"\(user)\""), ("iat", "\(now)"), ("exp", "\(now + 3600)"),
            ], changes)
    }

    private func claims(_ usual: [(String, String)], _ changes: [String: String?]) -> String {
        var members = usual.compactMap { name, value in (changes[name] ?? value).map { "\"\(name)\":\($0)" } }
        let known = Set(usual.map(\.0))
        for (name, value) in changes.sorted(by: { $0.key < $1.key }) where !known.contains(name) {
            if let value { members.append("\"\(name)\":\(value)") }
        }
        return "{" + members.joined(separator: ",") + "}"
    }
}
