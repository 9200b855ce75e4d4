import Signaling
import Wire

/// One request to a push service, ready to be sent.
struct PushRequest: Equatable, Sendable {
    var host: String
    var port = WebPushURL.defaultPort
    var path: String
    /// Names in lower case.
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    static func == (left: Self, right: Self) -> Bool {
        (left.host, left.port, left.path, left.body) == (right.host, right.port, right.path, right.body)
            && left.headers.elementsEqual(right.headers, by: ==)
    }

    subscript(name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// Why a push could not be tried; texts for the log, without secrets.
enum PushFailure: Error, Equatable, Sendable {
    case nameUnknown(String)
    /// The name leads to this machine or a network of its own.
    case addressRefused(String)
    case timedOut
    case unreachable(String)
    case cannotMake(String)
}

extension PushNotice {
    /// All that a push says. The page or app asks the server for the rest, as the person who it is.
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
    /// A push message to a browser (RFC 8030 §5).
    static func web(
        _ notice: PushNotice, to url: WebPushURL, key: [UInt8], authentication: [UInt8], authorization: String,
        now: Timestamp
    ) throws -> PushRequest {
        let body = try PushEncryption.seal(notice.payload, for: key, authentication: authentication)
        let headers = [
            (name: "authorization", value: authorization), ("content-encoding", "aes128gcm"),
            ("content-type", "application/octet-stream"), ("ttl", String(lifetime(of: notice, now: now))),
            // RFC 8030 §5.3 has "incoming phone call" for high; a missed one may wait for the device to wake.
            ("urgency", notice.kind == .missed ? "normal" : "high"),
            // A newer message of the same topic takes the place of one not delivered yet (§5.4): 32 characters at most.
            ("topic", notice.call.description),
        ]
        return PushRequest(host: url.host, port: url.port, path: url.path, headers: headers, body: body)
    }

    /// Seconds, rounded up: a message of which half a second is left is still of use.
    private static func lifetime(of notice: PushNotice, now: Timestamp) -> Int64 {
        let left = (notice.expires - now).wholeMilliseconds
        return left <= 0 ? 0 : left / 1000 + (left % 1000 == 0 ? 0 : 1)
    }
}

/// Apple's service, as far as a call needs it. The facts and where they are from: docs/protocols/push.md.
enum APNS {
    static let host = "api.push.apple.com"
    static let sandboxHost = "api.sandbox.push.apple.com"
    /// For pushes of the type `voip`; others have 4096.
    static let largestPayload = 5120

    /// Apple's system ends an app that gets such a push and shows no incoming call, and in time wakes it no more. So
    /// only a call that comes is told; the app that it woke hears from the server itself how the call goes on.
    static func tells(_ kind: PushNotice.Kind) -> Bool { kind == .incoming }

    /// - Parameter server: instead of Apple's, for tests.
    static func request(
        _ notice: PushNotice, to device: String, isSandbox: Bool, bundle: String, token: String,
        server: (host: String, port: Int)?
    ) throws -> PushRequest {
        let body = notice.payload
        guard body.count <= largestPayload else { throw PushFailure.cannotMake("the payload is too long") }
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
