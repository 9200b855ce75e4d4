import NIOHTTP1
import Signaling
import Wire

/// A response of an HTTP endpoint, such as WHIP, WHEP, the export of a person's data, QR codes or rooms. Headers that
/// all responses of an endpoint share are added later.
struct EndpointResponse {
    var status: Int
    var headers: HTTPHeaders = [:]
    var contentType: String?
    var body: [UInt8] = []

    init(status: Int, headers: HTTPHeaders = [:], contentType: String? = nil, body: [UInt8] = []) {
        (self.status, self.headers, self.contentType, self.body) = (status, headers, contentType, body)
    }

    /// Creates an error response in JSON.
    init(_ error: WireError) { self.init(error, status: error.httpStatus) }

    init(_ error: WireError, status: Int) {
        self.init(status: status, contentType: "application/json", body: error.json)
        // A 503 may mean that this server does not route media. The configuration may change, so let clients retry.
        if let wait = error.retryAfter ?? (status == 503 ? .seconds(60) : nil) {
            headers.add(name: "Retry-After", value: "\(max(1, (wait.wholeMilliseconds + 999) / 1000))")
        }
        // A 401 must contain a challenge (RFC 6750 §3).
        if status == 401 { headers.add(name: "WWW-Authenticate", value: error.challenge) }
    }
}

extension WireError {
    /// The request has no bearer token, or a malformed one.
    static let tokenMissing = WireError(
        .tokenMalformed, "Send a token for this session in a header: Authorization: Bearer <token>.")

    fileprivate var challenge: String {
        self == .tokenMissing ? "Bearer realm=\"confab\"" : "Bearer realm=\"confab\", error=\"invalid_token\""
    }

    /// The HTTP status for an error code (RFC 9110 §15, RFC 9725 §4).
    fileprivate var httpStatus: Int {
        switch code {
        case _ where code.isToken: 401
        case .malformed, .invalidName: 400
        case .notPermitted, .banned, .forbiddenOrigin: 403
        case .notFound, .sessionInvalid, .notJoined, .roomNotFound: 404
        case .methodNotAllowed: 405
        case .sessionRelayed, .restartPending, .roomExists: 409
        case .preconditionFailed: 412
        case .messageTooLarge: 413
        case .contentType: 415
        case .descriptionInvalid, .dtlsFailed, .fingerprintMismatch: 422
        case .preconditionRequired: 428
        case .rateLimited, .tooManyConnections: 429
        case .internalError: 500
        default: 503
        }
    }

    fileprivate var json: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.name("code")
        writer.string(code.rawValue)
        writer.name("message")
        writer.string(message)
        writer.name("retryable")
        writer.bool(retryable)
        if let retryAfter {
            writer.name("retryAfterMs")
            writer.integer(retryAfter.wholeMilliseconds)
        }
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")]
    }
}

extension WireError.Code {
    static let methodNotAllowed: WireError.Code = "method_not_allowed"
    static let contentType: WireError.Code = "content_type"
}
