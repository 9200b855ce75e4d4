/// A client's request about push notifications (`protocol/people.md` §14).
public enum PushVerb: Equatable, Sendable, MessageSet {
    /// Registers this device for push notifications of calls. Replaces any earlier registration of the same endpoint. Answered
    /// with `ok`, or with `not_present`, `push_invalid` or `push_not_allowed`.
    case register(PushRegistration)
    /// Ends push notifications to an endpoint. Answered with `ok`, even if the endpoint is not registered, or with `push_invalid`
    /// if it contains U+0000.
    case unregister(Unregister)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .register(let payload): try visitor.message("push.register", payload)
        case .unregister(let payload): try visitor.message("push.unregister", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("push.register", Self.register),
        .init("push.unregister", Self.unregister),
    ]
}

extension PushVerb {
    /// The endpoint to remove.
    public struct Unregister: Payload, Hashable {
        /// The endpoint, exactly as it was registered, at most 1024 bytes.
        public var endpoint = ""
        public init() {}
        public init(endpoint: String) { self.endpoint = endpoint }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("endpoint", &endpoint, max: Limits.pushEndpoint)
        }
    }
}

/// A kind of push service.
public enum PushKind: String, Hashable, Sendable, CaseIterable {
    /// Web Push (RFC 8030).
    case web
    /// The Apple Push Notification service.
    case apns
}

/// A push endpoint, and the keys that are needed to send notifications to it.
public struct PushRegistration: Payload, Hashable {
    /// Which kind of push service the endpoint belongs to. It determines which of the other members are used.
    public var kind = PushKind.web
    /// For `web`, the `https` URL of the subscription, at most 1024 bytes. For `apns`, the device token, 64 to 200 hexadecimal
    /// digits.
    public var endpoint = ""
    /// The subscription's public key (RFC 8291 §2), 65 bytes in base64url. Required for `web`, nil for `apns`.
    public var p256dh: String?
    /// The subscription's authentication secret (RFC 8291 §2), 16 bytes in base64url. Required for `web`, nil for `apns`.
    public var auth: String?
    /// Whether the device token belongs to a development build; nil means false. Used only for `apns`.
    public var sandbox: Bool?
    public init() {}
    public init(kind: PushKind, endpoint: String, p256dh: String? = nil, auth: String? = nil, sandbox: Bool? = nil) {
        (self.kind, self.endpoint, self.p256dh, self.auth) = (kind, endpoint, p256dh, auth)
        self.sandbox = sandbox
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("kind", &kind)
        try coder.string("endpoint", &endpoint, max: Limits.pushEndpoint)
        try coder.string("p256dh", &p256dh, max: Limits.name)
        try coder.string("auth", &auth, max: Limits.name)
        try coder.bool("sandbox", &sandbox)
    }
}
