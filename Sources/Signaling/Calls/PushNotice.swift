import Wire

/// What a push says: that there is a call, or no more. Never who calls, nor from where.
public struct PushNotice: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case incoming, over, missed
    }
    public var call: CallID
    public var kind: Kind
    /// After this nobody needs it any more.
    public var expires: Timestamp

    public init(call: CallID, kind: Kind, expires: Timestamp) {
        (self.call, self.kind, self.expires) = (call, kind, expires)
    }
}
