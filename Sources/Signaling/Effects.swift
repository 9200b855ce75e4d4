import Wire

/// Identifies one WebSocket or one WHIP or WHEP resource; the shell assigns the numbers. A client connection outlives its
/// sockets.
public struct SocketID: Hashable, Sendable, RawRepresentable {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A side effect that a machine requests from the shell. Effects are plain values, not closures. Order matters: a `persist` is
/// committed before any later effect of the same event is carried out.
public enum Effect: Equatable, Sendable {
    case persist(Change)
    case transmit(SocketID, [UInt8])
    /// For the media plane, which executes commands in order.
    case media(MediaCommand)
    /// Answers a request for a WHIP or WHEP resource. A later `close` ends the resource.
    case reply(SocketID, ResourceReply)
    /// Sends the close frame, after everything that was transmitted before.
    case close(SocketID, CloseCode, String)
    /// Queries storage or another part of the shell. `Input.answered` carries the result.
    case inquire(Question)
    /// Sends a push notification to this person's devices.
    case push(IdentityID, PushNotice)
}

/// An event with its address, sent from one machine to another. The hub delivers it: directly on a single node, otherwise
/// through the node that owns the machine.
public enum Letter: Equatable, Sendable {
    case client(ConnectionID, ClientEvent)
    case person(IdentityID, PersonEvent)
    case session(SessionID, SessionEvent)
    case pool(PoolEvent)
    case match(MatchID, MatchEvent)
    case call(CallID, CallEvent)
    /// Places a new call. The hub assigns its id.
    case newCall(CallAttempt)
    case directory(DirectoryEvent)
    case deviceCodes(DeviceCodesEvent)
    /// Looks up the person with this public id.
    case lookup(PersonID, LookupEvent)
    /// An arrival that needs a new client connection, because it is new or its resume failed.
    case reception(Arrival)
    /// For the media plane, after the effects of all earlier letters.
    case media(MediaCommand)
}

/// A verified hello, with everything needed to admit the client.
public struct Arrival: Equatable, Sendable {
    public var socket: SocketID
    public var identity: Identity
    /// The secret to send to the client if the identity was just created.
    public var newIdentitySecret: String?
    public var record: PersonRecord
    public var resume: Hello.Resume?
    /// The remote address in canonical text, for per-address limits.
    public var address: String
    public var name: String?
    /// The identity whose secret was presented: the person's own, or that of a linked device.
    public var device: IdentityID

    public init(
        socket: SocketID, identity: Identity, newIdentitySecret: String? = nil, record: PersonRecord = PersonRecord(),
        resume: Hello.Resume? = nil, address: String, name: String? = nil, device: IdentityID? = nil
    ) {
        self.socket = socket
        self.identity = identity
        self.device = device ?? identity.id
        self.newIdentitySecret = newIdentitySecret
        self.record = record
        self.resume = resume
        self.address = address
        self.name = name
    }
}

extension Arrival {
    /// Returns the event that announces this arrival to the person's machine.
    func event(for client: ConnectionID) -> PersonEvent {
        let name = identity.name.map(DeviceName.vouched) ?? name.map(DeviceName.chosen) ?? .none
        return .arrived(client, address: address, name, record, device: device)
    }

    /// Returns the same arrival without its resume claim, after sending the client a `resume_failed` error.
    func withoutResume(_ turn: inout Turn) -> Arrival {
        let error = WireError(.resumeFailed, "The connection could not be resumed. A new connection was started.")
        turn.transmit(socket, ServerMessage.error(.init(error)).encode())
        var arrival = self
        arrival.resume = nil
        return arrival
    }
}

/// The hub's settings: rules, keys and ICE servers.
public struct HubSettings: Sendable {
    public var rules: Rules
    public var project: Project
    public var ice: ICEProvision
    public var version: String
    /// The public key for Web Push; `nil` if push is not available.
    public var vapidKey: String?

    public init(
        rules: Rules, project: Project, ice: ICEProvision = ICEProvision(), version: String = "0",
        vapidKey: String? = nil
    ) {
        self.rules = rules
        self.project = project
        self.ice = ice
        self.version = version
        self.vapidKey = vapidKey
    }
}
