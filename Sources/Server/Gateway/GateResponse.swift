import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import Signaling
import Wire

/// A complete response of an endpoint. Its headers keep caches from storing it and browsers from guessing its type.
struct GateResponse: Equatable {
    var status: Int
    var headers: HTTPHeaders
    var body: [UInt8]

    init(status: Int, headers: HTTPHeaders = [:], type: String? = nil, body: some Sequence<UInt8> = []) {
        (self.status, self.headers, self.body) = (status, headers, Array(body))
        if let type { self.headers.add(name: "Content-Type", value: type) }
        self.headers.add(name: "Cache-Control", value: "no-store")
        self.headers.add(name: "X-Content-Type-Options", value: "nosniff")
    }

    /// Creates a plain-text response that a person can read.
    init(status: Int, text: String, retryAfter: Duration? = nil) {
        self.init(status: status, type: "text/plain; charset=utf-8", body: text.utf8)
        retry(after: retryAfter)
    }

    /// Creates an error response in JSON.
    init(_ error: WireError) {
        self.init(
            status: error.httpStatus, type: "application/json",
            body: ServerMessage.Failure(error).json + [UInt8(ascii: "\n")])
        // A 503 may mean that this server does not route media. The configuration may change, so let clients retry.
        retry(after: error.retryAfter ?? (status == 503 ? .seconds(60) : nil))
        // RFC 6750 §3.
        if status == 401 { headers.add(name: "WWW-Authenticate", value: error.challenge) }
    }

    /// Creates a response with a JSON object and a line break.
    ///
    /// - Parameter write: writes the members of the object.
    static func json(_ write: (inout JSONWriter) -> Void) -> GateResponse {
        var writer = JSONWriter(capacity: 4096)
        writer.beginObject()
        write(&writer)
        writer.endObject()
        return GateResponse(status: 200, type: "application/json", body: writer.bytes + [UInt8(ascii: "\n")])
    }

    /// Adds `Retry-After`, rounded up to seconds. Does nothing if the wait is unknown.
    mutating func retry(after wait: Duration?) {
        guard let wait else { return }
        headers.add(name: "Retry-After", value: "\(max(1, (wait.wholeMilliseconds + 999) / 1000))")
    }

    /// Converts the response to one of Hummingbird's router.
    ///
    /// - Parameter body: sent instead of the response's own body; nil to send that one.
    func routed(_ body: ResponseBody? = nil) -> Response {
        Response(
            status: HTTPResponse.Status(code: status), headers: HTTPFields(headers, splitCookie: false),
            body: body ?? ResponseBody(byteBuffer: ByteBuffer(bytes: self.body)))
    }
}

extension WireError {
    /// The error for a request without a bearer token, or with a malformed one.
    static let tokenMissing = WireError(
        .tokenMalformed, "Send a token for this session in a header: Authorization: Bearer <token>.")

    static func bodyTooLarge(limit: Int) -> WireError {
        WireError(.messageTooLarge, "The request body must not exceed \(limit) bytes.")
    }

    fileprivate var challenge: String {
        self == .tokenMissing ? "Bearer realm=\"confab\"" : "Bearer realm=\"confab\", error=\"invalid_token\""
    }

    /// The HTTP status for an error code (RFC 9110 §15, RFC 9725 §4).
    fileprivate var httpStatus: Int {
        switch code {
        case _ where code.isToken: 401
        case .malformed, .invalidName: 400
        case .notPermitted, .banned, .forbiddenOrigin: 403
        case .notFound, .sessionInvalid, .notJoined, .notMatched, .roomNotFound: 404
        case .methodNotAllowed: 405
        case .sessionRelayed, .restartPending, .roomExists, .applicationExists, .archiveConflict, .broadcastConflict:
            409
        case .preconditionFailed: 412
        case .messageTooLarge: 413
        case .contentType: 415
        // RFC 9110 §15.5.20: another server answers this. The error names it.
        case .elsewhere: 421
        case .descriptionInvalid, .dtlsFailed, .fingerprintMismatch: 422
        case .preconditionRequired: 428
        case .rateLimited, .tooManyConnections: 429
        case .internalError: 500
        case .recordingUnavailable, .broadcastUnavailable: 501
        default: 503
        }
    }
}

extension WireError.Code {
    static let methodNotAllowed: WireError.Code = "method_not_allowed"
    static let contentType: WireError.Code = "content_type"
    /// Another project has the application ID.
    static let applicationExists: WireError.Code = "application_exists"
}

extension HTTPConnection {
    /// The reason why the latest input is not accepted. The connection closes after the response.
    enum Refusal: Equatable {
        case headersTooLarge
        case notHTTP
        case hostMissing
        /// An HTTP/1.0 request has `Transfer-Encoding`, which HTTP/1.0 does not support (RFC 9112 §6.1). A proxy may
        /// have interpreted the request differently.
        case transferEncodingUnknown
        /// The headers of trusted proxies name different clients.
        case forwardingContradictory
        case bodyTooLarge(limit: Int)
        /// The body of a request by one of OpenTok's SDKs is too large.
        case operationTooLarge
        case descriptionTooLarge(HTTPRequestHead, WHIPRequest, limit: Int)
    }
}

extension HTTPConnection.Refusal {
    /// Returns the response to input that the connection does not accept.
    func response(_ configuration: ConfabConfiguration) -> GateResponse {
        switch self {
        case .headersTooLarge:
            return GateResponse(status: 431, text: "The request headers are too large. Send fewer or shorter ones.\n")
        case .notHTTP: return GateResponse(status: 400, text: "This is not a valid HTTP/1.1 request.\n")
        case .hostMissing: return GateResponse(status: 400, text: "Send exactly one Host header.\n")
        case .transferEncodingUnknown:
            return GateResponse(
                status: 400,
                text: "HTTP/1.0 does not support Transfer-Encoding. Use HTTP/1.1 or Content-Length.\n")
        case .forwardingContradictory:
            return GateResponse(
                status: 400,
                text:
                    "The headers Forwarded and X-Forwarded-For name different clients. If you sent one of them, omit it. "
                    + "If you operate this server, let its proxy remove the one that it does not set.\n")
        case .bodyTooLarge(let limit):
            return GateResponse(
                status: 413,
                text: "message_too_large: The request body is too large. Send at most \(limit) bytes.\n")
        case .operationTooLarge:
            return OpenTokResponse.Refusals.withMessage.response(
                to: .bodyTooLarge(limit: OpenTokEndpoint.maxBodySize))
        case .descriptionTooLarge(let head, let request, let limit):
            var response = GateResponse(
                WireError(.messageTooLarge, "The request body is too large. Send at most \(limit) bytes."))
            EndpointLayers.whip(request).share(&response, with: head.headers, head.method, configuration)
            return response
        }
    }
}
