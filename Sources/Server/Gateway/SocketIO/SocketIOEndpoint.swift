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
            if case .post(let id, _, _) = request { directory.session(id)?.overBudget() }
            return answer(Self.refusal(error, 429))
        }
        do throws(WireError) {
            guard isAllowedOrigin(request, call.headers) else { throw .forbiddenOrigin }
            if let response = try response(to: request, call) { answer(response) }
        } catch {
            answer(Self.refusal(error, error.code == .banned || error.code == .forbiddenOrigin ? 403 : 503))
        }
    }

    private func isAllowedOrigin(_ request: SocketIORequest, _ headers: HTTPHeaders) -> Bool {
        switch request {
        // Browsers send an origin with every WebSocket request, so refuse a request without one, as the native
        // protocol does.
        case .webSocket: gateway.configuration.allows(origin: headers.onlyOrigin)
        case _ where request.isScript: gateway.configuration.allowsScript(headers)
        default: gateway.configuration.allows(headers)
        }
    }

    /// Handles a request.
    ///
    /// - Returns: nil for a poll, which is answered later, and for a WebSocket.
    private func response(to request: SocketIORequest, _ call: GateRequest) throws(WireError) -> GateResponse? {
        switch request {
        case .greeting: return GateResponse(status: 200, text: "Socket.IO 0.9 clients connect here.\n")
        case .preflight: return GateResponse(status: 204, text: "")
        case .wrongMethod:
            var response = GateResponse(status: 405, text: "Use GET or POST.\n")
            response.headers.add(name: "Allow", value: "GET, POST")
            return response
        case .wrongProtocol:
            return GateResponse(status: 500, text: "Unsupported protocol. Use protocol 1 (Socket.IO 0.9).\n")
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
            poll(session, script: script)
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

    private func poll(_ session: SocketIOSession, script: Int?) {
        let poll = Poll(session: session, id: session.nextPoll())
        pending = poll
        session.poll(poll.id) { [weak self] packets in
            guard let self, pending?.id == poll.id else { return }
            pending = nil
            unconfirmed = poll
            answer(Self.response(packets, script: script))
        }
    }

    // MARK: Responses

    private static func text(_ error: WireError) -> String { "\(error.code.rawValue): \(error.message)" }

    private static func refusal(_ error: WireError, _ status: Int) -> GateResponse {
        GateResponse(status: status, text: text(error) + "\n", retryAfter: error.retryAfter)
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
