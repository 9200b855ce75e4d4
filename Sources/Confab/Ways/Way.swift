import Wire

/// What happens on the connection to the server, as the parts of a client hear of it. A part gets the answers to its own
/// requests, and all events, in the order of the server's messages.
enum LineNews: Sendable {
    case connected(Welcome, LineEvent.Start)
    /// The socket ended. The client tries to connect again, and the server keeps the connection for the grace period.
    case reconnecting
    /// The server no longer keeps the connection. `connected` with `restarted` follows, or `ended`.
    case expired
    case answered(UInt64, Result<ServerMessage, ConfabError>)
    case event(ServerMessage)
    /// The client does not try to connect by itself. Nil: the application closed it.
    case ended(ConfabError?)

    init(_ event: LineEvent) {
        switch event {
        case .message(let message): self = .event(message)
        case .connected(let welcome, let start): self = .connected(welcome, start)
        case .reconnecting: self = .reconnecting
        case .expired: self = .expired
        case .ended(let error): self = .ended(error)
        }
    }
}

/// What a part's machine wants to be done.
enum WayEffect<News: Equatable & Sendable, Deed: Equatable & Sendable>: Equatable, Sendable {
    /// Send a request.
    case send(UInt64, ClientMessage)
    /// Let a method that waits return.
    case finish(WayCaller, WayResult)
    /// Tell the application.
    case tell(News)
    /// Do something with media, sessions or other parts.
    case perform(Deed)
}

/// The result of a method that waits; nil if there is nothing to return.
typealias WayResult = Result<ServerMessage?, ConfabError>

/// A method call that waits for a machine.
struct WayCaller: Hashable, Sendable {
    var number: UInt64
}

/// The rules of one part of a client, such as the roulette: events in, effects out. It reads no clock.
protocol WayMachine: Sendable {
    associatedtype News: Equatable & Sendable
    associatedtype Deed: Equatable & Sendable
    /// What the application asks for.
    associatedtype Wish: Sendable
    typealias Effect = WayEffect<News, Deed>

    /// Whether this part hears of the connection before the others.
    static var hearsFirst: Bool { get }

    mutating func handle(_ news: LineNews, now: Timestamp) -> [Effect]
    mutating func handle(_ wish: Wish, from caller: WayCaller, now: Timestamp) -> [Effect]
    /// The task of a method that waits was cancelled, so the method has returned.
    mutating func cancelled(_ caller: WayCaller, now: Timestamp) -> [Effect]
    /// When to call `handleTimeout`; nil for never.
    var nextTimeout: Timestamp? { get }
    mutating func handleTimeout(now: Timestamp) -> [Effect]
}

extension WayMachine {
    static var hearsFirst: Bool { false }
    mutating func cancelled(_ caller: WayCaller, now: Timestamp) -> [Effect] { [] }
    var nextTimeout: Timestamp? { nil }
    mutating func handleTimeout(now: Timestamp) -> [Effect] { [] }
}

extension Result where Failure == ConfabError {
    /// The code of the error; nil for a success.
    var failureCode: ConfabError.Code? { if case .failure(let error) = self { error.code } else { nil } }
}

extension Result where Success == ServerMessage, Failure == ConfabError {
    var optional: WayResult { map { $0 } }
}
