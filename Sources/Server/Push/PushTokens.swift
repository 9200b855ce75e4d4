import Crypto
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// JSON Web Tokens signed with ES256 (RFC 7518 §3.4), the algorithm that Web Push and Apple's service require.
enum ES256 {
    static func token(header: [(String, Claim)], claims: [(String, Claim)], key: P256.Signing.PrivateKey) throws
        -> String
    {
        let text = Base64URL.encode(object(header)) + "." + Base64URL.encode(object(claims))
        // An ES256 signature is r and s with 32 bytes each, not DER.
        let signature = try key.signature(for: Data(text.utf8)).rawRepresentation
        return text + "." + Base64URL.encode(signature)
    }

    /// A value in the header or the claims of a token.
    enum Claim {
        case text(String)
        /// A time in whole seconds since 1970. Some verifiers reject fractions.
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

/// The VAPID tokens that identify this server to the push services of browsers (RFC 8292), one per service.
struct VAPIDTokens {
    /// Lifetime of a token: half of the maximum of one day (RFC 8292 §2), to tolerate clock differences.
    static let lifetime: Duration = .seconds(12 * 3600)
    /// How long before its expiry a token is replaced.
    static let margin: Duration = .seconds(3600)
    /// The maximum number of cached tokens. Browsers use only a few services, but wildcards in the configuration can
    /// match more.
    static let maxCached = 64

    private let key: P256.Signing.PrivateKey
    private let publicKey: String
    /// A `mailto:` or `https:` URL where the service can reach the operator; nil if none is configured.
    private let contact: String?
    private var tokens: [String: (text: String, expires: Timestamp)] = [:]

    init(key: P256.Signing.PrivateKey, contact: String?) {
        (self.key, self.contact) = (key, contact)
        publicKey = Base64URL.encode(key.publicKey.x963Representation)
    }

    /// Returns the value of the `Authorization` header.
    ///
    /// - Parameter origin: the origin of the service, `https://host[:port]`.
    mutating func authorization(for origin: String, now: Timestamp) throws -> String {
        // Do not reuse a token that expires too late: it was created before the clock was set back.
        if let kept = tokens[origin], now + Self.margin < kept.expires,
            kept.expires <= now + Self.lifetime + Self.margin
        {
            return header(kept.text)
        }
        if tokens.count >= Self.maxCached { tokens.removeAll() }
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

/// The token that identifies this server to Apple, shared by all connections. Apple rejects tokens that are older than an
/// hour, and servers that renew them more than once within 20 minutes.
struct APNSToken {
    static let lifetime: Duration = .seconds(50 * 60)
    static let minRenewalInterval: Duration = .seconds(20 * 60)

    private let key: APNSKey
    private var current: (text: String, made: Timestamp)?

    init(key: APNSKey) { self.key = key }

    mutating func token(now: Timestamp) throws -> String {
        if let current, (.zero..<Self.lifetime).contains(now - current.made) { return current.text }
        return try make(now)
    }

    /// Returns a token in place of one that was rejected as expired: a new one, or the current one if the rejected
    /// token was already replaced. Returns nil if the rejected token is too new to be replaced; this machine's clock
    /// is then wrong.
    mutating func replacement(for refused: String, now: Timestamp) throws -> String? {
        guard let current, current.text == refused else { return try token(now: now) }
        return (.zero..<Self.minRenewalInterval).contains(now - current.made) ? nil : try make(now)
    }

    private mutating func make(_ now: Timestamp) throws -> String {
        let text = try ES256.token(
            header: [("alg", .text("ES256")), ("kid", .text(key.keyID))],
            claims: [("iss", .text(key.teamID)), ("iat", .seconds(now.seconds))], key: key.key)
        current = (text, now)
        return text
    }
}
