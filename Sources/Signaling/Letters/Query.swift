import Cluster
import Wire

/// A query to storage or another part of the shell.
public enum Query: Equatable, Sendable {
    /// Looks up the person with this public id and their record.
    case person(PersonID, Introduction)
    case callLog(CallVerb.LogPage)
    /// Asks which node has this ongoing call of the person. Only in a cluster.
    case callHome(CallID)
    /// Stores a push registration. The shell decides whether to accept it.
    case register(PushRegistration)
    case unregister(PushVerb.Unregister)
    /// Checks whether this person has any push registration left. The answer is the same as for `unregister`, but no client is
    /// waiting for it.
    case wakeable
}

/// A query, with the identity and the client request that caused it.
public struct Question: Equatable, Sendable {
    public var identity: IdentityID
    public var client: ConnectionID
    public var re: UInt64
    public var query: Query
    /// The identity of the device that sent the request. Only push registrations need it.
    public var device: IdentityID

    public init(
        identity: IdentityID, client: ConnectionID, re: UInt64, _ query: Query, device: IdentityID? = nil
    ) {
        (self.identity, self.client, self.re, self.query) = (identity, client, re, query)
        self.device = device ?? identity
    }
}

extension Question {
    var request: Request { Request(client, re) }
}

/// The shell's answer to a question.
public enum Finding: Equatable, Sendable {
    /// `nil` if no person was found.
    case person(FoundRecord?)
    /// `next` is the cursor for the next older page; nil if there is none.
    case callLog([CallRecord], next: String?)
    /// `nil` if the person has no such call, or if it is over.
    case callHome(CallHome?)
    /// A push registration was added or removed. `isReachable` is true if the person still has a registration.
    case push(isReachable: Bool)
    case refused(WireError)
}

/// Which node of a cluster has an ongoing call.
public enum CallHome: Equatable, Sendable {
    case node(NodeTag)
    /// The life of its node is over, and the heir has not taken the call over yet.
    case changing
}

/// A person that a lookup found.
public struct FoundRecord: Equatable, Sendable {
    public var identity: IdentityID
    public var record: PersonRecord
    public init(identity: IdentityID, record: PersonRecord) { (self.identity, self.record) = (identity, record) }
}

/// A person that a lookup found, as the asker's machine sees it.
public struct FoundPerson: Equatable, Sendable {
    public var identity: IdentityID
    /// The name to show if the person's machine cannot be asked, because it is on another node of the cluster.
    public var name: String
}

/// A client's request that names another person by public id. It waits for the lookup of that person's identity.
public struct Introduction: Equatable, Sendable {
    public var identity: IdentityID
    public var client: ConnectionID
    public var re: UInt64
    public var message: ClientMessage

    public init(identity: IdentityID, client: ConnectionID, re: UInt64, _ message: ClientMessage) {
        (self.identity, self.client, self.re, self.message) = (identity, client, re, message)
    }

    var request: Request { Request(client, re) }
}

extension PushVerb {
    var query: Query {
        switch self {
        case .register(let registration): .register(registration)
        case .unregister(let endpoint): .unregister(endpoint)
        }
    }
}
