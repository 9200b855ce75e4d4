import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization
import Wire

/// A `confab.v1` client over NIO that drives a `ClientLine`. It does not resume: if its connection breaks, the client ends.
///
/// ```swift
/// let client = try await RobotClient.connect(to: "http://127.0.0.1:8080")
/// let joined = try await client.join(session, token: token)
/// for await event in client.events { … }
/// ```
public final class RobotClient: Sendable {
    public let welcome: Welcome
    /// All messages except responses, in order. The stream ends with the connection and supports one consumer.
    public let events: AsyncStream<ServerMessage>
    private let line: RobotLine

    private init(_ welcome: Welcome, _ events: AsyncStream<ServerMessage>, _ line: RobotLine) {
        (self.welcome, self.events, self.line) = (welcome, events, line)
    }

    /// Opens a WebSocket and sends `hello`.
    ///
    /// - Parameters:
    ///   - server: the server's address, `http://host:port`, or with `https`, `ws` or `wss`. If it has a path, `/v1/socket` is
    ///     appended to that path.
    ///   - source: the local address to connect from. Use several addresses if one would exceed the server's limits.
    /// - Throws: a `RobotError` if the server cannot be reached or is not Confab, or a `WireError` if the server rejects the
    ///   client.
    public static func connect(
        to server: String, hello: Hello = Hello(), from source: String? = nil, on group: (any EventLoopGroup)? = nil
    ) async throws -> RobotClient {
        let place = try RobotPlace(server)
        let (stream, continuation) = AsyncStream.makeStream(of: ServerMessage.self)
        let line = RobotLine(hello, continuation)
        let loop = (group ?? MultiThreadedEventLoopGroup.singleton).next()
        do {
            try await line.open(place, from: source, on: loop)
        } catch let error as RobotError {
            throw error
        } catch {
            throw RobotError("\(server) cannot be reached: \(error)")
        }
        return RobotClient(try await line.greet(), stream, line)
    }

    /// Why the connection ended; nil while it is open.
    public var ending: String? { line.ending }

    // MARK: Requests

    /// Sends a request and waits for the response.
    /// - Throws: the `WireError` that the server sent, or a `RobotError` if the connection ended before the response.
    @discardableResult
    public func ask(_ message: ClientMessage) async throws -> ServerMessage { try await line.ask(message) }

    public func join(_ session: SessionID, token: String) async throws -> SessionNotice.Joined {
        let answer = try await ask(.session(.join(.init(session: session, token: token))))
        guard case .session(.joined(let joined)) = answer else {
            throw RobotError.answered(answer, insteadOf: "session.joined")
        }
        return joined
    }

    public func leave(_ session: SessionID) async throws {
        try await ask(.session(.leave(.init(session: session))))
    }

    /// Publishes a stream over the transceivers that `publish.mids` names.
    public func publish(_ publish: SessionVerb.Publish) async throws -> StreamInfo {
        let answer = try await ask(.session(.publish(publish)))
        guard case .session(.published(let published)) = answer else {
            throw RobotError.answered(answer, insteadOf: "session.published")
        }
        return published.stream
    }

    public func subscribe(_ subscribe: SessionVerb.Subscribe) async throws {
        try await ask(.session(.subscribe(subscribe)))
    }

    public func unsubscribe(_ session: SessionID, from stream: StreamID) async throws {
        try await ask(.session(.unsubscribe(.init(session: session, stream: stream))))
    }

    /// - Parameter to: the recipient. If nil, all members receive the signal, including the sender.
    public func signal(_ session: SessionID, type: String, data: String, to: ConnectionID? = nil) async throws {
        try await ask(.session(.signal(.init(session: session, type: type, data: data, to: to))))
    }

    /// Enters the roulette queue. The server then sends `roulette.matched` as an event.
    public func start(_ start: RouletteVerb.Start = RouletteVerb.Start()) async throws {
        try await ask(.roulette(.start(start)))
    }
    public func next(_ match: MatchID? = nil) async throws {
        try await ask(.roulette(.next(.init(match: match))))
    }
    public func stop() async throws { try await ask(.roulette(.stop)) }

    /// Sends an offer and returns the answer from the server.
    public func offer(_ side: MediaSide, sdp: String) async throws -> String {
        let message = try await ask(.media(.offer(.init(side: side, sdp: sdp))))
        guard case .media(.answer(let answer)) = message else {
            throw RobotError.answered(message, insteadOf: "media.answer")
        }
        return answer.sdp
    }

    /// Sends `bye` and closes the connection.
    public func close() async { await line.leave() }
}

extension RobotError {
    static let unexpected = RobotError("The server sent an unexpected response.")

    static func answered(_ message: ServerMessage, insteadOf expected: String) -> RobotError {
        RobotError("The server answered with \(message.type) instead of \(expected).")
    }
}

/// The location of a server.
struct RobotPlace {
    var host: String
    var port: Int
    var isSecure: Bool
    var path: String

    init(_ text: String) throws {
        guard let url = URLComponents(string: text), let host = url.host, !host.isEmpty,
            let scheme = url.scheme?.lowercased(), let isSecure = Self.schemes[scheme]
        else {
            throw RobotError("\"\(text)\" is not a server address. Use one such as http://127.0.0.1:8080.")
        }
        self.host = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        self.isSecure = isSecure
        port = url.port ?? (isSecure ? 443 : 80)
        path = (url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path) + "/v1/socket"
    }

    private static let schemes = ["http": false, "ws": false, "https": true, "wss": true]
}
