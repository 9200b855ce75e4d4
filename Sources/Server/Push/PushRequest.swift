import Signaling
import Wire

/// An HTTP request to a push service, a webhook or a bucket.
struct PushRequest: Equatable, Sendable {
    /// An HTTP method.
    enum Method: String, Sendable {
        case get = "GET"
        case head = "HEAD"
        case post = "POST"
        case put = "PUT"
        case delete = "DELETE"
    }

    var method = Method.post
    var host: String
    var port = WebPushURL.defaultPort
    var path: String
    /// The HTTP headers, with names in lower case.
    var headers: [(name: String, value: String)]
    var body: [UInt8]
    /// Whether to use HTTPS. Only webhooks and buckets may use HTTP.
    var isSecure = true
    /// Whether the response should have its headers.
    var keepsHeaders = false

    static func == (left: Self, right: Self) -> Bool {
        (left.host, left.port, left.path, left.body, left.isSecure)
            == (right.host, right.port, right.path, right.body, right.isSecure)
            && left.method == right.method && left.keepsHeaders == right.keepsHeaders
            && left.headers.elementsEqual(right.headers, by: ==)
    }

    subscript(name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// Why a request to a push service or a webhook could not be made, or got no response. The texts are for the log and
/// contain no secrets.
enum PushFailure: Error, Equatable, Sendable {
    case nameUnknown(String)
    /// The host name resolves to a private address.
    case addressRefused(String)
    /// The lookup of the host name did not start in time, because others were running. This is no fault of the receiver.
    case lookupsBusy
    case timedOut
    case unreachable(String)
    case cannotMake(String)
}

extension PushNotice {
    /// The payload of a push. It contains only the call's ID and kind; the page or app requests the rest from the server.
    var payload: [UInt8] {
        var writer = JSONWriter(capacity: 96)
        writer.beginObject()
        writer.name("type")
        writer.string("call")
        writer.name("callId")
        writer.string(call.description)
        writer.name("kind")
        writer.string(kind.rawValue)
        writer.endObject()
        return writer.bytes
    }
}

extension PushRequest {
    /// Returns the request that sends a notice to a browser (RFC 8030 §5).
    static func web(
        _ notice: PushNotice, to url: WebPushURL, key: [UInt8], authentication: [UInt8], authorization: String,
        now: Timestamp
    ) throws -> PushRequest {
        let body = try PushEncryption.seal(notice.payload, for: key, authentication: authentication)
        let headers = [
            (name: "authorization", value: authorization), ("content-encoding", "aes128gcm"),
            ("content-type", "application/octet-stream"), ("ttl", String(lifetime(of: notice, now: now))),
            // RFC 8030 §5.3 suggests the urgency `high` for an incoming call. A missed call can wait until the device
            // is active.
            ("urgency", notice.kind == .missed ? "normal" : "high"),
            // A newer message with the same topic replaces an undelivered one (§5.4). A topic has at most 32 characters.
            ("topic", notice.call.description),
        ]
        return PushRequest(host: url.host, port: url.port, path: url.path, headers: headers, body: body)
    }

    /// Returns the remaining lifetime in seconds, 0 if the notice has expired. Rounded up: a message with half a
    /// second left is still useful.
    private static func lifetime(of notice: PushNotice, now: Timestamp) -> Int64 {
        let left = (notice.expires - now).wholeMilliseconds
        return left <= 0 ? 0 : left / 1000 + (left % 1000 == 0 ? 0 : 1)
    }
}

/// Apple's push service (APNs), reduced to what calls need. docs/protocols/push.md has the facts and their sources.
enum APNS {
    static let host = "api.push.apple.com"
    static let sandboxHost = "api.sandbox.push.apple.com"
    /// Maximum payload size in bytes for pushes of type `voip`. The limit for other types is 4096.
    static let maxPayloadSize = 5120

    /// Returns whether notices of this kind are sent to apps: only those about incoming calls are. iOS terminates an
    /// app that gets a VoIP push without showing an incoming call, and eventually stops delivering pushes to it. Once
    /// woken, the app gets the further progress of the call from the server.
    static func sends(_ kind: PushNotice.Kind) -> Bool { kind == .incoming }

    /// Returns the request that sends a notice to an app.
    ///
    /// - Parameter server: replaces Apple's server in tests; nil for Apple's.
    static func request(
        _ notice: PushNotice, to device: String, isSandbox: Bool, bundle: String, token: String,
        server: (host: String, port: Int)?
    ) throws -> PushRequest {
        let body = notice.payload
        guard body.count <= maxPayloadSize else { throw PushFailure.cannotMake("the payload is too long") }
        return PushRequest(
            host: server?.host ?? (isSandbox ? sandboxHost : host), port: server?.port ?? WebPushURL.defaultPort,
            path: "/3/device/\(device)",
            headers: [
                ("authorization", "bearer \(token)"), ("apns-topic", bundle + ".voip"), ("apns-push-type", "voip"),
                ("apns-priority", "10"), ("apns-expiration", String(max(notice.expires.seconds, 0))),
                ("content-type", "application/json"),
            ],
            body: body)
    }
}
