import CoreMetrics
import NIOHTTP1
import Signaling
import Wire

/// Handles requests under `/xirsys/`.
///
/// Every result of a call, including errors, is an envelope with status 200, because PerchRTC's clients ignore any
/// other response. Only a request that is not admitted, for example because of its address or a rate limit, gets an
/// error status. The request body is never logged, because it contains the credential.
extension PerchDirectory {
    static let layers = EndpointLayers(
        countsMessages: true, countsRefusals: true,
        sharing: .init(readers: .named, methods: "POST", headers: "Content-Type"),
        response: {
            var response = response(status($0), envelope($0))
            response.retry(after: $0.retryAfter)
            return response
        })

    /// Handles a request.
    ///
    /// - Returns: nil if the WebSocket can open.
    func respond(to request: PerchHTTPRequest, _ call: GateRequest) async throws(WireError) -> GateResponse? {
        switch request {
        case .webSocket(let token, _):
            try admit(token, from: call.address)
            return nil
        case .call(let kind):
            try gateway.admit(call.address, at: .handshake)
            return Self.response(200, await body(kind, FormFields(call.body), call))
        case .preflight: return Self.response(204, [])
        case .wrongMethod:
            let error = WireError(.methodNotAllowed, "Method not allowed. Send a form with POST.")
            var response = Self.response(405, Self.envelope(error))
            response.headers.add(name: "Allow", value: "POST, OPTIONS")
            return response
        case .unknown:
            return Self.response(404, Self.envelope(WireError(.notFound, "Unknown path. See protocol/perchrtc.md.")))
        }
    }

    private static func response(_ status: Int, _ body: [UInt8]) -> GateResponse {
        GateResponse(status: status, type: "application/json", body: body)
    }

    private func body(
        _ call: PerchHTTPRequest.Call, _ fields: FormFields, _ request: GateRequest
    ) async -> [UInt8] {
        do throws(WireError) {
            try check(fields)
            switch call {
            case .token: return Self.envelope("token", .string(try await token(fields, from: request.address)))
            case .list: return Self.envelope("value", .string(socketURL(request.headers)))
            case .servers: return Self.envelope("iceServers", .array(servers().flatMap(Self.entries)))
            }
        } catch {
            gateway.metrics.refusedHellos.increment()
            return Self.envelope(error)
        }
    }

    /// Returns the URL to which tokens are appended. PerchRTC always changes its scheme to `wss`.
    private func socketURL(_ headers: HTTPHeaders) -> String {
        let configuration = gateway.configuration
        let isSecure = configuration.handlesHTTPS
        let base =
            configuration.publicURL ?? "\(isSecure ? "https" : "http")://\(headers.first(name: "Host") ?? "")"
        // "http" becomes "ws", and "https" becomes "wss".
        return "ws" + base.dropFirst(4) + PerchHTTPRequest.socketPath
    }

    /// Returns one entry per URL, as WebRTC required in 2014.
    private static func entries(_ server: ICEServer) -> [JSONValue] {
        (server.urls ?? []).map { url in
            object([
                ("url", .string(url)), ("username", server.username.map { .string($0) }),
                ("credential", server.credential.map { .string($0) }),
            ])
        }
    }

    // MARK: Envelopes

    private static func envelope(_ name: String, _ value: JSONValue) -> [UInt8] {
        envelope(status: 200, data: object([(name, value)]), error: .null)
    }

    private static func envelope(_ error: WireError) -> [UInt8] {
        envelope(
            status: status(error), data: .null, error: .string("\(error.code.rawValue): \(error.message)"))
    }

    private static func envelope(status: Int, data: JSONValue, error: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(object([("s", .integer(Int64(status))), ("d", data), ("e", error)]))
        return writer.bytes
    }

    /// Returns the object with those members that have a value.
    private static func object(_ members: [(name: String, value: JSONValue?)]) -> JSONValue {
        var object = JSONObject()
        object.members = members.compactMap { name, value in value.map { .init(name: name, value: $0) } }
        return .object(object)
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
}
