import Signaling
import Wire

/// Whatever wakes sleeping devices. A server without one tells its clients that it wakes nobody.
protocol Waking: Sendable {
    /// For browsers, in the welcome (RFC 8292); `nil` when only apps are woken.
    var vapidKey: String? { get }

    /// Judges what a client registered.
    ///
    /// - Returns: the same as it is to be kept.
    func check(_ registration: PushRegistration) throws(WireError) -> PushRegistration

    /// Returns at once; whether and when it arrives nobody hears.
    func wake(_ identity: IdentityID, _ notice: PushNotice)
}
