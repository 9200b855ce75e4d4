import Wire

/// Whether a resource publishes a stream (WHIP) or watches one (WHEP).
public enum ResourcePurpose: Hashable, Sendable {
    /// WHIP (RFC 9725): the client publishes one stream.
    case publish
    /// WHEP (draft-ietf-wish-whep): the client watches one stream, or the newest camera stream if nil.
    case watch(StreamID?)

    var side: MediaSide { self == .publish ? .send : .receive }

    /// The action for which the client needs a right in the session.
    var action: SessionRights.Action { self == .publish ? .publish : .subscribe }
}

/// One side's ICE user name fragment and password (RFC 8839 §5.4). New values mean a new ICE session.
public struct ResourceCredentials: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String

    public init(ufrag: String, pwd: String) { (self.ufrag, self.pwd) = (ufrag, pwd) }
}

/// A client's SDP offer. It is kept for as long as the resource exists, because an ICE restart sends the media plane
/// the same offer with other credentials. Only the shell and the media plane interpret the SDP.
public struct ResourceOffer: Equatable, Sendable {
    /// The SDP text before the ICE credentials.
    public var head: String
    /// The SDP text after the ICE credentials.
    public var tail: String
    public var credentials: ResourceCredentials
    /// The mids of the first audio section and the first video section that have the resource's direction.
    public var mids: MediaMids

    public init(head: String, tail: String, credentials: ResourceCredentials, mids: MediaMids) {
        (self.head, self.tail, self.credentials, self.mids) = (head, tail, credentials, mids)
    }

    var sdp: String { "\(head)a=ice-ufrag:\(credentials.ufrag)\r\na=ice-pwd:\(credentials.pwd)\r\n\(tail)" }
}

/// A POST that requests a new resource, with a verified token and a parsed offer.
public struct ResourceArrival: Equatable, Sendable {
    /// The shell's id for the resource. Later events use this id as if it were a socket.
    public var socket: SocketID
    public var purpose: ResourcePurpose
    public var grant: SessionGrant
    /// The token as received. A later request with the same token is accepted even after the token has expired.
    public var token: String
    public var offer: ResourceOffer
    /// The remote address in canonical text, for per-address limits.
    public var address: String

    public init(
        socket: SocketID, purpose: ResourcePurpose, grant: SessionGrant, token: String, offer: ResourceOffer,
        address: String
    ) {
        (self.socket, self.purpose, self.grant, self.token) = (socket, purpose, grant, token)
        (self.offer, self.address) = (offer, address)
    }
}

/// A PATCH or DELETE request for an existing resource.
public struct ResourceRequest: Equatable, Sendable {
    /// The value of the header `If-Match` (RFC 9110 §13.1.1).
    public enum Condition: Equatable, Sendable {
        case none
        case any
        /// Strong entity tags without quotes.
        case tags([String])
    }

    /// What the request asks for.
    public enum Action: Equatable, Sendable {
        /// A PATCH with an SDP fragment. Contains the fragment's ICE credentials; nil if it has none. Its candidates
        /// are not needed.
        case patch(ResourceCredentials?, Condition)
        case delete
    }

    /// The number of the request. The answer has the same number.
    public var re: UInt64
    public var token: String
    public var action: Action

    public init(re: UInt64, token: String, _ action: Action) {
        (self.re, self.token, self.action) = (re, token, action)
    }
}

/// The answer to a request. Each request gets exactly one answer, even if the resource ends in the meantime.
public enum ResourceReply: Equatable, Sendable {
    /// Answers the POST: the resource was created.
    case created(sdp: String, tag: String, ICEConfiguration)
    /// Answers a PATCH that does not restart ICE.
    case accepted(re: UInt64)
    /// ICE restarted. `sdp` is the full answer to the same offer; only the ICE attributes differ from the previous answer.
    case restarted(re: UInt64, sdp: String, tag: String)
    case deleted(re: UInt64)
    /// The request was refused. `re` is nil if it was the POST.
    case refused(re: UInt64?, WireError)
}

extension WireError.Code {
    /// The session is relayed, but WHIP and WHEP require a routed session.
    public static let sessionRelayed: WireError.Code = "session_relayed"
    /// The PATCH has no `If-Match` header.
    public static let preconditionRequired: WireError.Code = "precondition_required"
    /// The entity tag in the `If-Match` header of the PATCH does not match.
    public static let preconditionFailed: WireError.Code = "precondition_failed"
    /// Another ICE restart is still in progress.
    public static let restartPending: WireError.Code = "restart_pending"
}
