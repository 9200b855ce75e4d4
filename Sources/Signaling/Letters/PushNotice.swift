import Wire

/// The content of a push notification: a call is ringing, is over, or was missed. It never includes the caller's name or
/// location.
public struct PushNotice: Hashable, Sendable {
    /// What happened to the call.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case incoming, over, missed
    }
    public var call: CallID
    public var kind: Kind
    /// The time after which the notification is useless: on the timers' clock until `Context.push` converts it to the
    /// wall clock.
    public var expires: Timestamp

    public init(call: CallID, kind: Kind, expires: Timestamp) {
        (self.call, self.kind, self.expires) = (call, kind, expires)
    }
}
