import Signaling
import Wire

/// Sends push notifications that wake devices. Optional: a server without one rejects push registrations.
protocol PushNotifier: Sendable {
    /// The VAPID public key for browsers (RFC 8292), sent in `welcome`. Nil if only apps can be notified.
    var vapidKey: String? { get }

    /// Validates a client's registration. Returns it in the form to store.
    func check(_ registration: PushRegistration) throws(WireError) -> PushRegistration

    /// Sends a notification to the person's devices in the background. Delivery is not reported.
    func wake(_ identity: IdentityID, _ notice: PushNotice)
}
