import Logging
import Signaling
import Wire

/// Validates a hello: the protocol version, and the identity secret or token. Bans and stored data are checked later.
struct HelloValidator: Sendable {
    /// A verified hello, before the storage lookup.
    struct Guest: Sendable {
        /// The person's identity. Before the storage lookup, this is the device's own identity.
        var identity: Identity
        /// The device's own identity: the one that the secret or token proves, or a new one.
        let device: IdentityID
        var newSecret: String?
        var hello: Hello

        init(identity: Identity, newSecret: String? = nil, hello: Hello) {
            (self.identity, self.newSecret, self.hello) = (identity, newSecret, hello)
            device = identity.id
        }
    }

    static let protocolVersion = 1

    let projects: Projects
    var project: Project { projects.main }

    func admit(
        _ hello: Hello, now: Timestamp, using generator: inout some RandomNumberGenerator
    ) throws(WireError) -> Guest {
        guard hello.version == Self.protocolVersion else {
            throw WireError(
                .versionUnsupported,
                hello.version < Self.protocolVersion
                    ? "This client is too old for the server. Reload the page or update the app."
                    : "This client is too new for the server. Use protocol version \(Self.protocolVersion)."
            )
        }
        if let token = hello.token {
            guard hello.identity == nil else {
                throw WireError(.malformed, "Send either identity or token in hello, not both.")
            }
            return try guest(with: token, hello, now: now, using: &generator)
        }
        if let secret = hello.identity {
            return Guest(identity: try project.verifyIdentitySecret(secret), hello: hello)
        }
        return newcomer(hello, using: &generator)
    }

    /// Accepts a user token, which proves an identity, or a session token, which admits a guest with a new identity.
    private func guest(
        with token: String, _ hello: Hello, now: Timestamp, using generator: inout some RandomNumberGenerator
    ) throws(WireError) -> Guest {
        guard Projects.isSessionToken(token) else {
            return Guest(identity: try project.verifyUserToken(token, now: now), hello: hello)
        }
        _ = try projects.verifySessionToken(token, for: nil, now: now)
        return newcomer(hello, using: &generator)
    }

    /// Returns the identity that a secret or user token proves.
    func identity(_ text: String, now: Timestamp) throws(WireError) -> Identity {
        do throws(WireError) {
            return try project.verifyIdentitySecret(text)
        } catch  where error.code == .tokenMalformed {
            return try project.verifyUserToken(text, now: now)
        }
    }

    /// Creates an ID in the format of Socket.IO 0.9: 15 random bytes in 20 characters without a colon.
    func socketIOID(using generator: inout some RandomNumberGenerator) -> String {
        project.randomText(bytes: 15, using: &generator)
    }

    /// Creates a new identity, for a hello without an identity or with one that no longer exists.
    func newcomer(_ hello: Hello, using generator: inout some RandomNumberGenerator) -> Guest {
        let id = IdentityID.random(using: &generator)
        return Guest(identity: Identity(id: id), newSecret: project.secret(of: id), hello: hello)
    }
}
