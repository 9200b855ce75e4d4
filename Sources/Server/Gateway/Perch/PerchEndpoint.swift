import CoreMetrics
import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// Handles requests under `/xirsys/` on one connection.
///
/// Every result of a call, including errors, is an envelope with status 200, because PerchRTC's clients ignore any
/// other response. The request body is never logged, because it contains the credential.
final class PerchEndpoint {
    private let gateway: Gateway
    private unowned let gate: HTTPGate
    private let peer: SocketAddress?

    init(gateway: Gateway, gate: HTTPGate, peer: SocketAddress?) {
        (self.gateway, self.gate, self.peer) = (gateway, gate, peer)
    }

    func perform(_ request: PerchHTTPRequest, _ head: HTTPRequestHead, _ body: [UInt8]) {
        let address = gateway.configuration.clientAddress(head.headers, from: peer)
        do throws(WireError) {
            try gateway.admitRequest(from: address, bytes: body.count)
            // Applications send no origin. Pages do, and must be allowed.
            guard gateway.configuration.allows(head.headers) else { throw .forbiddenOrigin }
            if case .webSocket(let token, _) = request {
                try gateway.perch.admit(token, from: address)
                return gate.accept()
            }
            if case .call = request { try gateway.admit(address, at: .handshake) }
        } catch {
            gateway.metrics.refusedHellos.increment()
            return answer(Self.status(error), Self.envelope(error), head, error.retryAfter)
        }
        switch request {
        case .call(let call): perform(call, FormFields(body), head, address)
        case .preflight: answer(204, [], head)
        case .wrongMethod:
            answer(405, Self.envelope(WireError(.methodNotAllowed, "Method not allowed. Send a form with POST.")), head)
        case .unknown, .webSocket:
            answer(404, Self.envelope(WireError(.notFound, "Unknown path. See protocol/perchrtc.md.")), head)
        }
    }

    // MARK: Calls

    private func perform(
        _ call: PerchHTTPRequest.Call, _ fields: FormFields, _ head: HTTPRequestHead, _ address: IPAddress
    ) {
        do throws(WireError) {
            try gateway.perch.check(fields)
            switch call {
            case .token:
                try gateway.perch.token(fields, from: address) { [weak self] result in
                    switch result {
                    case .success(let token): self?.answer(200, Self.envelope("token", .string(token)), head)
                    case .failure(let error): self?.refuse(error, head)
                    }
                }
            case .list: answer(200, Self.envelope("value", .string(socketURL(head))), head)
            case .servers:
                let servers = gateway.perch.servers().flatMap(Self.entries)
                answer(200, Self.envelope("iceServers", .array(servers)), head)
            }
        } catch {
            refuse(error, head)
        }
    }

    private func refuse(_ error: WireError, _ head: HTTPRequestHead) {
        gateway.metrics.refusedHellos.increment()
        answer(200, Self.envelope(error), head)
    }

    /// Returns the URL to which tokens are appended. PerchRTC always changes its scheme to `wss`.
    private func socketURL(_ head: HTTPRequestHead) -> String {
        let configuration = gateway.configuration
        let isSecure = configuration.lan || configuration.tls.certificate != nil
        let base =
            configuration.publicURL ?? "\(isSecure ? "https" : "http")://\(head.headers.first(name: "Host") ?? "")"
        // "http" becomes "ws", and "https" becomes "wss".
        return "ws" + base.dropFirst(4) + PerchHTTPRequest.socketPath
    }

    /// Returns one entry per URL, the format of 2014.
    private static func entries(_ server: ICEServer) -> [JSONValue] {
        (server.urls ?? []).map { url in
            var object = JSONObject()
            object.members.append(.init(name: "url", value: .string(url)))
            if let username = server.username {
                object.members.append(.init(name: "username", value: .string(username)))
            }
            if let credential = server.credential {
                object.members.append(.init(name: "credential", value: .string(credential)))
            }
            return .object(object)
        }
    }

    // MARK: Envelopes

    private static func envelope(_ name: String, _ value: JSONValue) -> [UInt8] {
        var data = JSONObject()
        data.members.append(.init(name: name, value: value))
        return envelope(status: 200, data: .object(data), error: .null)
    }

    private static func envelope(_ error: WireError) -> [UInt8] {
        envelope(
            status: status(error), data: .null, error: .string("\(error.code.rawValue): \(error.message)"))
    }

    private static func envelope(status: Int, data: JSONValue, error: JSONValue) -> [UInt8] {
        var object = JSONObject()
        object.members = [
            .init(name: "s", value: .integer(Int64(status))), .init(name: "d", value: data),
            .init(name: "e", value: error),
        ]
        var writer = JSONWriter()
        writer.value(.object(object))
        return writer.bytes
    }

    private static func status(_ error: WireError) -> Int {
        switch error.code {
        case .tokenSignature, .tokenExpired: 401
        case .malformed, .invalidName: 400
        case .notFound, .roomNotFound: 404
        case .methodNotAllowed: 405
        case .rateLimited, .tooManyConnections: 429
        case .draining: 503
        default: 403
        }
    }

    // MARK: Responses

    private func answer(_ status: Int, _ body: [UInt8], _ head: HTTPRequestHead, _ retryAfter: Duration? = nil) {
        var headers = HTTPHeaders([
            ("Content-Type", "application/json"), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ])
        if let retryAfter { headers.add(name: "Retry-After", value: "\((retryAfter.wholeMilliseconds + 999) / 1000)") }
        if status == 405 { headers.add(name: "Allow", value: "POST, OPTIONS") }
        // Allowing other origins is safe: requests carry no ambient authority, only the credential.
        if let origin = head.headers.onlyOrigin, gateway.configuration.allows(head.headers) {
            headers.add(name: "Access-Control-Allow-Origin", value: origin)
            headers.add(name: "Vary", value: "Origin")
            if head.method == .OPTIONS {
                headers.add(name: "Access-Control-Allow-Methods", value: "POST")
                headers.add(name: "Access-Control-Allow-Headers", value: "Content-Type")
            }
        }
        gate.answer(GateResponse(status: status, headers: headers, body: body))
    }
}
