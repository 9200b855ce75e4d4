import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// Handles requests under `/whip/` and `/whep/` on one connection: WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep).
///
/// It parses and validates requests. The hub decides what they may do.
final class WHIPEndpoint {
    private let gateway: Gateway
    private unowned let gate: HTTPGate
    private let peer: SocketAddress?
    /// The request being answered.
    private var head: HTTPRequestHead?
    private var request: WHIPRequest?
    /// Number of the current request. Replies to earlier requests are dropped.
    private var number: UInt64 = 0
    /// The resource that the current POST creates, until the response with its URL is sent.
    private var made: WHIPResource?

    init(gateway: Gateway, gate: HTTPGate, peer: SocketAddress?) {
        (self.gateway, self.gate, self.peer) = (gateway, gate, peer)
    }

    /// Returns the response to a body that is too large.
    static func tooLarge(
        _ head: HTTPRequestHead, _ request: WHIPRequest, limit: Int, _ configuration: ConfabConfiguration
    ) -> GateResponse {
        let error = WireError(.messageTooLarge, "The request body is too large. Send at most \(limit) bytes.")
        return reply(EndpointResponse(error), to: head, request, configuration)
    }

    // MARK: The connection

    /// Called when the connection closes. Abandons a resource whose response was not sent.
    func ended() {
        let made = made
        self.made = nil
        made?.abandon()
    }

    // MARK: Requests

    func perform(_ request: WHIPRequest, _ head: HTTPRequestHead, _ body: [UInt8]) {
        (self.head, self.request) = (head, request)
        number += 1
        let address = gateway.configuration.clientAddress(head.headers, from: peer)
        do throws(WireError) {
            try gateway.admitRequest(from: address, bytes: body.count)
        } catch {
            return answer(EndpointResponse(error))
        }
        guard gateway.configuration.allows(head.headers) else { return answer(EndpointResponse(.forbiddenOrigin)) }
        if request.action == .options {
            return answer(EndpointResponse(status: 200))
        }
        if request.target == .nothing {
            return answer(EndpointResponse(WireError(.notFound, "No such session, stream or resource. Check the URL.")))
        }
        guard request.isAllowed else {
            return answer(EndpointResponse(WireError(.methodNotAllowed, "Method not allowed. Use \(request.allowed).")))
        }
        guard let token = head.headers.bearerToken else { return answer(EndpointResponse(.tokenMissing)) }
        do throws(WireError) {
            switch request.target {
            case .endpoint(let session, let purpose):
                try make(session, purpose, token, head, body, from: address)
            case .resource(let name):
                try change(name, token, request, head, body)
            case .nothing: break
            }
        } catch {
            answer(EndpointResponse(error))
        }
    }

    private func make(
        _ session: SessionID, _ purpose: ResourcePurpose, _ token: String, _ head: HTTPRequestHead, _ body: [UInt8],
        from address: IPAddress
    ) throws(WireError) {
        try require(WHIPBody.offerType, head)
        let number = number
        var isAnswered = false
        let resource = try gateway.whip.make(
            session, purpose, token: token, body: body, from: address,
            respond: { [weak self] reply in
                isAnswered = true
                guard let self, self.number == number else { return }
                made = nil
                answer(reply)
            }
        )
        if !isAnswered { made = resource }
    }

    private func change(
        _ name: String, _ token: String, _ request: WHIPRequest, _ head: HTTPRequestHead, _ body: [UInt8]
    ) throws(WireError) {
        guard let resource = gateway.whip.resource(name, isWHIP: request.isWHIP) else { throw .noResource }
        let action: ResourceRequest.Action
        if request.action == .delete {
            action = .delete
        } else {
            try require(WHIPBody.fragmentType, head)
            action = .patch(try WHIPBody.fragment(body), head.headers.entityCondition)
        }
        let number = number
        resource.request(action, token: token) { [weak self] reply in
            guard let self, self.number == number else { return }
            answer(reply)
        }
    }

    private func require(_ type: String, _ head: HTTPRequestHead) throws(WireError) {
        guard head.headers.hasContentType(type) else {
            throw WireError(.contentType, "Send a body of type \(type), without Content-Encoding.")
        }
    }

    // MARK: Responses

    private func answer(_ answer: EndpointResponse) {
        guard let head, let request else { return }
        self.head = nil
        gate.answer(Self.reply(answer, to: head, request, gateway.configuration))
    }

    private static func reply(
        _ answer: EndpointResponse, to head: HTTPRequestHead, _ request: WHIPRequest,
        _ configuration: ConfabConfiguration
    ) -> GateResponse {
        var headers = answer.headers
        headers.add(name: "Cache-Control", value: "no-store")
        headers.add(name: "X-Content-Type-Options", value: "nosniff")
        if let type = answer.contentType { headers.add(name: "Content-Type", value: type) }
        if answer.status == 405 { headers.add(name: "Allow", value: request.allowed) }
        if answer.status == 415 || request.action == .options { addAcceptHeader(request, &headers) }
        addCORSHeaders(head, request, configuration, &headers)
        return GateResponse(status: answer.status, headers: headers, body: answer.body)
    }

    /// Adds the header that lists the accepted content type (RFC 9725 §4.2).
    private static func addAcceptHeader(_ request: WHIPRequest, _ headers: inout HTTPHeaders) {
        switch request.target {
        case .endpoint, .nothing: headers.add(name: "Accept-Post", value: WHIPBody.offerType)
        case .resource: headers.add(name: "Accept-Patch", value: WHIPBody.fragmentType)
        }
    }

    /// Adds the CORS headers.
    private static func addCORSHeaders(
        _ head: HTTPRequestHead, _ request: WHIPRequest, _ configuration: ConfabConfiguration,
        _ headers: inout HTTPHeaders
    ) {
        guard headers.allowReading(by: head.headers, configuration) else { return }
        headers.add(name: "Access-Control-Expose-Headers", value: "Location, ETag, Link, Retry-After")
        guard request.action == .options else { return }
        headers.add(name: "Access-Control-Allow-Methods", value: request.allowed)
        headers.add(name: "Access-Control-Allow-Headers", value: "Authorization, Content-Type, If-Match")
        headers.add(name: "Access-Control-Max-Age", value: "86400")
    }
}
