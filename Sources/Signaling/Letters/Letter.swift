import Cluster
import Wire

/// Identifies a client's socket, a WHIP or WHEP resource, or an HTTP request of an operator or application. The shell
/// assigns the numbers. A client connection can use several sockets, one after another.
public struct SocketID: Hashable, Sendable, RawRepresentable {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A side effect that a state machine requests from the shell. Effects are plain values, not closures. Order matters:
/// a `persist` is committed before any later effect of the same input or timeout is carried out.
public enum Effect: Equatable, Sendable {
    case persist(Change)
    case transmit(SocketID, [UInt8])
    /// A command for the media plane, which executes commands in order.
    case media(MediaCommand)
    /// A command for the recorder, which executes commands in order. It waits for all earlier changes, so that nothing is
    /// recorded before the archive is stored and the members of the session were notified.
    indirect case recording(RecordingCommand)
    /// A command for the part of the server that composes broadcasts. It waits for all earlier changes, as `recording` does.
    case broadcast(BroadcastCommand)
    /// Composes the parts of an archive that can no longer change, while it is being recorded. There is no answer.
    indirect case composeAhead(ArchiveRecord)
    /// Composes the streams of an archive into one file. The result arrives as `Input.composed` or `notComposed`,
    /// and what it waits for until then as `composingWaits`.
    indirect case compose(ArchiveRecord)
    /// Answers a request for a WHIP or WHEP resource. A later `close` ends the resource.
    case reply(SocketID, ResourceReply)
    /// Answers a request from an operator or application.
    case answer(SocketID, OperatorReply)
    /// Deletes a file of a room from the disk. Does nothing if the file does not exist.
    case deleteFile(RoomFileID)
    /// Sends a close frame after all earlier messages on this socket. Ends a WHIP or WHEP resource instead, if the id
    /// is that of one.
    case close(SocketID, CloseCode, String)
    /// A query to storage or another part of the shell. The result arrives as `Input.answered`.
    indirect case query(Question)
    /// Sends a push notification to this person's devices.
    case push(IdentityID, PushNotice)
    /// Asks the cluster's registry where this machine is. With `claims`, this node takes the place if the machine is nowhere,
    /// and the shell then reads what storage keeps for it. The answer arrives as `Input.claimed`, `placed`, `unplaced`
    /// or `placesUnavailable`. Only in a cluster.
    case reach(PlaceKey, PlacedMachine, claims: Bool)
    /// The machine with this place has ended. Only in a cluster.
    case releasePlace(PlaceKey)
    /// Posts a letter to a machine on another node, where it arrives as `Input.received`. Letters from one node arrive in the order in
    /// which they were posted. Only in a cluster.
    indirect case post(NodeTag, Letter)
    /// Another node has posted this about a relay between it and this node. Only in a cluster.
    case relay(RelayLetter, from: NodeTag)
}

/// An event and the state machine that it is addressed to. The hub delivers the event directly. In a cluster, the event may wait
/// until it is known where the state machine is.
///
/// Letters are moved several times, so they must be small. Rare events with much content are therefore `indirect`,
/// here and in the event types.
public enum Letter: Equatable, Sendable {
    case client(ConnectionID, ClientEvent)
    /// A message for each of these clients, in this order.
    case clients([ConnectionID], BroadcastMessage)
    case person(IdentityID, PersonEvent)
    case session(SessionID, SessionEvent)
    case pool(PoolEvent)
    case match(MatchID, MatchEvent)
    case call(CallID, CallEvent)
    case archive(ArchiveID, ArchiveEvent)
    case broadcast(BroadcastID, BroadcastEvent)
    case room(RoomName, RoomEvent)
    case roomRegistry(RoomRegistryEvent)
    /// Places a new call. The hub assigns its id.
    case newCall(CallAttempt)
    case directory(DirectoryEvent)
    case deviceCodes(DeviceCodesEvent)
    /// Looks up the person with this public id.
    case lookup(PersonID, LookupEvent)
    /// Creates a client connection for an arrival that is new or could not resume.
    indirect case reception(Arrival)
    /// Adds the number of clients to a request for `roulette.count`, and passes it to the pool.
    case countClients(ConnectionID, re: UInt64)
    /// A command for the media plane, executed after the effects of all earlier letters.
    case media(MediaCommand)
    /// An event about the relays to the node that gets the letter. Only posted to other nodes.
    case relay(RelayLetter)
    /// In a cluster, this person has waited alone in the roulette, and should wait where the others wait.
    case hall(IdentityID)
}

/// A `hello` message whose identity was verified, with everything needed to admit the client.
public struct Arrival: Equatable, Sendable {
    public var socket: SocketID
    public var identity: Identity
    /// The secret of an identity that was just created, which the client must store; nil for any other identity.
    public var newIdentitySecret: String?
    public var record: PersonRecord
    public var resume: Hello.Resume?
    /// The remote address in canonical text, for per-address limits.
    public var address: String
    public var name: String?
    /// The identity whose secret the client presented: the person's own identity, or the identity of a linked device.
    public var device: IdentityID
    /// The name of the node of the cluster that the client asked for, because it was redirected or was connected to it before; nil
    /// if it asked for none.
    public var at: String?
    /// Whether the client shows warnings to the person.
    public var showsWarnings: Bool

    public init(
        socket: SocketID, identity: Identity, newIdentitySecret: String? = nil, record: PersonRecord = PersonRecord(),
        resume: Hello.Resume? = nil, address: String, name: String? = nil, device: IdentityID? = nil,
        at: String? = nil, showsWarnings: Bool = false
    ) {
        self.at = at
        self.showsWarnings = showsWarnings
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

/// A request from a client connection, answered exactly once.
struct Request: Equatable, Sendable {
    var client: ConnectionID
    /// The number of the request. The answer has the same number.
    var re: UInt64

    init(_ client: ConnectionID, _ re: UInt64) { (self.client, self.re) = (client, re) }
}

extension Arrival {
    /// Returns the event that announces this arrival to the person's state machine.
    func event(for client: ConnectionID) -> PersonEvent {
        let name = identity.name.map(DeviceName.vouched) ?? name.map(DeviceName.chosen) ?? .none
        return .arrived(
            client, address: address, name, record, device: device, at: at, showsWarnings: showsWarnings)
    }
}
