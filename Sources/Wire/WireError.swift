/// An error of the protocol: a stable code, a sentence with advice, and whether a retry can succeed.
public struct WireError: Error, Hashable, Sendable {
    /// A stable error code (`protocol/README.md` §2). The type is not an enum, so that older clients can handle newer codes.
    ///
    /// "Closes with 44xx" in the comments below means that the server closes the socket with this ``CloseCode`` after it has
    /// sent the error.
    public struct Code: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral {
        public var rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }

        /// The message is not a JSON object, or a member is missing or has the wrong type. The error's sentence
        /// contains the member's name. Closes with 4400 before the welcome, and after the welcome if there are more
        /// than 10 such errors in a minute.
        public static let malformed: Code = "malformed"
        /// The receiver does not support this message type.
        public static let unknownType: Code = "unknown_type"
        /// The client is too old or too new for this server. Reload or update the client. Closes with 4400.
        public static let versionUnsupported: Code = "version_unsupported"
        /// The first message was not `hello`. Closes with 4400.
        public static let helloExpected: Code = "hello_expected"
        /// The server received no `hello` within 10 s. Closes with 4408.
        public static let helloTimeout: Code = "hello_timeout"
        /// One or more messages before this one are missing, according to their `seq`. Closes with 4400.
        public static let outOfOrder: Code = "out_of_order"
        /// The token or identity secret cannot be read, or a claim is missing or malformed. Closes with 4401.
        public static let tokenMalformed: Code = "token_malformed"
        /// The signature of the token or identity secret is wrong. Closes with 4401.
        public static let tokenSignature: Code = "token_signature"
        /// The token has expired. Request a new one from the application. Closes with 4401.
        public static let tokenExpired: Code = "token_expired"
        /// The token's `iat` or `nbf` is more than a minute in the future. Closes with 4401.
        public static let tokenNotYet: Code = "token_not_yet"
        /// The token is valid for longer than allowed: 30 days for a session token, 24 hours for a user token. Closes with
        /// 4401.
        public static let tokenLifetime: Code = "token_lifetime"
        /// The token belongs to another project. Closes with 4401.
        public static let tokenProject: Code = "token_project"
        /// The token is for another session. Closes with 4401.
        public static let tokenSession: Code = "token_session"
        /// The token's `scope` does not allow this use of the token. Closes with 4401.
        public static let tokenScope: Code = "token_scope"
        /// The token's role is not a ``Role``. Closes with 4401.
        public static let tokenRole: Code = "token_role"
        /// The match or call for which this token was created is over. Closes with 4401, unless the match or call
        /// ended while the client's request was in transit.
        public static let tokenMatchEnded: Code = "token_match_ended"
        /// The token is for another room. Closes with 4401.
        public static let tokenRoom: Code = "token_room"
        /// The holder of this token was removed from the session or the room. Closes with 4401.
        public static let tokenRevoked: Code = "token_revoked"
        /// This token of a match or call was created for another person. Each person must use their own. Closes with 4401.
        public static let tokenIdentity: Code = "token_identity"
        /// This is not a session id of this project.
        public static let sessionInvalid: Code = "session_invalid"
        /// This identity or address is banned. The error's sentence contains the duration. Closes with 4403.
        public static let banned: Code = "banned"
        /// The client connection resumed on another socket, the person has opened too many connections, or this device
        /// now belongs to another person or to none. Closes with 4409. If the device's person has changed, send a new
        /// `hello`.
        public static let replaced: Code = "replaced"
        /// The message exceeds the limit for its type in ``Welcome/limits``. The socket closes with 4413, or with 1009
        /// if the message exceeds even the largest limit. Also sent in reply to a chat message or file that is too
        /// large for a room; the socket then stays open.
        public static let messageTooLarge: Code = "message_too_large"
        /// A limit on how often the client or person may do this is reached. Wait for `retryAfter` before the next attempt.
        /// Closes with 4429 if the client does not slow down.
        public static let rateLimited: Code = "rate_limited"
        /// This address has too many connections, or this address or token has too many WHIP and WHEP resources.
        /// Closes with 4429.
        public static let tooManyConnections: Code = "too_many_connections"
        /// The connection cannot be resumed, because the secret is unknown or was already used, the grace period has expired,
        /// or messages were dropped from the replay buffer. A ``Welcome`` with `resumed` false follows on the same socket.
        public static let resumeFailed: Code = "resume_failed"
        /// The client is not in this session, or for a request about a room, not in a room. Join first.
        public static let notJoined: Code = "not_joined"
        /// The client connection is already in this session, or already in a room or waiting for one. Also reported to
        /// a connection that no longer waits for a room, because the person now waits on another one.
        public static let alreadyJoined: Code = "already_joined"
        /// The request is not allowed for the token's role or the person's role in the room, for this kind of session,
        /// by the room's options, or by a rule about contacts, devices or blocks.
        public static let notPermitted: Code = "not_permitted"
        /// There is no such stream, connection, person, device, chat, call, contact or file.
        public static let notFound: Code = "not_found"
        /// The session or match is full, or this connection has reached its limit of sessions or streams.
        public static let sessionFull: Code = "session_full"
        /// A signal's type contains characters other than `A-Z a-z 0-9 - _ ~`, or is longer than 128 characters.
        public static let signalInvalid: Code = "signal_invalid"
        /// A signal's data is longer than 8 KiB.
        public static let signalTooLarge: Code = "signal_too_large"
        /// There is no search or chat to which the request could apply.
        public static let notMatched: Code = "not_matched"
        /// Without ``WireError/at``: the person is already searching, chatting or in a call, possibly in another tab or on
        /// another device. An error without `re` means that another tab or a call ended the search on this device.
        ///
        /// With ``WireError/at``: another node of the cluster does this. Connect to that node and send the request again.
        public static let elsewhere: Code = "elsewhere"
        /// There are too many interests, or one has more than 50 characters or 256 bytes.
        public static let invalidInterests: Code = "invalid_interests"
        /// Too many people from this address are waiting in the roulette, so the search has ended. Sent without `re`,
        /// after the request was already answered. Try again after `retryAfter`.
        public static let queueFull: Code = "queue_full"
        /// This server does not route media, or its media plane cannot serve the request now.
        public static let mediaUnavailable: Code = "media_unavailable"
        /// The bandwidth limit of the session or server is reached, so no new video is accepted. Existing media continues. Try
        /// again after `retryAfter`, or without video.
        public static let bandwidthExceeded: Code = "bandwidth_exceeded"
        /// The server cannot answer this offer. The error's sentence contains the reason.
        public static let descriptionInvalid: Code = "description_invalid"
        /// The DTLS handshake failed; reported in `media.closed`.
        public static let dtlsFailed: Code = "dtls_failed"
        /// The certificate does not match the fingerprint in the offer; reported in `media.closed`.
        public static let fingerprintMismatch: Code = "fingerprint_mismatch"
        /// The name of a person, room or file is too long, or contains control characters, line breaks or direction
        /// marks. A person's name may have at most 40 characters and 160 bytes, a room's at most 64 characters, and a
        /// file's at most 200 bytes. A room's name must also have a visible character and no `/`.
        public static let invalidName: Code = "invalid_name"
        /// The pairing code is wrong, used or older than 5 minutes, or these devices cannot be linked.
        public static let linkInvalid: Code = "link_invalid"
        /// Latitude or longitude is not a number, or not on the globe.
        public static let positionInvalid: Code = "position_invalid"
        /// The location is too far from the previous location to be real. The server will accept it after `retryAfter`.
        public static let positionTooFast: Code = "position_too_fast"
        /// The request needs a location. Send `nearby.move` first.
        public static let positionUnknown: Code = "position_unknown"
        /// The person is not online on this device. Send `presence.appear` first.
        public static let notPresent: Code = "not_present"
        /// A person cannot call themselves.
        public static let callSelf: Code = "call_self"
        /// The callee does not accept calls from this person, or the caller has blocked the callee.
        public static let callNotAllowed: Code = "call_not_allowed"
        /// The call's state does not allow this request. The call's events report the current state.
        public static let callState: Code = "call_state"
        /// There is no such room, and the request did not create it. A join gets this error if only this server's
        /// operators may create rooms, if it has a token, which is valid only in an existing room, or if the room ended
        /// just before the join arrived or while the client waited to be admitted.
        public static let roomNotFound: Code = "room_not_found"
        /// A room with this name already exists.
        public static let roomExists: Code = "room_exists"
        /// The room is full, or people from this address already take as many places as one address may. Try again
        /// after someone has left.
        public static let roomFull: Code = "room_full"
        /// A host has locked the room, so that nobody else can join.
        public static let roomLocked: Code = "room_locked"
        /// Members of this mesh room see each other's addresses, and the request did not accept that.
        public static let roomMesh: Code = "room_mesh"
        /// The room has a password, and the request had none or a wrong one.
        public static let roomPassword: Code = "room_password"
        /// The request had a password, but no room with this name has one. Join without a password only if the person
        /// agrees: everyone who knows the name can enter.
        public static let roomNoPassword: Code = "room_no_password"
        /// The room that the client was in has ended, and another room now has its name. Join without the room's ID
        /// only if the person agrees.
        public static let roomOther: Code = "room_other"
        /// A host did not admit this person, or recently turned them away.
        public static let roomRefused: Code = "room_refused"
        /// A host banned this person from the room.
        public static let roomBanned: Code = "room_banned"
        /// The URL, device token or keys of the push endpoint are invalid.
        public static let pushInvalid: Code = "push_invalid"
        /// The server does not send notifications through this push service.
        public static let pushNotAllowed: Code = "push_not_allowed"
        /// The server could not store the change, so nothing has changed. Closes with 1012. Reconnect and try again.
        public static let storageFailed: Code = "storage_failed"
        /// The server's disk is nearly full, so the server stores only essential data: no profiles or push endpoints,
        /// for example. In answer to a file, this means that the room or the server has no space left for it. Try
        /// again after `retryAfter`, if it is set.
        public static let storageFull: Code = "storage_full"
        /// The clients in this network have reached the daily limit for stored data, or the files that they sent to
        /// rooms have reached their limit. Try again after `retryAfter`, if it is set.
        public static let storageQuota: Code = "storage_quota"
        /// The nodes of the cluster cannot agree now which of them does what the request needs. Try again after `retryAfter`.
        /// Closes with 1012 if the node of the person is not known.
        public static let clusterUnavailable: Code = "cluster_unavailable"
        /// An internal error of the server. The server logs the error with the connection's id.
        public static let internalError: Code = "internal"

        /// Whether this is a `token_*` code. After an error with such a code, the server closes the socket with 4401.
        /// The documentation of ``tokenMatchEnded`` describes an exception.
        public var isToken: Bool { rawValue.hasPrefix("token_") }
    }

    /// The error code, for programs.
    public var code: Code
    /// What went wrong and what to do, in one sentence that can be shown to the user.
    public var message: String
    /// Whether the same request may succeed later.
    public var retryable: Bool
    /// How long to wait before a retry, in whole milliseconds on the wire; nil if the server does not specify a time.
    public var retryAfter: Duration?
    /// The name of the node to connect to, such as `n2`; nil except in ``Code/elsewhere`` of a cluster.
    public var at: String?

    public init(
        _ code: Code, _ message: String, retryable: Bool = false, retryAfter: Duration? = nil, at: String? = nil
    ) {
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retryAfter = retryAfter
        self.at = at
    }

    /// Reads or writes the members of an error.
    package mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("code", &code.rawValue, max: Limits.name)
        try coder.string("message", &message, max: 4096)
        try coder.bool("retryable", &retryable)
        try coder.milliseconds("retryAfterMs", &retryAfter)
        try coder.string("at", &at, max: Limits.name)
    }

    /// An internal error of the server. The reason is in the server's log.
    public static let internalError = WireError(
        .internalError, "Internal server error. Try again in a moment.", retryable: true)
}

/// A WebSocket close code: a code from RFC 6455 §7.4.1, or one of the protocol's own codes from 4400 (`protocol/README.md` §2).
public struct CloseCode: Hashable, Sendable, RawRepresentable {
    public var rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// 1000: the connection was closed on purpose. The client has left.
    public static let normal = CloseCode(rawValue: 1000)
    /// 1001: the endpoint is going away, for example because a page is closed. The client has left.
    public static let goingAway = CloseCode(rawValue: 1001)
    /// 1005: the close frame had no code. The client has left. Reported locally, never sent.
    public static let noStatus = CloseCode(rawValue: 1005)
    /// 1006: the socket ended without a close frame. The connection has dropped, and the client can resume it. Reported
    /// locally, never sent.
    public static let abnormal = CloseCode(rawValue: 1006)
    /// 1012 (Service Restart in IANA's registry): the server has discarded this client's state. Reconnect without `resume`.
    public static let serviceRestart = CloseCode(rawValue: 1012)
    /// 4400: malformed or misnumbered messages, or an unsupported version. Do not reconnect automatically.
    public static let malformed = CloseCode(rawValue: 4400)
    /// 4401: a bad token or identity secret. Reconnect with another token or secret.
    public static let token = CloseCode(rawValue: 4401)
    /// 4403: the client is banned, or the page's origin is not allowed. Do not reconnect automatically.
    public static let forbidden = CloseCode(rawValue: 4403)
    /// 4408: no hello arrived in time. Clients may reconnect after a pause.
    public static let timeout = CloseCode(rawValue: 4408)
    /// 4409: the client connection resumed on another socket, the person has opened too many connections, or the
    /// device now belongs to another person or to none.
    public static let replaced = CloseCode(rawValue: 4409)
    /// 4413: a message was too large. Do not reconnect automatically.
    public static let tooLarge = CloseCode(rawValue: 4413)
    /// 4429: too many messages or connections. Clients may reconnect after a pause.
    public static let tooMany = CloseCode(rawValue: 4429)
}
