import Wire
import Crypto

/// The STUN and TURN servers that clients receive, and their credentials.
public struct ICEProvision: Equatable, Sendable {
    /// How clients authenticate to the TURN servers.
    public enum TURNCredentials: Equatable, Sendable {
        /// coturn's `static-auth-secret`: the user name begins with the expiry time, and the password is the HMAC-SHA1
        /// of the user name (draft-uberti-behave-turn-rest-00). Leaked credentials expire soon.
        case timeLimited(secret: String, lifetime: Duration)
        case fixed(username: String, password: String)
    }

    public var stunServers: [String]
    public var turnServers: [String]
    public var credentials: TURNCredentials?

    public init(stunServers: [String] = [], turnServers: [String] = [], credentials: TURNCredentials? = nil) {
        self.stunServers = stunServers
        self.turnServers = turnServers
        self.credentials = credentials
    }

    public var hasTURN: Bool { !turnServers.isEmpty }
    public var isEmpty: Bool { stunServers.isEmpty && turnServers.isEmpty }

    package func configuration(for client: ConnectionID, now: Timestamp) -> ICEConfiguration {
        var servers: [ICEServer] = stunServers.isEmpty ? [] : [ICEServer(urls: stunServers)]
        var expiresAt: Timestamp?
        switch credentials {
        case .timeLimited(let secret, let lifetime)? where hasTURN:
            let expiry = now + lifetime
            // Do not put the identity in the user name, because TURN servers log user names.
            let username = "\(expiry.seconds):\(client.description.prefix(8))"
            let code = HMAC<Insecure.SHA1>.authenticationCode(
                for: Array(username.utf8), using: SymmetricKey(data: Array(secret.utf8))
            )
            servers.append(ICEServer(urls: turnServers, username: username, credential: Base64.encode(Array(code))))
            expiresAt = expiry
        case .fixed(let username, let password)? where hasTURN:
            servers.append(ICEServer(urls: turnServers, username: username, credential: password))
        default: break
        }
        return ICEConfiguration(servers: servers, relayOnly: hasTURN, expiresAt: expiresAt)
    }
}

/// Standard base64 with padding (RFC 4648 §4), as coturn uses for passwords.
enum Base64 {
    static func encode(_ bytes: [UInt8]) -> String {
        let text = Base64URL.encode(bytes).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
        return String(text) + String(repeating: "=", count: (4 - text.count % 4) % 4)
    }
}
