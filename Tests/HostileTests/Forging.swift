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
        token(claimBytes: Data(claims.utf8), header: header, secret: secret)
    }

    func token(claimBytes: Data, header: String = header, secret: String? = nil) -> String {
        let signed = Self.base64URL(header) + "." + Self.base64URL(claimBytes)
        return signed + "." + Self.base64URL(code(of: signed, secret: secret ?? self.secret))
    }

    func code(of signed: String, secret: String) -> Data {
        Data(HMAC<SHA256>.authenticationCode(for: Data(signed.utf8), using: SymmetricKey(data: Data(secret.utf8))))
    }

    static func base64URL(_ text: String) -> String { base64URL(Data(text.utf8)) }

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

/// A forged token and the expected error code.
struct Forgery: Sendable {
    let name: String
    let token: String
    /// The allowed error codes. There are several if the protocol does not specify which fault is reported first.
    let codes: Set<String>

    init(_ name: String, _ token: String, _ codes: String...) {
        (self.name, self.token, self.codes) = (name, token, Set(codes))
    }
}

extension Forging {
    /// Tokens whose header names another algorithm or key, signed with the right secret, and tokens with unusual
    /// headers and a wrong signature. A header must never choose the key.
    func headers(_ claims: String) -> [Forgery] {
        let refused = [
            #"{"alg":"none"}"#, #"{"alg":"None","typ":"JWT"}"#, #"{"alg":"NONE"}"#, #"{"alg":"nOnE"}"#,
            #"{"alg":"RS256"}"#, #"{"alg":"HS384"}"#, #"{"alg":"HS512"}"#, #"{"alg":"ES256"}"#, #"{"alg":"PS256"}"#,
            #"{"alg":"EdDSA"}"#, #"{"alg":"hs256"}"#, #"{"alg":" HS256"}"#, #"{"alg":"HS256\u0000"}"#, #"{"alg":""}"#,
            #"{"alg":null}"#, #"{"alg":["HS256"]}"#, #"{"alg":{"HS256":1}}"#, #"{"alg":256}"#, #"{"typ":"JWT"}"#,
            #"{"alg":"HS256","alg":"none"}"#, #"{"alg":"none","alg":"HS256"}"#, #"{"alg":"HS256","crit":["exp"]}"#,
            #"{"alg":"HS256","b64":false,"crit":["b64"]}"#, "[]", "", "null", #""HS256""#, "{", #"{"alg":"HS256"}x"#,
        ]
        let strange = [
            #"{"alg":"HS256","kid":"../../../../dev/null"}"#, #"{"alg":"HS256","kid":"/etc/passwd\u0000.pem"}"#,
            #"{"alg":"HS256","kid":"' UNION SELECT 'x"}"#, #"{"alg":"HS256","kid":"project.json"}"#,
            #"{"alg":"HS256","jku":"http://127.0.0.1:9/keys.json"}"#,
            #"{"alg":"HS256","x5u":"http://127.0.0.1:9/a.pem"}"#,
            #"{"alg":"HS256","jwk":{"kty":"oct","k":""}}"#, #"{"alg":"HS256","x5c":["AAAA"]}"#,
        ]
        return refused.map { Forgery("header \($0)", token(claims, header: $0), "token_malformed") }
            + strange.map { Forgery("key of \($0)", token(claims, header: $0, secret: ""), "token_signature") }
            + [Forgery("no signature, alg none", Self.unsigned(claims, #"{"alg":"none"}"#), "token_malformed")]
    }

    private static func unsigned(_ claims: String, _ header: String) -> String {
        base64URL(header) + "." + base64URL(claims) + "."
    }

    /// Tokens with wrong, truncated, extended or missing signatures, and tokens with unusual encodings.
    func signatures(_ claims: String) -> [Forgery] {
        let good = token(claims)
        let parts = good.split(separator: ".").map(String.init)
        let (signed, code) = (parts[0] + "." + parts[1], parts[2])
        let secrets = [
            "", "secret", apiKey, String(secret.reversed()), secret.uppercased(), secret + "0", "0" + secret,
        ]
        var found = secrets.filter { $0 != secret }
            .map { Forgery("another secret (\($0.utf8.count) bytes)", token(claims, secret: $0), "token_signature") }
        let raw = self.code(of: signed, secret: secret)
        found += [0, 1, 16, 31].map { length in
            Forgery(
                "\(length) bytes of signature", signed + "." + Self.base64URL(raw.prefix(length)), "token_signature")
        }
        found += [
            Forgery("33 bytes of signature", signed + "." + Self.base64URL(raw + [0]), "token_signature"),
            Forgery("zeros", signed + "." + Self.base64URL(Data(count: 32)), "token_signature"),
            Forgery("no third part", signed, "token_malformed"),
            Forgery("a fourth part", good + ".", "token_malformed"),
            Forgery("padding", good + "=", "token_malformed"),
            Forgery(
                "base64, not base64url", good.replacing("-", with: "+").replacing("_", with: "/") + "+",
                "token_malformed"),
            Forgery("bits left over", signed + "." + Self.withBitsLeftOver(code), "token_malformed"),
            Forgery("a blank", " " + good, "token_malformed"),
            Forgery("a line feed", good + "\n", "token_malformed"),
            Forgery("a NUL", good + "\u{0}", "token_malformed"),
            Forgery("a NUL inside", parts[0] + ".\u{0}" + parts[1] + "." + code, "token_malformed"),
            Forgery("letters that look alike", good.replacing("e", with: "е"), "token_malformed"),
            Forgery("nothing", "", "token_malformed"), Forgery("dots", "..", "token_malformed"),
        ]
        return found
    }

    /// The last base64 character of a 32-byte signature has two unused bits. The bits must be zero, because otherwise
    /// one token would have four valid encodings.
    private static func withBitsLeftOver(_ code: String) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard let last = code.last, let value = alphabet.firstIndex(of: last) else { return code + "=" }
        return code.dropLast() + String(alphabet[value | 1])
    }

    /// Tokens with invalid dates, signed with the right secret. `longest` is the scope's maximum lifetime in seconds.
    func dates(_ claims: (_ changes: [String: String?]) -> String, longest: Int64) -> [Forgery] {
        let (now, year) = (now, Int64(365 * 86_400))
        func forged(_ name: String, _ changes: [String: String?], _ code: String) -> Forgery {
            Forgery(name, token(claims(changes)), code)
        }
        let odd: [String?] = [
            nil, "null", "\"\(now + 60)\"", "true", "[]", "{}", "[\(now + 60)]", "9223372036854775807", "1e300",
            "-1e300",
            "99999999999999999999999999",
        ]
        return odd.map { forged("exp \($0 ?? "missing")", ["exp": $0], "token_malformed") } + [
            forged("exp a second ago", ["exp": "\(now - 1)"], "token_expired"),
            forged("exp with a fraction, past", ["exp": "\(now - 1).999"], "token_expired"),
            forged("exp 0", ["exp": "0"], "token_expired"), forged("exp -1", ["exp": "-1"], "token_expired"),
            forged("exp far below zero", ["exp": "-9007199254740993"], "token_expired"),
            forged("ten years", ["exp": "\(now + 10 * year)"], "token_lifetime"),
            forged("ten years, no iat", ["exp": "\(now + 10 * year)", "iat": nil], "token_lifetime"),
            forged(
                "ten years of which most are over", ["exp": "\(now + 60)", "iat": "\(now - 10 * year)"],
                "token_lifetime"),
            forged("a minute and a half too long", ["exp": "\(now + longest + 90)"], "token_lifetime"),
            forged("as long as numbers go", ["exp": "9223372036854775"], "token_lifetime"),
            forged("nbf tomorrow", ["nbf": "\(now + 86_400)"], "token_not_yet"),
            forged("nbf as a string", ["nbf": "\"0\""], "token_malformed"),
            forged("iat tomorrow", ["iat": "\(now + 86_400)", "exp": "\(now + 90_000)"], "token_not_yet"),
            forged("iat beyond numbers", ["iat": "9223372036854775807"], "token_malformed"),
        ]
    }

    /// Tokens whose claims are not a JSON object with unique names.
    func shapes(_ claims: String) -> [Forgery] {
        let inside = String(claims.dropFirst().dropLast())
        let deep = String(repeating: "[", count: 1500) + String(repeating: "]", count: 1500)
        let members = (0..<100).map { "\"m\($0)\":0" }.joined(separator: ",")
        let texts = [
            ("two scopes", "{\(inside),\"scope\":\"session.connect\"}"),
            ("two expiries", "{\"exp\":9999999999,\(inside)}"),
            ("a name spelt with an escape", "{\(inside),\"sc\\u006fpe\":\"user.connect\"}"),
            ("1500 lists deep", "{\(inside),\"x\":\(deep)}"), ("a hundred members", "{\(inside),\(members)}"),
            ("a raw NUL", "{\(inside),\"x\":\"\u{0}\"}"), ("a raw line feed in a string", "{\(inside),\"x\":\"\n\"}"),
            ("something after", "{\(inside)} {}"), ("a list", "[\(claims)]"), ("a string", "\"x\""), ("nothing", ""),
            ("a byte order mark", "\u{FEFF}\(claims)"), ("a comment", "{/**/\(inside)}"),
            ("a comma too many", "{\(inside),}"),
        ]
        return texts.map { Forgery("claims: \($0.0)", token($0.1), "token_malformed") } + [
            Forgery("claims: not UTF-8", token(claimBytes: Data(claims.utf8) + [0xFF]), "token_malformed"),
            Forgery(
                "claims: half a character",
                token(claimBytes: Data("{\"x\":\"".utf8) + [0xE2, 0x82] + Data("\"}".utf8)), "token_malformed"),
        ]
    }
}
