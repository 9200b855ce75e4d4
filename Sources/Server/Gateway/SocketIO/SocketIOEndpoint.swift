import CoreMetrics
import NIOCore
import NIOHTTP1
import Signaling
import Wire

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Handles requests under `/socket.io/` on one HTTP connection.
///
/// For polls it detects whether the connection failed before the response, or before the client received the response.
final class SocketIOEndpoint {
    /// A poll that the client has open.
    private struct Poll {
        var session: SocketIOSession
        var id: SocketIOConnection.PollID
    }

    private let directory: SocketIODirectory
    private var gateway: Gateway { directory.gateway }
    private unowned let gate: HTTPGate
    /// The most recent request on this connection, to which `answer` responds.
    private var request: GateRequest?
    /// The poll that waits for packets, if there is one.
    private var pending: Poll?
    /// The answered poll whose response may not have been received, if there is one.
    private var unconfirmed: Poll?

    init(directory: SocketIODirectory, gate: HTTPGate) { (self.directory, self.gate) = (directory, gate) }

    // MARK: The connection

    /// Called for each new request, which proves that the client received the previous response.
    func nextRequest() { unconfirmed = nil }

    func connectionFailed() {
        lose(\.pending)
        lose(\.unconfirmed)
    }

    /// Called when the client closes its side. If TCP has not acknowledged the whole response by then, the client did not
    /// receive it. If the response reached a closed socket, a reset has already ended the connection, so the state is
    /// no longer CLOSE_WAIT. Only Linux reports this; on other systems, assumes that the client received the response.
    func inputClosed(_ channel: any Channel) {
        lose(\.pending)
        guard unconfirmed != nil else { return }
        #if os(Linux)
        let endpoint = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        (channel as? any SocketOptionProvider)?.getTCPInfo()
            .whenSuccess { info in
                let isInOrder = info.tcpi_state == UInt8(TCP_CLOSE_WAIT) && info.tcpi_unacked == 0
                if !isInOrder { endpoint.value.lose(\.unconfirmed) }
            }
        #endif
    }

    /// Called when the connection ends. A failure would have been reported before, so the client received the most
    /// recent response.
    func ended() {
        lose(\.pending)
        unconfirmed = nil
    }

    private func lose(_ poll: ReferenceWritableKeyPath<SocketIOEndpoint, Poll?>) {
        guard let lost = self[keyPath: poll] else { return }
        self[keyPath: poll] = nil
        lost.session.lost(lost.id)
    }

    // MARK: Requests

    func perform(_ request: SocketIORequest, _ call: GateRequest) {
        self.request = call
        do throws(WireError) {
            try gateway.admitRequest(from: call.address, bytes: call.body.count)
        } catch {
            overBudget(request)
            return answer(Self.refusal(of: request, error, 429))
        }
        do throws(WireError) {
            guard isAllowedOrigin(request, call.headers) else { throw .forbiddenOrigin }
            if let response = try response(to: request, call) { answer(response) }
        } catch {
            answer(
                Self.refusal(of: request, error, error.code == .banned || error.code == .forbiddenOrigin ? 403 : 503))
        }
    }

    private func overBudget(_ request: SocketIORequest) {
        switch request {
        case .post(let id, _, _): directory.session(id)?.overBudget()
        case .engine(let request): if case .post(let id) = request.action { directory.engineSession(id)?.overBudget() }
        default: break
        }
    }

    private func isAllowedOrigin(_ request: SocketIORequest, _ headers: HTTPHeaders) -> Bool {
        switch request {
        // Browsers send an origin with every WebSocket request, so refuse a request without one, as the native
        // protocol does.
        case .webSocket: gateway.configuration.allows(origin: headers.onlyOrigin)
        case .engine(let request) where request.isUpgrade: gateway.configuration.allows(origin: headers.onlyOrigin)
        case _ where request.isScript: gateway.configuration.allowsScript(headers)
        default: gateway.configuration.allows(headers)
        }
    }

    /// Handles a request.
    ///
    /// - Returns: nil for a poll, which is answered later, and for a WebSocket.
    private func response(to request: SocketIORequest, _ call: GateRequest) throws(WireError) -> GateResponse? {
        switch request {
        case .greeting: return GateResponse(status: 200, text: "Socket.IO clients connect here.\n")
        case .engine(let request): return try response(to: request, call)
        case .preflight: return GateResponse(status: 204, text: "")
        case .wrongMethod:
            var response = GateResponse(status: 405, text: "Use GET or POST.\n")
            response.headers.add(name: "Allow", value: "GET, POST")
            return response
        case .wrongProtocol:
            return GateResponse(
                status: 500, text: "Unsupported protocol. Use protocol 1 (Socket.IO 0.9), or Engine.IO 3 or 4.\n")
        // Reason 0 means that the transport is not supported.
        case .wrongTransport(let script):
            return Self.response([SocketIOPacket(.error, data: "0".utf8).encode()], script: script)
        case .handshake(let script): return try handshake(call.address, script: script)
        case .webSocket(let id):
            _ = try directory.session(id, from: call.address, moves: true)
            // Accept even an unknown ID: `ConnectionProtocols` opens the WebSocket and reports the error on it.
            gate.accept()
            return nil
        case .disconnect(let id):
            directory.session(id)?.disconnect()
            return GateResponse(status: 200, text: "")
        case .poll(let id, let transport, let number):
            let script = transport == .jsonpPolling ? number : nil
            guard let session = try directory.session(id, from: call.address, moves: true) else {
                return Self.response([SocketIOPacket.notHandshaken.encode()], script: script)
            }
            poll(session) { Self.response($0, script: script) }
            return nil
        case .post(let id, let transport, _):
            // For a client with a WebSocket, the WebSocket's address counts. Otherwise the client could evade bans by
            // posting through a proxy.
            let moves = directory.session(id)?.hasWebSocket != true
            guard let session = try directory.session(id, from: call.address, moves: moves) else {
                return Self.response([SocketIOPacket.notHandshaken.encode()], script: nil)
            }
            do throws(WireError) {
                session.posted(transport == .jsonpPolling ? try SocketIOScript.payload(form: call.body) : call.body)
                return GateResponse(status: 200, text: "1")
            } catch {
                return Self.refusal(error, 400)
            }
        }
    }

    private func handshake(_ address: IPAddress, script: Int?) throws(WireError) -> GateResponse {
        do throws(WireError) {
            let body = try directory.handshake(from: address)
            guard let script else { return GateResponse(status: 200, text: body) }
            return Self.script(SocketIOScript.call(script, Array(body.utf8)))
        } catch {
            gateway.metrics.refusedHellos.increment()
            guard let script else { throw error }
            // Browsers run a script only if its status is 200, so other statuses would hide the error from the page.
            return Self.script(Array("io.j[\(script)](new Error(\"\(Self.text(error))\"));".utf8))
        }
    }

    /// Waits for packets, and answers with the response that `encode` makes of them.
    private func poll(_ session: SocketIOSession, _ encode: @escaping ([[UInt8]]) -> GateResponse) {
        let poll = Poll(session: session, id: session.nextPoll())
        pending = poll
        session.poll(poll.id) { [weak self] packets in
            guard let self, pending?.id == poll.id else { return }
            pending = nil
            unconfirmed = poll
            answer(encode(packets))
        }
    }

    // MARK: Engine.IO

    /// Handles a request of Engine.IO.
    ///
    /// - Returns: nil for a poll, which is answered later, and for a WebSocket.
    private func response(to request: EngineIORequest, _ call: GateRequest) throws(WireError) -> GateResponse? {
        switch request.action {
        case .invalid(let error): return error.response()
        case .notUpgrade(let id):
            let isUnknown = id.map { directory.engineSession($0) == nil } ?? false
            return (isUnknown ? EngineIOError.unknownSession : .badRequest).response()
        case .handshake(let version): return try handshake(version, request, call.address)
        case .upgrade(let id, _): return try upgrade(id, call.address)
        case .poll(let id):
            guard let session = try engineSession(id, call.address, moves: true), let engine = session.engine else {
                return EngineIOError.unknownSession.response()
            }
            guard engine.acceptance(ofPoll: true) == .accepted else {
                if engine.acceptance(ofPoll: true) == .overlapping { session.overlapped() }
                return EngineIOError.badRequest.response()
            }
            poll(session) { Self.response($0, engine.version, script: request.script) }
            return nil
        case .post(let id): return try post(id, request, call)
        }
    }

    private func engineSession(
        _ id: String, _ address: IPAddress, moves: Bool
    ) throws(WireError) -> SocketIOSession? {
        try gateway.admit(address, at: .transport)
        return try directory.moved(directory.engineSession(id), to: moves ? address : nil)
    }

    private func handshake(
        _ version: EngineIOVersion, _ request: EngineIORequest, _ address: IPAddress
    ) throws(WireError) -> GateResponse {
        try admitHandshake(address)
        let session = directory.open(version, .polling, canRecover: request.canRecover, from: address)
        let packets = session.engine.map { [$0.openPacket(.polling, isScript: request.script != nil)] } ?? []
        return Self.response(packets, version, script: request.script)
    }

    private func admitHandshake(_ address: IPAddress) throws(WireError) {
        do throws(WireError) {
            try gateway.admit(address, at: .handshake)
        } catch {
            gateway.metrics.refusedHellos.increment()
            throw error
        }
    }

    private func upgrade(_ id: String?, _ address: IPAddress) throws(WireError) -> GateResponse? {
        if let id {
            guard let session = try engineSession(id, address, moves: true) else {
                return EngineIOError.unknownSession.response()
            }
            guard session.engine?.acceptsUpgrade == .accepted else { return EngineIOError.badRequest.response() }
        } else {
            try admitHandshake(address)
        }
        gate.accept()
        return nil
    }

    private func post(
        _ id: String, _ request: EngineIORequest, _ call: GateRequest
    ) throws(WireError) -> GateResponse {
        guard
            let session = try engineSession(id, call.address, moves: directory.engineSession(id)?.hasWebSocket != true),
            let engine = session.engine
        else { return EngineIOError.unknownSession.response() }
        guard engine.acceptance(ofPoll: false) == .accepted else { return EngineIOError.badRequest.response() }
        let packets: [EngineIOPacket]
        do throws(WireError) {
            let body = request.script == nil ? call.body : try EngineIOScript.payload(form: call.body)
            packets = try EngineIOPayload.decode(body, engine.version)
        } catch {
            session.postedUnreadable()
            return EngineIOError.badRequest.response()
        }
        session.posted(packets)
        return GateResponse(status: 200, type: "text/html", body: "ok".utf8)
    }

    private static func response(
        _ packets: [[UInt8]], _ version: EngineIOVersion, script number: Int?
    ) -> GateResponse {
        let payload = EngineIOPayload.encode(packets, version)
        if let number { return script(EngineIOScript.call(number, payload)) }
        return GateResponse(status: 200, type: "text/plain; charset=utf-8", body: payload)
    }

    // MARK: Responses

    private static func text(_ error: WireError) -> String { "\(error.code.rawValue): \(error.message)" }

    private static func refusal(_ error: WireError, _ status: Int) -> GateResponse {
        GateResponse(status: status, text: text(error) + "\n", retryAfter: error.retryAfter)
    }

    /// Returns the refusal of a request in the form that the client's version expects.
    private static func refusal(of request: SocketIORequest, _ error: WireError, _ status: Int) -> GateResponse {
        guard case .engine = request else { return refusal(error, status) }
        var response = EngineIOError.forbidden(text(error)).response(status: status)
        response.retry(after: error.retryAfter)
        return response
    }

    private static func response(_ packets: [[UInt8]], script number: Int?) -> GateResponse {
        let payload = SocketIOPayload.encode(packets)
        if let number { return script(SocketIOScript.call(number, payload)) }
        return GateResponse(status: 200, type: "text/plain; charset=utf-8", body: payload)
    }

    private static func script(_ text: [UInt8]) -> GateResponse {
        GateResponse(status: 200, type: "application/javascript; charset=utf-8", body: text)
    }

    private func answer(_ response: GateResponse) {
        guard let request else { return }
        var response = response
        Self.layers.share(&response, with: request.headers, request.method, gateway.configuration)
        gate.answer(response)
    }

    /// Allowing credentials is safe: requests carry no ambient authority, only the unguessable ID of a connection.
    private static let layers = EndpointLayers(
        sharing: .init(readers: .namedWithCredentials, methods: "GET, POST", headers: "Content-Type"))
}
