import Wire

/// The content of a push notification: a call rings, is over, or was missed. Never says who calls or from where.
public struct PushNotice: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case incoming, over, missed
    }
    public var call: CallID
    public var kind: Kind
    /// When the notification becomes useless.
    public var expires: Timestamp

    public init(call: CallID, kind: Kind, expires: Timestamp) {
        (self.call, self.kind, self.expires) = (call, kind, expires)
    }
}
