import Logging
import Signaling
import Wire

/// Joins the sender of pushes with those who ask for one: the gateway's runner, and the storage that keeps the endpoints.
struct PushWaking: Waking {
    let sender: PushSender

    var vapidKey: String? { sender.vapidKey }

    func check(_ registration: PushRegistration) throws(WireError) -> PushRegistration {
        try sender.validate(registration).registration
    }

    func wake(_ identity: IdentityID, _ notice: PushNotice) { sender.send(notice, to: identity) }
}

/// The endpoints that storage keeps.
struct StoredPushDirectory: PushDirectory {
    let storage: any Storage
    let logger: Logger

    /// One that an older version accepted and this one does not is passed over.
    func endpoints(of identity: IdentityID) async throws -> [PushEndpoint] {
        try await storage.pushEndpoints(of: identity).compactMap { try? PushEndpoint($0) }
    }

    func remove(_ endpoint: PushEndpoint, of identity: IdentityID) async {
        do {
            _ = try await storage.removePushEndpoint(endpoint.registration.endpoint, of: identity)
        } catch {
            logger.error("A dead push endpoint could not be removed", metadata: ["error": "\(error)"])
        }
    }
}
