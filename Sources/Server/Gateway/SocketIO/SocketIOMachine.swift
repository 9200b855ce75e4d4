import Signaling
import Wire

/// The state machine of a Socket.IO connection of any version, from its handshake to its end, over any transport.
///
/// `SocketIOSession`, the shell, passes it the events of the transports and carries out its outputs. The machine depends neither
/// on sockets nor on HTTP.
protocol SocketIOMachine: Sendable {
    /// The settings in use. The shell sets them before each input, because a reload changes them.
    var settings: SocketIOConnection.Settings { get set }
    var isOver: Bool { get }
    /// The number of bytes that wait for the client, or are kept in case it has not received them.
    var queuedBytes: Int { get }
    /// When to call `handleTimeout`; nil for never.
    var nextTimeout: Timestamp? { get }
    mutating func handle(_ input: SocketIOInput, now: Timestamp) -> [SocketIOOutput]
    mutating func handleTimeout(now: Timestamp) -> [SocketIOOutput]
}

/// Identifies a poll: an HTTP request that waits for packets.
struct SocketIOPollID: Hashable, Sendable { var rawValue: UInt64 }

/// An event that a `SocketIOMachine` handles.
enum SocketIOInput: Equatable, Sendable {
    case webSocketOpened
    /// The client closed its WebSocket with a close frame.
    case webSocketClosed
    /// The WebSocket ended without a close frame.
    case webSocketDropped
    case polled(SocketIOPollID)
    /// The poll's connection failed. The client did not receive the response, if there was one.
    case pollLost(SocketIOPollID)
    /// A second poll or an unsuitable request arrived, which Engine.IO does not allow. It has been refused.
    case overlapped
    /// A WebSocket text message, or the body of a POST of Socket.IO 0.9.
    case received([UInt8])
    case receivedBinary([UInt8])
    /// The body of a POST of Engine.IO.
    case packets([EngineIOPacket])
    /// The body of a POST of Engine.IO could not be parsed.
    case unreadable
    /// A request was refused before it was read, because the client's address exceeds its budget.
    case refused
    /// The client sent a frame of any kind, so it is alive.
    case receivedFrame
    /// The client sent `GET …?disconnect`.
    case disconnectRequested
    case send([UInt8])
    /// Sends all queued packets.
    case flush
    /// The answer to the output `recover`: the state of the earlier connection, or nil if it cannot be recovered.
    case recovery(SocketIORecovery?)
    /// The server ends the connection.
    case end(SocketIOEnd)
}

/// How the server ends a connection.
enum SocketIOEnd: Equatable, Sendable {
    /// Disconnects for good. The client is notified and does not reconnect.
    case booted
    /// The server restarts. The connection closes without a notice, so that clients reconnect.
    case goingAway
}

/// A step that the shell carries out.
enum SocketIOOutput: Equatable, Sendable {
    /// The client has connected. Register it with the hub.
    case opened
    /// A message contained this many packets after its first. Each is counted like a separate message. The message itself
    /// was counted before.
    case counted(Int)
    case asked(RouletteTokRequest)
    case frame([UInt8])
    case answer(SocketIOPollID, [[UInt8]])
    case closeWebSocket(CloseCode)
    /// The transport dropped. The client can recover the connection until `gone`.
    case suspended
    /// The client continues an earlier connection, which was suspended.
    case recovered
    /// The client requests the state of an earlier connection. Answer with the input `recovery`.
    case recover(pid: String, offset: String?)
    /// The client has left. Unregister it from the hub. Emitted once for each `opened`.
    case gone
    /// The connection has ended and can be removed. Emitted once, as the last output.
    case over
}
