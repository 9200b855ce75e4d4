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

/// Answers what is asked under `/socket.io/` on one connection, and knows what a poll needs: whether its line broke while
/// the answer was awaited, and whether an answer already given was still received.
final class SocketIOEndpoint {
    private struct Poll {
        var session: SocketIOSession
        var id: SocketIOConnection.PollID
    }

    private enum ContentType: String {
        case text = "text/plain; charset=utf-8"
        case script = "application/javascript; charset=utf-8"
    }

    private let gateway: Gateway
    private unowned let gate: HTTPGate
    private let peer: SocketAddress?
    /// The request being answered.
    private var head: HTTPRequestHead?
    /// Awaits packets.
    private var pending: Poll?
    /// Answered, and not known to be received.
    private var unconfirmed: Poll?

    init(gateway: Gateway, gate: HTTPGate, peer: SocketAddress?) {
        self.gateway = gateway
        self.gate = gate
        self.peer = peer
    }

    // MARK: The connection

    /// Another request came: whoever asks has read the answer before.
    func nextRequest() { unconfirmed = nil }

    func lineBroke() {
        abandonPoll()
        loseAnswer()
    }

    /// The client closed. If bytes of our answer are not acknowledged by then, it did so before they came; if they met a
    /// closed socket there, its reset has ended the connection by now. In order, ours would be the side to close.
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

    /// A broken line was reported before; on a line that ended in order all bytes were read.
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
        guard gateway.configuration.allows(head.headers) else { return answer(403, Self.text(.forbiddenOrigin) + "\n") }
        switch request {
        case .greeting: answer(200, "This is where clients of Socket.IO 0.9 connect.\n")
        case .preflight: answer(204, "")
        case .wrongMethod: answer(405, "Use GET or POST.\n", allow: "GET, POST")
        case .wrongProtocol: answer(500, "Only protocol 1 of Socket.IO (version 0.9) is spoken here.\n")
        // Reason 0, transport not supported.
        case .wrongTransport(let script): answer([SocketIOPacket(.error, data: "0".utf8).encode()], script: script)
        case .handshake(let script): handshake(head, script: script)
        case .disconnect(let id):
            gateway.socketIO.session(id)?.disconnect()
            answer(200, "")
        case .poll(let id, let transport, let number): poll(id, script: transport == .jsonpPolling ? number : nil)
        case .post(let id, let transport, _): post(id, body, isForm: transport == .jsonpPolling)
        }
    }

    private func handshake(_ head: HTTPRequestHead, script: Int?) {
        let address = gateway.configuration.clientAddress(head.headers, from: peer)
        do throws(WireError) {
            let line = try gateway.socketIO.handshake(from: address)
            if let script {
                answer(200, SocketIOScript.call(script, Array(line.utf8)), .script)
            } else {
                answer(200, line)
            }
        } catch {
            refuse(error, script: script)
        }
    }

    private func refuse(_ error: WireError, script: Int?) {
        gateway.metrics.refusedHellos.increment()
        let text = Self.text(error)
        if let script {
            // A browser runs a script only if it came with 200; otherwise the page would never hear of the error.
            answer(200, Array("io.j[\(script)](new Error(\"\(text)\"));".utf8), .script)
        } else {
            answer(error.code == .banned ? 403 : 503, Array((text + "\n").utf8), .text, error.retryAfter)
        }
    }

    private func poll(_ id: String, script: Int?) {
        guard let session = gateway.socketIO.session(id) else {
            return answer([SocketIOPacket.notHandshaken.encode()], script: script)
        }
        let poll = Poll(session: session, id: session.nextPoll())
        pending = poll
        session.poll(poll.id) { [weak self] packets in
            guard let self, pending?.id == poll.id else { return }
            pending = nil
            unconfirmed = poll
            answer(packets, script: script)
        }
    }

    private func post(_ id: String, _ body: [UInt8], isForm: Bool) {
        guard let session = gateway.socketIO.session(id) else {
            return answer([SocketIOPacket.notHandshaken.encode()], script: nil)
        }
        do throws(WireError) {
            session.posted(isForm ? try SocketIOScript.payload(form: body) : body)
            answer(200, "1")
        } catch {
            answer(400, Self.text(error) + "\n")
        }
    }

    // MARK: Answers

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
        gate.answer(HTTPReply(status: status, headers: headers, body: body))
    }

    private func headers(for request: HTTPRequestHead, _ type: ContentType) -> HTTPHeaders {
        var headers = HTTPHeaders([
            ("Content-Type", type.rawValue), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ])
        // There is no ambient authority here: a connection's id is all that counts, and it must be known.
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
