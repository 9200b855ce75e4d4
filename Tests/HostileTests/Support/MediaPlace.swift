import Foundation
import RTC
import Signaling
import Wire

/// A routed session of a server, and tokens for it.
struct MediaPlace: Sendable {
    let server: ServerProcess
    let session: SessionID
    private let forging: Forging
    var port: Int { server.port }

    init(_ server: ServerProcess) async throws {
        async let session = Self.makeSession(server)
        async let forging = Forging(server)
        (self.server, self.session, self.forging) = (server, try await session, try await forging)
    }

    private init(_ place: MediaPlace, _ session: SessionID) {
        (server, self.session, forging) = (place.server, session, place.forging)
    }

    private static func makeSession(_ server: ServerProcess) async throws -> SessionID {
        let made = try await server.command(["session", "create", "--media", "routed"])
        let printed = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
        guard let session = SessionID(printed) else { throw TimedOut("no session id: \(printed) \(made.errors)") }
        return session
    }

    /// Returns another session of the same server.
    func another() async throws -> MediaPlace { MediaPlace(self, try await Self.makeSession(server)) }

    /// Returns a new token each time, because a member who is removed can no longer use the old one.
    func token(_ role: String) -> String {
        let nonce = UInt32.random(in: .min ... .max)
        return forging.token(forging.sessionClaims(session.text, ["role": "\"\(role)\"", "nonce": "\(nonce)"]))
    }
}
