import Crypto
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A signed JSON Web Token with the one algorithm that both kinds of service take: ES256 (RFC 7518 §3.4).
enum ES256 {
    static func token(header: [(String, Claim)], claims: [(String, Claim)], key: P256.Signing.PrivateKey) throws
        -> String
    {
        let text = Base64URL.encode(object(header)) + "." + Base64URL.encode(object(claims))
        // The two numbers one after the other, 32 bytes each, and not in DER.
        let signature = try key.signature(for: Data(text.utf8)).rawRepresentation
        return text + "." + Base64URL.encode(signature)
    }

    enum Claim {
        case text(String)
        /// Whole seconds since 1970: some verifiers refuse fractions.
        case seconds(Int64)
    }

    private static func object(_ members: [(String, Claim)]) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        for (name, claim) in members {
            writer.name(name)
            switch claim {
            case .text(let text): writer.string(text)
            case .seconds(let seconds): writer.integer(seconds)
            }
        }
        writer.endObject()
        return writer.bytes
    }
}

/// The tokens by which push services of browsers know this server (RFC 8292), one for each service.
struct VAPIDTokens {
    /// At most a day is allowed (RFC 8292 §2); half of that bears clocks that differ.
    static let lifetime: Duration = .seconds(12 * 3600)
    /// How long before its end a token is replaced.
    static let margin: Duration = .seconds(3600)
    /// Services kept in mind. Browsers' use a handful; a wildcard of the configuration admits more.
    static let services = 64

    private let key: P256.Signing.PrivateKey
    private let publicKey: String
    /// Whom a service may write to about us: a `mailto:` or `https:` URL.
    private let contact: String?
    private var tokens: [String: (text: String, expires: Timestamp)] = [:]

    init(key: P256.Signing.PrivateKey, contact: String?) {
        (self.key, self.contact) = (key, contact)
        publicKey = Base64URL.encode(key.publicKey.x963Representation)
    }

    /// The value of `Authorization`.
    ///
    /// - Parameter origin: of the service, `https://host[:port]`.
    mutating func authorization(for origin: String, now: Timestamp) throws -> String {
        if let kept = tokens[origin], now + Self.margin < kept.expires { return header(kept.text) }
        if tokens.count >= Self.services { tokens.removeAll() }
        let expires = now + Self.lifetime
        var claims: [(String, ES256.Claim)] = [("aud", .text(origin)), ("exp", .seconds(expires.seconds))]
        if let contact { claims.append(("sub", .text(contact))) }
        let text = try ES256.token(
            header: [("typ", .text("JWT")), ("alg", .text("ES256"))], claims: claims, key: key)
        tokens[origin] = (text, expires)
        return header(text)
    }

    private func header(_ token: String) -> String { "vapid t=\(token), k=\(publicKey)" }
}

/// The token by which Apple knows this server: one for all connections, made anew before it is an hour old and never
/// twice within twenty minutes, both of which Apple refuses.
struct APNSToken {
    static let lifetime: Duration = .seconds(50 * 60)
    static let shortest: Duration = .seconds(20 * 60)

    private let key: APNSKey
    private var current: (text: String, made: Timestamp)?

    init(key: APNSKey) { self.key = key }

    mutating func token(now: Timestamp) throws -> String {
        if let current, now - current.made < Self.lifetime { return current.text }
        return try make(now)
    }

    /// Another token than one that was refused as expired; nil when that was made just now, so that another would be as
    /// expired: then this machine's clock is wrong.
    mutating func replacement(for refused: String, now: Timestamp) throws -> String? {
        guard let current, current.text == refused else { return try token(now: now) }
        return now - current.made < Self.shortest ? nil : try make(now)
    }

    private mutating func make(_ now: Timestamp) throws -> String {
        let text = try ES256.token(
            header: [("alg", .text("ES256")), ("kid", .text(key.keyID))],
            claims: [("iss", .text(key.teamID)), ("iat", .seconds(now.seconds))], key: key.key)
        current = (text, now)
        return text
    }
}
