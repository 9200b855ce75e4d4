import Logging
import Signaling
import Wire

/// Judges a hello before anything is kept of it: which protocol, who it is, whether banned.
struct Reception: Sendable {
    /// A verified hello that only storage has yet to say something about.
    struct Guest: Sendable {
        /// Whose person it is; until storage has said so, the device's own.
        var identity: Identity
        /// Whose secret it came with.
        let device: IdentityID
        var newSecret: String?
        var hello: Hello

        init(identity: Identity, newSecret: String? = nil, hello: Hello) {
            (self.identity, self.newSecret, self.hello) = (identity, newSecret, hello)
            device = identity.id
        }
    }

    static let protocolVersion = 1

    let project: Project

    func admit(
        _ hello: Hello, now: Timestamp, using generator: inout some RandomNumberGenerator
    ) throws(WireError) -> Guest {
        guard hello.version == Self.protocolVersion else {
            throw WireError(
                .versionUnsupported,
                hello.version < Self.protocolVersion
                    ? "This page is too old for the server; reload it." : "This page is too new for the server."
            )
        }
        if let token = hello.token {
            guard hello.identity == nil else {
                throw WireError(.malformed, "Say hello with an identity or with a token, not with both.")
            }
            return try guest(with: token, hello, now: now, using: &generator)
        }
        if let secret = hello.identity {
            return Guest(identity: try project.verifyIdentitySecret(secret), hello: hello)
        }
        return newcomer(hello, using: &generator)
    }

    /// A user token proves an identity; a session token lets in a guest who has none beyond this visit.
    private func guest(
        with token: String, _ hello: Hello, now: Timestamp, using generator: inout some RandomNumberGenerator
    ) throws(WireError) -> Guest {
        do throws(WireError) {
            return Guest(identity: try project.verifyUserToken(token, now: now), hello: hello)
        } catch  where error.code == .tokenScope {
            _ = try project.verifySessionToken(token, for: nil, now: now)
            return newcomer(hello, using: &generator)
        }
    }

    /// Whose secret or user token this is, outside a hello.
    func identity(_ text: String, now: Timestamp) throws(WireError) -> Identity {
        do throws(WireError) {
            return try project.verifyIdentitySecret(text)
        } catch  where error.code == .tokenMalformed {
            return try project.verifyUserToken(text, now: now)
        }
    }

    /// As the server of 2012 made them: 15 random bytes in 20 characters, none of them a colon.
    func socketIOID(using generator: inout some RandomNumberGenerator) -> String {
        project.randomText(bytes: 15, using: &generator)
    }

    /// Somebody without an identity, or with one that proves nobody any more.
    func newcomer(_ hello: Hello, using generator: inout some RandomNumberGenerator) -> Guest {
        let id = IdentityID.random(using: &generator)
        return Guest(identity: Identity(id: id), newSecret: project.secret(of: id), hello: hello)
    }
}
