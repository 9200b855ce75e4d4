import NIOHTTP1

/// A complete HTTP response that bypasses the router.
struct GateResponse: Equatable {
    var status: Int
    var headers = HTTPHeaders()
    var body: [UInt8] = []

    /// Returns a plain-text error response.
    static func refusal(_ status: Int, _ text: String) -> GateResponse {
        let headers = HTTPHeaders([
            ("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ])
        return GateResponse(status: status, headers: headers, body: Array((text + "\n").utf8))
    }
}

extension HTTPConnection {
    /// The reason why the latest input is not accepted. The connection closes after the response.
    enum Refusal: Equatable {
        case headersTooLarge
        case notHTTP
        case hostMissing
        /// HTTP/1.0 does not support `Transfer-Encoding` (RFC 9112 §6.1). A proxy may have interpreted the request
        /// differently.
        case transferEncodingUnknown
        /// The headers of trusted proxies name different clients.
        case forwardingContradictory
        case bodyTooLarge(limit: Int)
        case descriptionTooLarge(HTTPRequestHead, WHIPRequest, limit: Int)
    }
}

extension GateResponse {
    /// Returns the response to input that the connection does not accept.
    init(_ refusal: HTTPConnection.Refusal, _ configuration: ConfabConfiguration) {
        switch refusal {
        case .headersTooLarge: self = .refusal(431, "The request headers are too large. Send fewer or shorter ones.")
        case .notHTTP: self = .refusal(400, "This is not a valid HTTP/1.1 request.")
        case .hostMissing: self = .refusal(400, "Send exactly one Host header.")
        case .transferEncodingUnknown:
            self = .refusal(400, "HTTP/1.0 does not support Transfer-Encoding. Use HTTP/1.1 or Content-Length.")
        case .forwardingContradictory:
            self = .refusal(
                400,
                "The headers Forwarded and X-Forwarded-For name different clients. If you sent one of them, omit it. "
                    + "If you operate this server, let its proxy remove the one that it does not set.")
        case .bodyTooLarge(let limit):
            self = .refusal(
                413, "message_too_large: The request body is too large. Send at most \(limit) bytes.")
        case .descriptionTooLarge(let head, let request, let limit):
            self = WHIPEndpoint.tooLarge(head, request, limit: limit, configuration)
        }
    }
}
