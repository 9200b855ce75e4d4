/// An error as it travels: a stable code, a sentence that says what to do, and whether trying again can help.
public struct WireError: Error, Hashable, Sendable {
    /// A stable code; `protocol/README.md` §2 lists them. Open, so that older clients meet newer codes calmly.
    public struct Code: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        public static let malformed: Code = "malformed"
        public static let unknownType: Code = "unknown_type"
        public static let versionUnsupported: Code = "version_unsupported"
        public static let helloExpected: Code = "hello_expected"
        public static let helloTimeout: Code = "hello_timeout"
        public static let outOfOrder: Code = "out_of_order"
        public static let tokenMalformed: Code = "token_malformed"
        public static let tokenSignature: Code = "token_signature"
        public static let tokenExpired: Code = "token_expired"
        public static let tokenNotYet: Code = "token_not_yet"
        public static let tokenLifetime: Code = "token_lifetime"
        public static let tokenProject: Code = "token_project"
        public static let tokenSession: Code = "token_session"
        public static let tokenScope: Code = "token_scope"
        public static let tokenRole: Code = "token_role"
        public static let tokenMatchEnded: Code = "token_match_ended"
        public static let tokenRevoked: Code = "token_revoked"
        public static let sessionInvalid: Code = "session_invalid"
        public static let banned: Code = "banned"
        public static let replaced: Code = "replaced"
        public static let messageTooLarge: Code = "message_too_large"
        public static let rateLimited: Code = "rate_limited"
        public static let tooManyConnections: Code = "too_many_connections"
        public static let resumeFailed: Code = "resume_failed"
        public static let notJoined: Code = "not_joined"
        public static let alreadyJoined: Code = "already_joined"
        public static let notPermitted: Code = "not_permitted"
        public static let notFound: Code = "not_found"
        public static let sessionFull: Code = "session_full"
        public static let signalInvalid: Code = "signal_invalid"
        public static let signalTooLarge: Code = "signal_too_large"
        public static let notMatched: Code = "not_matched"
        public static let elsewhere: Code = "elsewhere"
        public static let invalidInterests: Code = "invalid_interests"
        public static let queueFull: Code = "queue_full"
        public static let mediaUnavailable: Code = "media_unavailable"
        public static let descriptionInvalid: Code = "description_invalid"
        public static let dtlsFailed: Code = "dtls_failed"
        public static let fingerprintMismatch: Code = "fingerprint_mismatch"
        public static let invalidName: Code = "invalid_name"
        public static let linkInvalid: Code = "link_invalid"
        public static let positionInvalid: Code = "position_invalid"
        public static let positionTooFast: Code = "position_too_fast"
        public static let positionUnknown: Code = "position_unknown"
        public static let notPresent: Code = "not_present"
        public static let callSelf: Code = "call_self"
        public static let callNotAllowed: Code = "call_not_allowed"
        public static let callState: Code = "call_state"
        public static let pushInvalid: Code = "push_invalid"
        public static let pushNotAllowed: Code = "push_not_allowed"
        public static let internalError: Code = "internal"

        /// Whether a client that shows this must be closed with 4401.
        public var isToken: Bool { rawValue.hasPrefix("token_") }
    }

    public var code: Code
    public var message: String
    public var retryable: Bool
    public var retryAfter: Duration?

    public init(_ code: Code, _ message: String, retryable: Bool = false, retryAfter: Duration? = nil) {
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retryAfter = retryAfter
    }
}

/// WebSocket close codes (RFC 6455 §7.4, and ours from 4400).
public struct CloseCode: Hashable, Sendable, RawRepresentable {
    public var rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let normal = CloseCode(rawValue: 1000)
    public static let goingAway = CloseCode(rawValue: 1001)
    public static let noStatus = CloseCode(rawValue: 1005)
    public static let abnormal = CloseCode(rawValue: 1006)
    public static let malformed = CloseCode(rawValue: 4400)
    public static let token = CloseCode(rawValue: 4401)
    public static let forbidden = CloseCode(rawValue: 4403)
    public static let timeout = CloseCode(rawValue: 4408)
    public static let replaced = CloseCode(rawValue: 4409)
    public static let tooLarge = CloseCode(rawValue: 4413)
    public static let tooMany = CloseCode(rawValue: 4429)

    /// Whether a peer that closes with this code has left, rather than dropped (protocol §3).
    public var isLeaving: Bool { self == .normal || self == .goingAway || self == .noStatus }
}
