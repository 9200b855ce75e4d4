import Wire

/// A request to an ACME server. The body of a POST request has the type `application/jose+json`.
struct ACMERequest: Equatable, Sendable {
    /// The methods that ACME uses.
    enum Method: String, Sendable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
    }

    var method: Method
    /// An HTTPS URL.
    var url: String
    /// The `Accept` header; nil for none.
    var accept: String?
    /// The signed JSON of a POST request; otherwise empty.
    var body: [UInt8] = []
}

/// The response of an ACME server.
struct ACMEResponse: Equatable, Sendable {
    /// Maximum size of a body in bytes. A chain of certificates has a few kilobytes. The shell reads no more than this.
    static let maxBodySize = 128 << 10

    /// The status of HTTP.
    var status: Int
    /// The headers, with names in lower case.
    var headers: [String: String] = [:]
    /// The body, of which the shell keeps at most one byte more than ``maxBodySize``.
    var body: [UInt8] = []

    /// The body as a JSON object; nil if it is not one.
    var object: JSONObject? {
        guard body.count <= Self.maxBodySize, case .object(let object)? = try? JSONReader.parse(body)
        else { return nil }
        return object
    }

    /// The nonce for the next request (RFC 8555 §6.5.1); nil if there is none that is usable.
    var nonce: String? {
        guard let text = headers["replay-nonce"], (1...512).contains(text.utf8.count),
            Base64URL.decode(text.utf8) != nil
        else { return nil }
        return text
    }

    /// The URL in `Location`.
    func location() throws(ACMEFailure) -> String {
        guard let url = headers["location"], ACMEURL.isUsable(url) else {
            throw .badResponse("it has no usable Location")
        }
        return url
    }

    /// The time in `Retry-After`; nil if there is none. Dates are ignored, because they need the authority's clock.
    var retryAfter: Duration? {
        guard let text = headers["retry-after"], let seconds = Int64(text), seconds >= 0 else { return nil }
        return .seconds(min(seconds, Self.maxRetryAfter))
    }

    /// One week in seconds. A longer wait is probably a mistake.
    private static let maxRetryAfter: Int64 = 7 * 86400
}

/// The error document of an ACME server (RFC 7807, RFC 8555 §6.7).
struct ACMEProblem: Equatable, Sendable {
    private static let prefix = "urn:ietf:params:acme:error:"
    /// Maximum length of ``detail`` in Unicode scalars.
    private static let maxDetail = 500

    /// The type without its prefix, such as `badNonce`; empty if there is none.
    var type: String
    /// What the authority says, on one line. Empty if it says nothing.
    var detail: String
    /// The URL of a page about the problem, such as new terms of service.
    var instance: String?

    /// Reads the document, of which all members are optional.
    init(_ object: JSONObject?) {
        let type = object?.text("type") ?? ""
        self.type = type.hasPrefix(Self.prefix) ? String(type.dropFirst(Self.prefix.count).prefix(64)) : ""
        detail = Self.sentence(object?.text("detail") ?? "")
        instance = object?.text("instance").flatMap { ACMEURL.isUsable($0) ? $0 : nil }
    }

    /// Cuts a text to the maximum length, and makes control characters visible, because it is shown in a terminal.
    static func sentence(_ text: String) -> String {
        let start = text.unicodeScalars.prefix(maxDetail)
        return LogText.escaped(String(String.UnicodeScalarView(start)))
    }
}

/// The entry document of an ACME server (RFC 8555 §7.1.1).
struct ACMEDirectory: Equatable, Sendable {
    /// Where to get the first nonce.
    var newNonce: String
    /// Where to create or find the account.
    var newAccount: String
    /// Where to order certificates.
    var newOrder: String
    /// Where to change the key of the account; nil if the authority does not allow it.
    var keyChange: String?
    /// The URL of the terms of service; nil if there are none.
    var terms: String?
    /// Whether accounts must belong to an account that was made elsewhere (§7.3.4).
    var needsExternalAccount: Bool

    /// Returns nil if a URL is missing or is not usable.
    init?(_ object: JSONObject) {
        guard let newNonce = object.url("newNonce"), let newAccount = object.url("newAccount"),
            let newOrder = object.url("newOrder")
        else { return nil }
        (self.newNonce, self.newAccount, self.newOrder) = (newNonce, newAccount, newOrder)
        keyChange = object.url("keyChange")
        var meta = JSONObject()
        if case .object(let found)? = object["meta"] { meta = found }
        terms = meta.text("termsOfService").map { ACMEProblem.sentence($0) }
        needsExternalAccount = meta["externalAccountRequired"] == .bool(true)
    }
}

/// A challenge of the type `http-01` (RFC 8555 §8.3) or `tls-alpn-01` (RFC 8737), which the authority poses to verify a domain.
struct ACMEChallenge: Equatable, Sendable {
    /// The domain in lower case, which is one of those that were ordered.
    var domain: String
    /// A text from the authority. For `http-01`, the last part of the path at which it expects ``answer``.
    var token: String
    /// The key authorization. For `tls-alpn-01`, the certificate has its hash.
    var answer: String

    /// Where the authority looks for the answer to `http-01`, followed by the token.
    static let path = "/.well-known/acme-challenge/"
    /// Maximum length of a token. The RFC sets a minimum of 22 characters, and common authorities use 43.
    private static let maxToken = 256

    /// True if the token consists of characters of base64url, so that it is safe in a path.
    static func isToken(_ text: String) -> Bool {
        (1...maxToken).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

extension JSONObject {
    /// The string in this member; nil if there is none.
    func text(_ name: String) -> String? { if case .string(let text)? = self[name] { text } else { nil } }

    /// The URL in this member; nil if there is none that is usable.
    func url(_ name: String) -> String? { text(name).flatMap { ACMEURL.isUsable($0) ? $0 : nil } }

    /// The objects in the array in this member; empty if there are none.
    func objects(_ name: String) -> [JSONObject] {
        guard case .array(let elements)? = self[name] else { return [] }
        return elements.compactMap { element -> JSONObject? in
            if case .object(let object) = element { object } else { nil }
        }
    }
}
