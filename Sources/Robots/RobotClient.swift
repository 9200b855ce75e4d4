import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Peers
import Synchronization
import Wire

/// The client for load tests: `confab.v1` over NIO, driven by a `SignalClient`. It uses few resources, drops all events
/// and does not resume: if its connection breaks, the client ends. Everything else uses the SDK.
///
/// ```swift
/// let client = try await RobotClient.connect(to: "http://127.0.0.1:8080")
/// let joined = try await client.join(session, token: token)
/// ```
public final class RobotClient: Sendable {
    private let line: RobotSignalClient

    private init(_ line: RobotSignalClient) { self.line = line }

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
        let place = try HostEndpoint(server)
        let line = RobotSignalClient(hello)
        let loop = (group ?? MultiThreadedEventLoopGroup.singleton).next()
        do {
            try await line.open(place, from: source, on: loop)
        } catch let error as RobotError {
            throw error
        } catch {
            throw RobotError("\(server) cannot be reached: \(error)")
        }
        try await line.greet()
        return RobotClient(line)
    }

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

/// The address of a server.
struct HostEndpoint {
    var host: String
    var port: Int
    var isSecure: Bool
    var path: String

    init(_ text: String) throws {
        guard let url = URLComponents(string: text), let host = url.host, !host.isEmpty,
            let scheme = url.scheme?.lowercased(), let isSecure = Self.schemes[scheme]
        else { throw RobotError.noAddress(text) }
        self.host = URLAuthority(host: host).host
        self.isSecure = isSecure
        port = url.port ?? (isSecure ? 443 : 80)
        let base = url.percentEncodedPath
        path = (base.hasSuffix("/") ? String(base.dropLast()) : base) + "/v1/socket"
    }

    private static let schemes = ["http": false, "ws": false, "https": true, "wss": true]
}
