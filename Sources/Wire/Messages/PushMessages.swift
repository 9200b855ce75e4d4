/// What a client says about the push service that can wake it (`protocol/README.md` §14).
public enum PushVerb: Equatable, Sendable, MessageSet {
    case register(PushRegistration)
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
    public struct Unregister: Payload, Hashable {
        public var endpoint = ""
        public init() {}
        public init(endpoint: String) { self.endpoint = endpoint }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("endpoint", &endpoint, max: Limits.pushEndpoint)
        }
    }
}

public enum PushKind: String, Hashable, Sendable, CaseIterable {
    /// Web Push (RFC 8030).
    case web
    /// Apple's service, for calls.
    case apns
}

public struct PushRegistration: Payload, Hashable {
    public var kind = PushKind.web
    /// The subscription's address, or the device token in hexadecimal digits.
    public var endpoint = ""
    /// The subscription's public key and authentication secret (RFC 8291 §2), in base64url.
    public var p256dh: String?
    public var auth: String?
    /// A development build's token.
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
