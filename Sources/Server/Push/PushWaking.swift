import Logging
import NIOCore
import Signaling
import Synchronization
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

/// The endpoints that storage keeps; the rules are told when a person's last one is gone.
final class StoredPushDirectory: PushDirectory {
    private let storage: any Storage
    private let logger: Logger
    /// None before the gateway is there, when nothing is sent either.
    private let gateway = Mutex<NIOLoopBound<Gateway>?>(nil)

    init(storage: any Storage, logger: Logger) { (self.storage, self.logger) = (storage, logger) }

    func tell(_ gateway: NIOLoopBound<Gateway>) { self.gateway.withLock { $0 = gateway } }

    /// One that an older version accepted and this one does not is passed over.
    func endpoints(of identity: IdentityID) async throws -> [PushEndpoint] {
        try await storage.pushEndpoints(of: identity).compactMap { try? PushEndpoint($0) }
    }

    func remove(_ endpoint: PushEndpoint, of identity: IdentityID) async {
        do {
            let isReachable = try await storage.removePushEndpoint(endpoint.registration.endpoint, of: identity)
            guard !isReachable, let gateway = gateway.withLock({ $0 }) else { return }
            gateway.eventLoop.execute { gateway.value.runner.submit(.unreachable(identity)) }
        } catch {
            logger.error("A dead push endpoint could not be removed", metadata: ["error": "\(error)"])
        }
    }
}
