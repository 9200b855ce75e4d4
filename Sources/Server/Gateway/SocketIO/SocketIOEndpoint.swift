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

    /// The content types of responses.
    private enum ContentType: String {
        case text = "text/plain; charset=utf-8"
        case script = "application/javascript; charset=utf-8"
    }

    private let gateway: Gateway
    private unowned let gate: HTTPGate
    private let peer: SocketAddress?
    /// The request being answered.
    private var head: HTTPRequestHead?
    /// The poll that waits for packets.
    private var pending: Poll?
    /// An answered poll whose response may not have been received.
    private var unconfirmed: Poll?

    init(gateway: Gateway, gate: HTTPGate, peer: SocketAddress?) {
        self.gateway = gateway
        self.gate = gate
        self.peer = peer
    }

    // MARK: The connection

    /// Called for each new request, which proves that the client received the previous response.
    func nextRequest() { unconfirmed = nil }

    func connectionFailed() {
        abandonPoll()
        loseAnswer()
    }

    /// Called when the client closes its side. If TCP has not acknowledged the whole response by then, the client did not
    /// receive it. If the response reached a closed socket, a reset has already ended the connection, so the state is no longer
    /// CLOSE_WAIT.
    func inputClosed(_ channel: any Channel) {
        abandonPoll()
        guard unconfirmed != nil else { return }
        #if os(Linux)
        let endpoint = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        (channel as? any SocketOptionProvider)?.getTCPInfo()
            .whenSuccess { info in
                let isInOrder = info.tcpi_state == UInt8(TCP_CLOSE_WAIT) && info.tcpi_unacked == 0
                if !isInOrder { endpoint.value.loseAnswer() }
            }
        #endif
    }

    /// Called when the connection ends. A failure would have been reported before, so the client received the most
    /// recent response.
    func ended() {
        abandonPoll()
        unconfirmed = nil
    }

    private func abandonPoll() {
        guard let poll = pending else { return }
        pending = nil
        poll.session.lost(poll.id)
    }

    private func loseAnswer() {
        guard let poll = unconfirmed else { return }
        unconfirmed = nil
        poll.session.lost(poll.id)
    }

    // MARK: Requests

    func perform(_ request: SocketIORequest, _ head: HTTPRequestHead, _ body: [UInt8]) {
        self.head = head
        guard isWithinBudget(request, head, body) else { return }
        guard isAllowedOrigin(request, head.headers) else { return refuse(.forbiddenOrigin) }
        switch request {
        case .greeting: answer(200, "Socket.IO 0.9 clients connect here.\n")
        case .preflight: answer(204, "")
        case .wrongMethod: answer(405, "Use GET or POST.\n", allow: "GET, POST")
        case .wrongProtocol: answer(500, "Unsupported protocol. Use protocol 1 (Socket.IO 0.9).\n")
        // Reason 0: transport not supported.
        case .wrongTransport(let script): answer([SocketIOPacket(.error, data: "0".utf8).encode()], script: script)
        case .handshake(let script): handshake(head, script: script)
        case .webSocket(let id): openWebSocket(id, head)
        case .disconnect(let id):
            gateway.socketIO.session(id)?.disconnect()
            answer(200, "")
        case .poll(let id, let transport, let number): poll(id, head, script: transport == .jsonpPolling ? number : nil)
        case .post(let id, let transport, _): post(id, head, body, isForm: transport == .jsonpPolling)
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

    /// Charges the request to the budget of its address. If the budget is used up, answers the request and returns
    /// false.
    private func isWithinBudget(_ request: SocketIORequest, _ head: HTTPRequestHead, _ body: [UInt8]) -> Bool {
        do throws(WireError) {
            let address = gateway.configuration.clientAddress(head.headers, from: peer)
            try gateway.admitRequest(from: address, bytes: body.count)
            return true
        } catch {
            if case .post(let id, _, _) = request { gateway.socketIO.session(id)?.overBudget() }
            answer(429, Array((Self.text(error) + "\n").utf8), .text, error.retryAfter)
            return false
        }
    }

    private func handshake(_ head: HTTPRequestHead, script: Int?) {
        let address = gateway.configuration.clientAddress(head.headers, from: peer)
        do throws(WireError) {
            let body = try gateway.socketIO.handshake(from: address)
            if let script {
                answer(200, SocketIOScript.call(script, Array(body.utf8)), .script)
            } else {
                answer(200, body)
            }
        } catch {
            gateway.metrics.refusedHellos.increment()
            guard let script else { return refuse(error) }
            // Browsers run a script only if its status is 200, so other statuses would hide the error from the page.
            answer(200, Array("io.j[\(script)](new Error(\"\(Self.text(error))\"));".utf8), .script)
        }
    }

    private func refuse(_ error: WireError) {
        let status = error.code == .banned || error.code == .forbiddenOrigin ? 403 : 503
        answer(status, Array((Self.text(error) + "\n").utf8), .text, error.retryAfter)
    }

    /// Admits a request for a connection and calls `body` with the connection, or with nil if there is none.
    private func admit(
        _ id: String, _ head: HTTPRequestHead, moves: Bool = true, _ body: (SocketIOSession?) -> Void
    ) {
        let address = gateway.configuration.clientAddress(head.headers, from: peer)
        do throws(WireError) {
            body(try gateway.socketIO.session(id, from: address, moves: moves))
        } catch {
            refuse(error)
        }
    }

    /// `ConnectionProtocols` opens the WebSocket, even for an unknown ID.
    private func openWebSocket(_ id: String, _ head: HTTPRequestHead) { admit(id, head) { _ in gate.accept() } }

    private func poll(_ id: String, _ head: HTTPRequestHead, script: Int?) {
        admit(id, head) { poll($0, script: script) }
    }

    private func poll(_ session: SocketIOSession?, script: Int?) {
        guard let session else { return answer([SocketIOPacket.notHandshaken.encode()], script: script) }
        let poll = Poll(session: session, id: session.nextPoll())
        pending = poll
        session.poll(poll.id) { [weak self] packets in
            guard let self, pending?.id == poll.id else { return }
            pending = nil
            unconfirmed = poll
            answer(packets, script: script)
        }
    }

    private func post(_ id: String, _ head: HTTPRequestHead, _ body: [UInt8], isForm: Bool) {
        // For a client with a WebSocket, keep the WebSocket's address. Otherwise the client could evade bans by
        // posting through a proxy.
        let moves = gateway.socketIO.session(id)?.hasWebSocket != true
        admit(id, head, moves: moves) { post($0, body, isForm: isForm) }
    }

    private func post(_ session: SocketIOSession?, _ body: [UInt8], isForm: Bool) {
        guard let session else { return answer([SocketIOPacket.notHandshaken.encode()], script: nil) }
        do throws(WireError) {
            session.posted(isForm ? try SocketIOScript.payload(form: body) : body)
            answer(200, "1")
        } catch {
            answer(400, Self.text(error) + "\n")
        }
    }

    // MARK: Responses

    private static func text(_ error: WireError) -> String { "\(error.code.rawValue): \(error.message)" }

    private func answer(_ packets: [[UInt8]], script: Int?) {
        let payload = SocketIOPayload.encode(packets)
        if let script {
            answer(200, SocketIOScript.call(script, payload), .script)
        } else {
            answer(200, payload, .text)
        }
    }

    private func answer(_ status: Int, _ text: String, allow: String? = nil) {
        answer(status, Array(text.utf8), .text, nil, allow: allow)
    }

    private func answer(
        _ status: Int, _ body: [UInt8], _ type: ContentType, _ retryAfter: Duration? = nil, allow: String? = nil
    ) {
        guard let head else { return }
        var headers = headers(for: head, type)
        if let allow { headers.add(name: "Allow", value: allow) }
        if let retryAfter { headers.add(name: "Retry-After", value: "\((retryAfter.wholeMilliseconds + 999) / 1000)") }
        gate.answer(GateResponse(status: status, headers: headers, body: body))
    }

    private func headers(for request: HTTPRequestHead, _ type: ContentType) -> HTTPHeaders {
        var headers = HTTPHeaders([
            ("Content-Type", type.rawValue), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ])
        // Allowing credentials is safe: requests carry no ambient authority, only the unguessable ID of a connection.
        if let origin = request.headers.onlyOrigin, gateway.configuration.allows(request.headers) {
            headers.add(name: "Access-Control-Allow-Origin", value: origin)
            headers.add(name: "Access-Control-Allow-Credentials", value: "true")
            headers.add(name: "Vary", value: "Origin")
        }
        if request.method == .OPTIONS {
            headers.add(name: "Access-Control-Allow-Methods", value: "GET, POST")
            headers.add(name: "Access-Control-Allow-Headers", value: "Content-Type")
        }
        return headers
    }
}
