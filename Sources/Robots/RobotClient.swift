import Confab
import Foundation
import NIOCore
import Peers
import Synchronization
import Wire

/// The client for load tests: `confab.v1` over NIO, driven by a `SignalClient`. It uses few resources, drops all events
/// and does not resume: if its connection breaks, the client ends. All other programs use the SDK.
///
/// ```swift
/// let client = try await RobotClient.connect(to: "http://127.0.0.1:8080")
/// let joined = try await client.join(session, token: token)
/// ```
public final class RobotClient: Sendable {
    private typealias Waiting = CheckedContinuation<ServerMessage, any Error>

    /// The state that the lock protects.
    private struct State {
        var channel: (any Channel)?
        var socket: SignalClient.Socket?
        var requestCount: UInt64 = 0
        var waiting: [SignalClient.RequestID: Waiting] = [:]
        /// Why the connection ended; nil while it is open.
        var ending: String?
        /// The error that closed the socket; nil if there was none.
        var fault: (any Error)?
    }

    /// How long to wait for `welcome`. A server to which many robots connect at once may be this slow.
    private static let welcomeTimeout = Duration.seconds(20)

    private let state = Mutex(State())
    private let runner: Runner<SignalClient>
    private let socket: NIOSocket
    /// Finishes when `welcome` arrives, or throws the error that ended the connection before that.
    private let greeted: AsyncThrowingStream<Void, any Error>
    private let greeting: AsyncThrowingStream<Void, any Error>.Continuation

    private init(_ hello: Hello, from source: String?, on loop: (any EventLoop)?) {
        var options = SignalClient.Options()
        (options.reconnects, options.connectTimeout, options.welcomeTimeout) = (false, nil, Self.welcomeTimeout)
        let line = SignalClient(hello: hello, options: options, random: SystemRandomNumberGenerator())
        runner = Runner(line, clock: SystemClock())
        (greeted, greeting) = AsyncThrowingStream.makeStream()
        let client = WeakReference<RobotClient>()
        var socketOptions = NIOSocket.Options()
        socketOptions.source = source
        socket = NIOSocket(socketOptions, on: loop) { event in client.object?.report(event) }
        client.set(self)
        runner.onEffect { [weak self] effect in self?.carryOut(effect) }
    }

    deinit { socket.close(.normal) }

    /// Opens a WebSocket and sends `hello`.
    ///
    /// - Parameters:
    ///   - server: the server's address, `http://host:port`, or with `https`, `ws` or `wss`. If it has a path, `/v1/socket` is
    ///     appended to that path.
    ///   - source: the local address to connect from; nil lets the system choose. Use several addresses if one would
    ///     exceed the server's limits.
    ///   - group: the event loops, one of which runs the connection; nil for the default ones.
    /// - Throws: a `RobotError` if the server cannot be reached or is not Confab, or a `WireError` if the server rejects the
    ///   client.
    public static func connect(
        to server: String, hello: Hello = Hello(), from source: String? = nil, on group: (any EventLoopGroup)? = nil
    ) async throws -> RobotClient {
        let place = try HostEndpoint(server)
        let client = RobotClient(hello, from: source, on: group?.next())
        do {
            let channel = try await client.socket.connect(to: place)
            client.state.withLock { $0.channel = channel }
        } catch let error as NIOSocket.NotConfab {
            throw RobotError("\(error)")
        } catch {
            throw RobotError("\(server) cannot be reached: \(error)")
        }
        for try await _ in client.greeted {}
        return client
    }

    // MARK: Requests

    /// Sends a request and waits for the response.
    /// - Throws: the `WireError` that the server sent, or a `RobotError` if the connection ended before the response.
    @discardableResult
    public func ask(_ message: ClientMessage) async throws -> ServerMessage {
        try await withCheckedThrowingContinuation { (waiting: Waiting) in
            let id = state.withLock { state in
                state.requestCount += 1
                let id = SignalClient.RequestID(rawValue: state.requestCount)
                state.waiting[id] = waiting
                return id
            }
            runner.post(.request(id, message))
        }
    }

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
    public func close() async {
        runner.post(.leave)
        socket.close(.normal)
        try? await state.withLock { $0.channel }?.closeFuture.get()
    }

    // MARK: SignalClient

    private func report(_ event: SocketEvent) {
        if case .opened = event { runner.post(.connect) }
        guard let open = state.withLock({ $0.socket }) else { return }
        switch event {
        case .opened: runner.post(.opened(open))
        case .received(let bytes): runner.post(.received(bytes, on: open))
        case .heard: runner.post(.heard(open))
        case .closed(let code):
            state.withLock { $0.fault = socket.fault }
            runner.post(.closed(open, code))
        }
    }

    private func carryOut(_ effect: SignalClient.Effect) {
        switch effect {
        case .open(let socket): state.withLock { $0.socket = socket }
        case .send(let bytes, _): socket.send(bytes)
        case .close(_, let code): socket.close(code)
        case .connected: greeting.finish()
        case .answered(let id, .error(let error)): take(id)?.resume(throwing: error.error)
        case .answered(let id, let message): take(id)?.resume(returning: message)
        case .failed(let id, let error):
            take(id)?.resume(throwing: RobotError(state.withLock { $0.ending } ?? error.message))
        case .ended(let ending): ended(ending)
        // A load test does not use events, and does not reconnect.
        case .event, .unreadable, .reconnecting, .expired: break
        }
    }

    private func take(_ id: SignalClient.RequestID) -> Waiting? {
        state.withLock { $0.waiting.removeValue(forKey: id) }
    }

    private func ended(_ ending: SignalClient.Ending) {
        let reason = ending.error?.message ?? "This client has left."
        state.withLock { state in state.ending = state.fault.map { "\(reason) (\($0))" } ?? reason }
        greeting.finish(throwing: ending.error ?? RobotError(reason))
        socket.close(.normal)
    }
}

extension RobotError {
    static let unexpected = RobotError("The server sent an unexpected response.")

    static func answered(_ message: ServerMessage, insteadOf expected: String) -> RobotError {
        RobotError("The server answered with \(message.type) instead of \(expected).")
    }
}

extension HostEndpoint {
    /// - Parameter server: the server's address, with or without a path.
    init(_ server: String) throws(RobotError) {
        guard let url = URL(string: server).flatMap(ConfabClient.socketURL) else { throw .noAddress(server) }
        self.init(url)
    }
}
