import Crypto
import NIOCore
import Signaling
import Wire

/// Handles the HTTP calls of PerchRTC's protocol, and opens its WebSockets. Used only on the gateway's event loop.
final class PerchDirectory {
    /// Maximum size of a device's name in bytes, the same as that of a person's name. The name is the user ID.
    private static let maxUser = 160
    /// Maximum size of the domain and of the application in bytes. Both are only echoed to the client.
    private static let maxPathPart = 64
    /// Size of a token in bytes: 128 random bits, so that tokens cannot be guessed within their short lifetime.
    private static let tokenBytes = 16

    let gateway: Gateway
    private var tokens = PerchTokens()

    init(gateway: Gateway) { self.gateway = gateway }

    // MARK: Credentials

    /// Throws unless the fields contain this server's credential. Compares hashes, so that the time taken reveals
    /// nothing about it.
    func check(_ fields: FormFields) throws(WireError) {
        let settings = gateway.configuration.perch
        guard let ident = settings.ident, let secret = settings.secret?.revealed else { throw .perchCredential }
        let known = Self.hash(ident) + Self.hash(secret)
        let claimed = Self.hash(fields["ident"] ?? "") + Self.hash(fields["secret"] ?? "")
        guard constantTimeEquals(known, claimed) else { throw .perchCredential }
    }

    private static func hash(_ text: String) -> [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }

    // MARK: Calls

    /// Returns a new token if the room would currently admit the client; otherwise throws the reason.
    func token(_ fields: FormFields, from address: IPAddress) async throws(WireError) -> String {
        let place = try place(fields)
        let project = gateway.runner.hubSettings.project
        let application = PerchClient.application(place, address: gateway.limitingText(address), project)
        _ = try await gateway.runner.ask(.check(application))
        var generator = SystemRandomNumberGenerator()
        // Only this node knows the token, so the token must lead the load balancer of a cluster to this node.
        let token = gateway.idPrefix + project.randomText(bytes: Self.tokenBytes, using: &generator)
        let now = gateway.runner.now
        let expiresAt = now + gateway.configuration.perch.tokenLifetime
        tokens.add(token, PerchTokens.Ticket(place: place, address: address, expiresAt: expiresAt), now: now)
        return token
    }

    /// Returns the place described by the fields. The envelope is set later, because the WebSocket's URL determines
    /// it.
    private func place(_ fields: FormFields) throws(WireError) -> PerchPlace {
        guard let user = fields["username"], (1...Self.maxUser).contains(user.utf8.count),
            user.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
        else { throw WireError(.invalidName, "Send \"username\": one line of 1 to \(Self.maxUser) bytes.") }
        let (domain, application) = (fields["domain"] ?? "default", fields["application"] ?? "default")
        guard max(domain.utf8.count, application.utf8.count) <= Self.maxPathPart else {
            throw WireError(.malformed, "\"domain\" and \"application\" must not exceed \(Self.maxPathPart) bytes.")
        }
        return PerchPlace(
            envelope: .flat, domain: domain, application: application, room: fields["room"] ?? "default", user: user)
    }

    func servers() -> [ICEServer] {
        let ice = gateway.runner.hubSettings.ice
        return ice.configuration(for: ConnectionID(high: .max, low: 0), now: gateway.runner.wallNow).servers
    }

    // MARK: WebSockets

    /// Throws unless a client at this address may open a WebSocket with this token. Does not consume the token.
    func admit(_ token: String, from address: IPAddress) throws(WireError) {
        try gateway.admit(address, at: .transport)
        guard gateway.hasRoom(for: address) else { throw Gateway.AdmissionPoint.transport.tooManyConnections }
        guard tokens.contains(token, now: gateway.runner.now) else { throw .perchToken }
    }

    /// Consumes a token and creates its client's socket. Returns nil if the token is not valid.
    func open(_ token: String, _ envelope: PerchEnvelope, from address: IPAddress) -> PerchSocket? {
        guard let ticket = tokens.take(token, now: gateway.runner.now) else { return nil }
        var place = ticket.place
        place.envelope = envelope
        return PerchSocket(gateway: gateway, address: address, place: place)
    }
}

extension WireError {
    static let perchCredential = WireError(
        .tokenSignature, "Wrong ident or secret. Use this server's perch.ident and perch.secret.")
    static let perchToken = WireError(
        .tokenExpired, "This token is unknown, used or expired. Request another one.")
}
