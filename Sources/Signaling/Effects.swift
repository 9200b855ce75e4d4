import Wire

/// One WebSocket, or one resource of WHIP or WHEP, as the shell numbers them. A client connection outlives its sockets.
public struct SocketID: Hashable, Sendable, RawRepresentable {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// What a machine asks of the shell. Plain values: no closure, no promise. Order matters: a `persist` is committed before
/// any later effect of the same event is carried out.
public enum Effect: Equatable, Sendable {
    case persist(Change)
    case transmit(SocketID, [UInt8])
    /// To the media plane, which carries commands out in order.
    case media(MediaCommand)
    /// To a request for a resource of WHIP or WHEP; `close` says that the resource is over.
    case reply(SocketID, ResourceReply)
    /// Sends the close frame; whatever was transmitted before goes out first.
    case close(SocketID, CloseCode, String)
    /// To storage, or to whoever else can tell; answered by `Input.answered`.
    case inquire(Question)
    /// To this person's sleeping devices.
    case push(IdentityID, PushNotice)
}

/// An event with its address: what a machine asks of another. The hub delivers it, on one node at once, on many through the
/// node that owns the machine.
public enum Letter: Equatable, Sendable {
    case client(ConnectionID, ClientEvent)
    case person(IdentityID, PersonEvent)
    case session(SessionID, SessionEvent)
    case pool(PoolEvent)
    case match(MatchID, MatchEvent)
    case call(CallID, CallEvent)
    /// A call to be made: the hub gives it an id.
    case newCall(CallAttempt)
    case directory(DirectoryEvent)
    case deviceCodes(DeviceCodesEvent)
    /// Which person has this public id?
    case lookup(PersonID, LookupEvent)
    /// An arrival that needs a new client connection: it is new, or it could not resume.
    case reception(Arrival)
    /// To the media plane, after whatever the letters before this one cause.
    case media(MediaCommand)
}

/// A verified hello: everything needed to let somebody in.
public struct Arrival: Equatable, Sendable {
    public var socket: SocketID
    public var identity: Identity
    /// The secret to hand out, when the identity was just made.
    public var newIdentitySecret: String?
    public var record: PersonRecord
    public var resume: Hello.Resume?
    /// The remote address in canonical text, for the limits per address.
    public var address: String
    public var name: String?
    /// Whose secret it came with: the person's own, or a linked device's.
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
    /// What the person hears of it.
    func event(for client: ConnectionID) -> PersonEvent {
        let name = identity.name.map(DeviceName.vouched) ?? name.map(DeviceName.chosen) ?? .none
        return .arrived(client, address: address, name, record, device: device)
    }

    /// The same arrival as a new one. Tells it first that the resume failed.
    func withoutResume(_ turn: inout Turn) -> Arrival {
        let error = WireError(.resumeFailed, "The connection could not be resumed; this is a fresh start.")
        turn.transmit(socket, ServerMessage.error(.init(error)).encode())
        var arrival = self
        arrival.resume = nil
        return arrival
    }
}

/// What the hub is made with: the numbers, the keys and the ICE servers.
public struct Surroundings: Sendable {
    public var rules: Rules
    public var project: Project
    public var ice: ICEProvision
    public var version: String
    /// For Web Push; `nil` where nobody can be woken.
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
