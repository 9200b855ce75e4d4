/// What a push service answered.
struct PushAnswer: Equatable, Sendable {
    var status: Int
    var retryAfter: Duration?
    /// At most ``largestBody`` of it.
    var body: [UInt8] = []

    /// Reasons are short; what is beyond is not read, however long a service goes on.
    static let largestBody = 4096
    /// Longer waits than any notice lives need no telling apart.
    private static let longestWait = 86400

    /// - Parameter retryAfter: the header as it came. Of RFC 9110 §10.2.3 only the number of seconds: push services give no
    ///   date.
    init(status: Int, retryAfter: String?, body: [UInt8] = []) {
        (self.status, self.body) = (status, body)
        if let text = retryAfter, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let seconds = Int(text) {
            self.retryAfter = .seconds(min(seconds, Self.longestWait))
        }
    }
}
