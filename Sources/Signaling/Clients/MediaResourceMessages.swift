import Wire

/// What a resource of WHIP or WHEP is for.
public enum ResourcePurpose: Hashable, Sendable {
    /// WHIP (RFC 9725): its client publishes one stream.
    case publish
    /// WHEP (draft-ietf-wish-whep): its client watches one stream; nil is the newest camera.
    case watch(StreamID?)

    var side: MediaSide { self == .publish ? .send : .receive }

    func isAllowed(_ role: Role) -> Bool {
        let capabilities = Capabilities(role)
        return self == .publish ? capabilities.publish : capabilities.subscribe
    }
}

/// One end's name and password in ICE (RFC 8839 §5.4), which are another ICE session's when they change.
public struct ResourceCredentials: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String

    public init(ufrag: String, pwd: String) { (self.ufrag, self.pwd) = (ufrag, pwd) }
}

/// A client's offer, kept for as long as its resource: an ICE restart is the same offer with other credentials. What is in
/// it only the shell and the media plane know.
public struct ResourceOffer: Equatable, Sendable {
    /// What stands before the credentials, and after them.
    public var head: String
    public var tail: String
    public var credentials: ResourceCredentials
    /// Of the first audio and the first video section that go the way of the resource.
    public var mids: MediaMids

    public init(head: String, tail: String, credentials: ResourceCredentials, mids: MediaMids) {
        (self.head, self.tail, self.credentials, self.mids) = (head, tail, credentials, mids)
    }

    var sdp: String { "\(head)a=ice-ufrag:\(credentials.ufrag)\r\na=ice-pwd:\(credentials.pwd)\r\n\(tail)" }
}

/// A POST whose token was verified and whose offer was read.
public struct ResourceArrival: Equatable, Sendable {
    /// The shell's name for the resource. What concerns it goes by this name as if it were a socket's.
    public var socket: SocketID
    public var purpose: ResourcePurpose
    public var grant: SessionGrant
    /// As it came: whoever shows the same may end the resource after the token has expired.
    public var token: String
    public var offer: ResourceOffer
    /// The remote address in canonical text, for the limits per address.
    public var address: String

    public init(
        socket: SocketID, purpose: ResourcePurpose, grant: SessionGrant, token: String, offer: ResourceOffer,
        address: String
    ) {
        (self.socket, self.purpose, self.grant, self.token) = (socket, purpose, grant, token)
        (self.offer, self.address) = (offer, address)
    }
}

/// A PATCH or DELETE.
public struct ResourceRequest: Equatable, Sendable {
    /// `If-Match` (RFC 9110 §13.1.1).
    public enum Condition: Equatable, Sendable {
        case none
        case any
        /// Strong entity tags without their quotes.
        case tags([String])
    }

    public enum Action: Equatable, Sendable {
        /// Candidates, and the credentials that the fragment has.
        case patch(ResourceCredentials?, Condition)
        case delete
    }

    /// Comes back in the answer.
    public var re: UInt64
    public var token: String
    public var action: Action

    public init(re: UInt64, token: String, _ action: Action) {
        (self.re, self.token, self.action) = (re, token, action)
    }
}

/// The answer to a request: exactly one to each, also when the resource ends meanwhile.
public enum ResourceReply: Equatable, Sendable {
    /// To the POST.
    case created(sdp: String, tag: String, ICEConfiguration)
    /// Candidates were taken.
    case accepted(re: UInt64)
    /// ICE begins anew; the answer to the offer that was made of it, of which only what is about ICE is news.
    case restarted(re: UInt64, sdp: String, tag: String)
    case deleted(re: UInt64)
    /// - Parameter re: nil for the POST.
    case refused(re: UInt64?, WireError)
}

extension WireError.Code {
    /// WHIP and WHEP are for sessions whose media goes through the server.
    public static let sessionRelayed: WireError.Code = "session_relayed"
    /// A PATCH without `If-Match`, and one with another's.
    public static let preconditionRequired: WireError.Code = "precondition_required"
    public static let preconditionFailed: WireError.Code = "precondition_failed"
    /// An ICE restart while the one before is not done.
    public static let restartPending: WireError.Code = "restart_pending"
}

extension Project {
    /// Whether this token lets its holder make or change such a resource in this session.
    public func verifyResourceToken(
        _ token: String, for session: SessionID, _ purpose: ResourcePurpose, now: Timestamp
    ) throws(WireError) -> SessionGrant {
        guard mediaMode(of: session) != nil else {
            throw WireError(.sessionInvalid, "This is not a session id of this server.")
        }
        let grant = try verifySessionToken(token, for: session, now: now)
        guard purpose.isAllowed(grant.role) else {
            let deed = purpose == .publish ? "publishing" : "subscribing"
            throw WireError(.notPermitted, "The token's role does not allow \(deed).")
        }
        return grant
    }
}
