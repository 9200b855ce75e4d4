import Wire

/// Events for the state machine of a client, a legacy client, a client of PerchRTC's protocol, or a resource.
public enum ClientEvent: Equatable, Sendable {
    /// A message from the client's current socket.
    case message(SocketID, Envelope<ClientMessage>)
    case unreadable(SocketID, UnreadableMessage)
    /// A request from a legacy client.
    case asked(SocketID, RouletteTokRequest)
    /// A legacy client's connection dropped. The client can recover it for a while.
    case suspended
    /// The legacy client recovered its connection.
    case recovered
    /// A message from a client of PerchRTC's protocol.
    indirect case perch(SocketID, PerchRequest)
    /// A message from another client of PerchRTC's protocol in the same session. Only such clients use this event.
    indirect case perchSignal(ConnectionID, PerchSignal)
    case closed(SocketID, leaving: Bool)
    /// The client continues from another address, on the same socket.
    case moved(address: String)
    /// A new socket requests to resume this client connection.
    indirect case resume(Arrival)
    /// A message for the client, from another state machine.
    case deliver(ServerMessage)
    /// A message that is also sent to other clients.
    case deliverBroadcast(BroadcastMessage)
    case joinRefused(re: UInt64, WireError, match: MatchID?)
    /// The client is no longer in the session. `by` is the moderator who removed the client; nil if none did.
    case leftSession(SessionID, GoneReason, by: ConnectionID? = nil)
    case roulette(Snapshot.Roulette)
    /// The call that is now in progress on this device; nil if there is none.
    case call(Snapshot.Call?)
    /// Whether media can flow over the client's peer connection. Only WHIP and WHEP resources use this event: they have no
    /// socket that could disconnect.
    case connected(Bool)
    /// A request for a WHIP or WHEP resource.
    case requested(ResourceRequest)
    /// The room that the client is now in or waits for; nil if there is none anymore.
    case room(RoomSeat?)
    /// Removes the client, for example after a ban.
    case expel(WireError, CloseCode, re: UInt64? = nil)
}
