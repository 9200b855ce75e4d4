import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization
import Wire

/// A client of `confab.v1` over NIO, around a `ClientLine`. It does not resume: a robot whose connection breaks has
/// ended.
///
/// ```swift
/// let client = try await RobotClient.connect(to: "http://127.0.0.1:8080")
/// let joined = try await client.join(session, token: token)
/// for await event in client.events { … }
/// ```
public final class RobotClient: Sendable {
    public let welcome: Welcome
    /// All that is no answer to a request, in order; it ends with the line. For one reader.
    public let events: AsyncStream<ServerMessage>
    private let line: RobotLine

    private init(_ welcome: Welcome, _ events: AsyncStream<ServerMessage>, _ line: RobotLine) {
        (self.welcome, self.events, self.line) = (welcome, events, line)
    }

    /// Opens a WebSocket and says hello.
    ///
    /// - Parameters:
    ///   - server: `http://host:port`, or with `https`, `ws` or `wss`; a path before `/v1/socket` is kept.
    ///   - source: the address of this machine to come from, where many robots would be too many for one.
    /// - Throws: a `RobotError` with a sentence when nobody is there or it is no Confab, a `WireError` when the
    ///   server refuses.
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

    /// Why the line has ended; nil while it lives.
    public var ending: String? { line.ending }

    // MARK: Asking

    /// Says something that is answered, and waits for the answer.
    /// - Throws: the server's `WireError`, or a `RobotError` when the line ends first.
    @discardableResult
    public func ask(_ message: ClientMessage) async throws -> ServerMessage { try await line.ask(message) }

    public func join(_ session: SessionID, token: String) async throws -> SessionNotice.Joined {
        guard
            case .session(.joined(let joined)) = try await ask(
                .session(.join(.init(session: session, token: token))))
        else {
            throw RobotError.unexpected
        }
        return joined
    }

    public func leave(_ session: SessionID) async throws {
        try await ask(.session(.leave(.init(session: session))))
    }

    /// Publishes over the transceivers that `publish.mids` names.
    public func publish(_ publish: SessionVerb.Publish) async throws -> StreamInfo {
        guard case .session(.published(let published)) = try await ask(.session(.publish(publish))) else {
            throw RobotError.unexpected
        }
        return published.stream
    }

    public func subscribe(_ subscribe: SessionVerb.Subscribe) async throws {
        try await ask(.session(.subscribe(subscribe)))
    }

    public func unsubscribe(_ session: SessionID, from stream: StreamID) async throws {
        try await ask(.session(.unsubscribe(.init(session: session, stream: stream))))
    }

    /// - Parameter to: everybody without it, oneself too.
    public func signal(_ session: SessionID, type: String, data: String, to: ConnectionID? = nil) async throws {
        try await ask(.session(.signal(.init(session: session, type: type, data: data, to: to))))
    }

    /// Enters the roulette's queue; `roulette.matched` is an event.
    public func start(_ start: RouletteVerb.Start = RouletteVerb.Start()) async throws {
        try await ask(.roulette(.start(start)))
    }
    public func next(_ match: MatchID? = nil) async throws {
        try await ask(.roulette(.next(.init(match: match))))
    }
    public func stop() async throws { try await ask(.roulette(.stop)) }

    /// Has the server answer an offer.
    public func offer(_ side: MediaSide, sdp: String) async throws -> String {
        guard case .media(.answer(let answer)) = try await ask(.media(.offer(.init(side: side, sdp: sdp))))
        else {
            throw RobotError.unexpected
        }
        return answer.sdp
    }

    /// Leaves, and closes the line.
    public func close() async { await line.leave() }
}

extension RobotError {
    static let unexpected = RobotError("The server answered with something else than was asked for.")
}

/// Where a server is.
struct RobotPlace {
    var host: String
    var port: Int
    var isSecure: Bool
    var path: String

    init(_ text: String) throws {
        guard let url = URLComponents(string: text), let host = url.host, !host.isEmpty,
            let scheme = url.scheme?.lowercased(), let isSecure = Self.schemes[scheme]
        else {
            throw RobotError("\"\(text)\" is no address of a server: it looks like http://127.0.0.1:8080.")
        }
        self.host = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        self.isSecure = isSecure
        port = url.port ?? (isSecure ? 443 : 80)
        path = (url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path) + "/v1/socket"
    }

    private static let schemes = ["http": false, "ws": false, "https": true, "wss": true]
}
