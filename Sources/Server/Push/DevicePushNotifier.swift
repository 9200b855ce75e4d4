import Logging
import NIOCore
import Signaling
import Synchronization
import Wire

/// Lets the gateway check push registrations and send notices, by passing both to the push sender.
struct DevicePushNotifier: PushNotifier {
    let sender: PushSender

    var vapidKey: String? { sender.vapidKey }

    func check(_ registration: PushRegistration) throws(WireError) -> PushRegistration {
        try sender.validate(registration).registration
    }

    func wake(_ identity: IdentityID, _ notice: PushNotice) { sender.send(notice, to: identity) }
}

/// The push endpoints in storage. Notifies the hub when a person's last endpoint is removed.
final class StoredPushDirectory: PushDirectory {
    private let storage: any Storage
    private let logger: Logger
    /// The gateway to notify; nil until it has started. No pushes are sent before that.
    private let gateway = Mutex<NIOLoopBound<Gateway>?>(nil)

    init(storage: any Storage, logger: Logger) { (self.storage, self.logger) = (storage, logger) }

    func tell(_ gateway: NIOLoopBound<Gateway>) { self.gateway.withLock { $0 = gateway } }

    /// Returns the person's stored endpoints. Skips those that an older version of the server accepted but this version
    /// rejects.
    func endpoints(of identity: IdentityID) async throws -> [PushEndpoint] {
        try await storage.pushEndpoints(of: identity).compactMap { try? PushEndpoint($0) }
    }

    func remove(_ endpoint: PushEndpoint, of identity: IdentityID) async {
        do {
            let isReachable = try await storage.removePushEndpoint(endpoint.registration.endpoint, of: identity)
            guard !isReachable, let gateway = gateway.withLock({ $0 }) else { return }
            gateway.eventLoop.execute { gateway.value.runner.submit(.unreachable(identity)) }
        } catch {
            logger.error("Could not remove an expired push endpoint", metadata: ["error": "\(error)"])
        }
    }
}
