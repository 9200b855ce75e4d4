import Crypto
import Wire

/// The signature of a request to a webhook: HMAC-SHA256 of the time in seconds, a dot and the body, keyed with the
/// project's webhook secret (docs/webhooks.md). The receiver rejects a request whose time is old, so that nobody who
/// captured it can replay it later.
enum WebhookSignature {
    static let header = "x-confab-signature"

    static func value(_ body: [UInt8], secret: String, at now: Timestamp) -> String {
        let time = String(now.seconds)
        let code = HMAC<SHA256>.authenticationCode(
            for: Array("\(time).".utf8) + body, using: SymmetricKey(data: Array(secret.utf8)))
        return "t=\(time),v1=\(hex(code))"
    }

    static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

extension PushRequest {
    /// Returns the request that delivers an event. Each attempt is signed with its own time.
    static func webhook(_ message: WebhookMessage, to target: WebhookTarget, at now: Timestamp) -> PushRequest {
        PushRequest(
            host: target.url.host, port: target.url.port, path: target.url.path,
            headers: [
                (name: "content-type", value: "application/json"), ("user-agent", "Confab/\(OperatingMetrics.version)"),
                (WebhookSignature.header, WebhookSignature.value(message.body, secret: target.secret, at: now)),
                ("x-confab-delivery", WebhookSignature.hex(message.delivery)),
            ],
            body: message.body, isSecure: target.url.isSecure)
    }
}
