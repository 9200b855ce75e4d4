/// The response from a push service or a webhook.
struct PushResponse: Equatable, Sendable {
    var status: Int
    var retryAfter: Duration?
    /// The start of the response body, at most as many bytes as `PushConnections.Settings.maxBodySize`.
    var body: [UInt8] = []
    /// The headers, with names in lower case, if the request has `keepsHeaders`.
    var headers: [String: String] = [:]

    /// The default maximum number of body bytes to read. Push services describe errors in fewer bytes.
    static let maxBodySize = 4096
    /// Maximum accepted value of Retry-After, in seconds. No notice lives longer.
    private static let maxRetryAfter = 86400

    /// - Parameter retryAfter: the header value. Only a number of seconds is parsed (RFC 9110 §10.2.3), because push services
    ///   do not send dates.
    init(status: Int, retryAfter: String?, body: [UInt8] = []) {
        (self.status, self.body) = (status, body)
        if let text = retryAfter, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int(text) {
            self.retryAfter = .seconds(min(seconds, Self.maxRetryAfter))
        }
    }
}
