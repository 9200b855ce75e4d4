import NIOHTTP1
import Signaling
import Wire

/// A response to a request under `/whip/` or `/whep/`, without the headers that all responses share.
struct WHIPAnswer {
    var status: Int
    var headers: HTTPHeaders = [:]
    var contentType: String?
    var body: [UInt8] = []

    init(status: Int, headers: HTTPHeaders = [:], contentType: String? = nil, body: [UInt8] = []) {
        (self.status, self.headers, self.contentType, self.body) = (status, headers, contentType, body)
    }

    /// - Parameter location: The URL of the resource that the request created or addressed.
    init(_ reply: ResourceReply, location: String) {
        switch reply {
        case .created(let sdp, let tag, let ice):
            self.init(status: 201, contentType: WHIPBody.offerType, body: Array(sdp.utf8))
            headers.add(name: "Location", value: location)
            headers.add(name: "ETag", value: "\"\(tag)\"")
            for link in ice.servers.flatMap(\.links) { headers.add(name: "Link", value: link) }
        case .accepted: self.init(status: 204)
        case .restarted(_, let sdp, let tag):
            guard let fragment = WHIPBody.fragment(ofAnswer: sdp) else {
                self.init(WireError(.internalError, "The server produced an invalid answer. Create a new resource."))
                return
            }
            self.init(status: 200, contentType: WHIPBody.fragmentType, body: Array(fragment.utf8))
            headers.add(name: "ETag", value: "\"\(tag)\"")
        case .deleted: self.init(status: 200)
        case .refused(_, let error): self.init(error)
        }
    }

    /// Makes an error response in JSON.
    init(_ error: WireError) { self.init(error, status: error.httpStatus) }

    init(_ error: WireError, status: Int) {
        self.init(status: status, contentType: "application/json", body: error.json)
        // 503 may mean that this server routes no media. The configuration may change, so let clients retry.
        if let wait = error.retryAfter ?? (status == 503 ? .seconds(60) : nil) {
            headers.add(name: "Retry-After", value: "\(max(1, (wait.wholeMilliseconds + 999) / 1000))")
        }
        // RFC 6750 §3.
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
        case .malformed: 400
        case .notPermitted, .banned, .forbiddenOrigin: 403
        case .notFound, .sessionInvalid, .notJoined: 404
        case .methodNotAllowed: 405
        case .sessionRelayed, .restartPending: 409
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

extension ICEServer {
    /// `Link` header values, one per URL (RFC 9725 §4.6).
    fileprivate var links: [String] {
        (urls ?? []).map { url in
            var link = "<\(url)>; rel=\"ice-server\""
            if let username, let credential {
                link += "; username=\(Self.quoted(username)); credential=\(Self.quoted(credential))"
                link += "; credential-type=\"password\""
            }
            return link
        }
    }

    /// Returns a quoted string (RFC 9110 §5.6.4). A TURN password may contain any character.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text.unicodeScalars where character.value >= 0x20 && character.value != 0x7F {
            if character == "\"" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}
