import Wire

/// An input from the connection to a feature. A feature receives the answers to its own requests and all events, in the
/// order of the server's messages.
enum FeatureInput: Sendable {
    case connected(Welcome, ConnectionEvent.Start)
    /// The socket ended. The client reconnects, and the server keeps the connection for a grace period so that it can
    /// be resumed.
    case reconnecting
    /// The server no longer keeps the connection. `connected` with `restarted` follows, or `ended`.
    case expired
    case answered(UInt64, Result<ServerMessage, ConfabError>)
    case event(ServerMessage)
    /// The client has stopped trying to connect. The error is nil if the application closed the client.
    case ended(ConfabError?)

    init(_ event: ConnectionEvent) {
        switch event {
        case .message(let message): self = .event(message)
        case .connected(let welcome, let start): self = .connected(welcome, start)
        case .reconnecting: self = .reconnecting
        case .expired: self = .expired
        case .ended(let error): self = .ended(error)
        }
    }
}

/// An action that a feature's state machine requests.
enum FeatureEffect<Event: Equatable & Sendable, Action: Equatable & Sendable>: Equatable, Sendable {
    /// Send a request.
    case send(UInt64, ClientMessage)
    /// Let a waiting method return this result, or throw its error.
    case finish(FeatureCaller, FeatureResult)
    /// Send an event to the application.
    case tell(Event)
    /// Do something with media, sessions or other features.
    case perform(Action)
}

/// The result of a waiting method: the server's answer, nil if there is nothing to return, or an error.
typealias FeatureResult = Result<ServerMessage?, ConfabError>

/// A method call that waits for a state machine.
struct FeatureCaller: Hashable, Sendable {
    var number: UInt64
}

/// The state machine of one feature, such as the roulette.
protocol FeatureMachine: StateMachine where Input == FeatureInput, Effect == FeatureEffect<Event, Action> {
    associatedtype Event: Equatable & Sendable
    associatedtype Action: Equatable & Sendable
    /// A request from the application.
    associatedtype Command: Sendable

    /// Whether this feature receives connection events before the other features.
    static var hearsFirst: Bool { get }

    mutating func handle(_ command: Command, from caller: FeatureCaller, now: Timestamp) -> [Effect]
    /// Handles the cancellation of a waiting method's task. The method has already returned.
    mutating func cancelled(_ caller: FeatureCaller, now: Timestamp) -> [Effect]
}

extension FeatureMachine {
    static var hearsFirst: Bool { false }
    mutating func cancelled(_ caller: FeatureCaller, now: Timestamp) -> [Effect] { [] }
}

extension Result where Failure == ConfabError {
    /// The code of the error; nil for a success.
    var failureCode: ConfabError.Code? { if case .failure(let error) = self { error.code } else { nil } }
}

extension Result where Success == ServerMessage, Failure == ConfabError {
    var optional: FeatureResult { map { $0 } }
}
