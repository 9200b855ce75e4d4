import Crypto
import Wire

/// The push address of one device: a browser's subscription, or an app's token for Apple's service.
///
/// A value of this type is well formed. ``PushServices`` decides whether its service is allowed, at registration and
/// again for each push, because the configuration may change in the meantime. The address is a capability: anyone who
/// knows it can send pushes to the device. It is therefore never logged, and ``description`` omits it.
public struct PushEndpoint: Hashable, Sendable {
    /// The client's `endpoint`: the subscription's URL, or the device token in lower case.
    public let address: String
    let kind: Kind

    /// The kind of service, with the data that is needed to send to it.
    enum Kind: Hashable, Sendable {
        /// The browser's public key, 65 bytes, and its authentication secret, 16 bytes (RFC 8291 §2).
        case web(WebPushURL, publicKey: [UInt8], authentication: [UInt8])
        case apns(isSandbox: Bool)
    }

    /// Parses a registration from a client or from storage. Does not check whether its service is allowed.
    ///
    /// - Throws: `push_invalid` if it is malformed, `push_not_allowed` for a URL that is never allowed.
    public init(_ registration: PushRegistration) throws(WireError) {
        switch registration.kind {
        case .web: try self.init(web: registration)
        case .apns: try self.init(apns: registration)
        }
    }

    /// The form for storage, which ``init(_:)`` parses.
    public var registration: PushRegistration {
        switch kind {
        case .web(_, let publicKey, let authentication):
            PushRegistration(
                kind: .web, endpoint: address, p256dh: Base64URL.encode(publicKey),
                auth: Base64URL.encode(authentication))
        case .apns(let isSandbox):
            PushRegistration(kind: .apns, endpoint: address, sandbox: isSandbox)
        }
    }

    private init(web registration: PushRegistration) throws(WireError) {
        let url = try WebPushURL(registration.endpoint)
        guard let text = registration.p256dh, let publicKey = Base64URL.decode(orPadded: text.utf8),
            publicKey.count == 65,
            // Reject points that are not on the curve, to prevent invalid-curve attacks.
            (try? P256.KeyAgreement.PublicKey(x963Representation: publicKey)) != nil
        else {
            throw WireError(.pushInvalid, "Invalid p256dh. Send the subscription's key: 65 bytes in base64url.")
        }
        guard let text = registration.auth, let secret = Base64URL.decode(orPadded: text.utf8), secret.count == 16
        else {
            throw WireError(.pushInvalid, "Invalid auth. Send the subscription's secret: 16 bytes in base64url.")
        }
        address = registration.endpoint
        kind = .web(url, publicKey: publicKey, authentication: secret)
    }

    /// How many digits a device token may have. Tokens have 32 bytes today, but Apple asks developers not to rely on the
    /// length.
    private static let tokenDigits = 64...200

    private init(apns registration: PushRegistration) throws(WireError) {
        let token = registration.endpoint.lowercased()
        guard Self.tokenDigits.contains(token.utf8.count), token.utf8.count.isMultiple(of: 2),
            token.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else {
            throw WireError(.pushInvalid, "Invalid device token. Send 64 to 200 hexadecimal digits.")
        }
        address = token
        kind = .apns(isSandbox: registration.sandbox ?? false)
    }
}

extension PushEndpoint: CustomStringConvertible, CustomReflectable {
    public var description: String {
        switch kind {
        case .web(let url, _, _): "a browser at \(url.service)"
        case .apns(let isSandbox): isSandbox ? "an app at Apple's sandbox" : "an app at Apple"
        }
    }

    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// The URL of a subscription. It comes from an untrusted client and the server connects to it, so parsing is strict: it
/// accepts only URLs that all parsers interpret in the same way. The server then connects to the host that was
/// checked.
struct WebPushURL: Hashable, Sendable {
    /// The host name in lower case.
    let host: String
    let port: Int
    /// The path of the URL, including the query.
    let path: String

    static let defaultPort = 443

    /// The host, with the port unless it is 443.
    var service: String { URLAuthority(host: host, port: port == Self.defaultPort ? nil : port).description }
    /// The audience of the VAPID token (RFC 8292 §2).
    var origin: String { "https://" + service }

    init(_ text: String) throws(WireError) {
        let scheme = "https://"
        guard text.utf8.count <= Wire.Limits.pushEndpoint, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw WireError(.pushInvalid, "Invalid endpoint. Send the endpoint of the push subscription.")
        }
        guard text.prefix(scheme.count).lowercased() == scheme else {
            throw WireError(.pushNotAllowed, "The push endpoint must start with https://.")
        }
        let rest = text.dropFirst(scheme.count)
        let authority = rest.prefix { !"/?#\\".contains($0) }
        let path = String(rest[authority.endIndex...])
        guard !authority.contains("@") else {
            throw WireError(.pushNotAllowed, "The push endpoint must not contain a user name.")
        }
        let name = authority.prefix { $0 != ":" }.lowercased()
        let port = authority.dropFirst(name.utf8.count)
        guard Self.isHostName(name) else {
            throw WireError(.pushNotAllowed, "The push endpoint must use a host name, not an IP address.")
        }
        guard port.isEmpty || Self.number(port) != nil, Self.isPath(path) else {
            throw WireError(.pushInvalid, "Invalid endpoint. Send the endpoint of the push subscription.")
        }
        host = name
        self.port = Self.number(port) ?? Self.defaultPort
        self.path = path
    }

    static func number(_ text: Substring) -> Int? {
        let digits = text.dropFirst()
        guard text.first == ":", digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits),
            port > 0
        else { return nil }
        return Int(port)
    }

    /// True for a name of dot-separated labels of letters, digits and hyphens (RFC 1123 §2.1) whose last label is not
    /// a number. Resolvers interpret `2130706433`, `0x7f.1` and `127.1` as IP addresses.
    static func isHostName(_ text: String) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= 253, let last = labels.last, last.utf8.contains(where: { $0 >= 0x61 && $0 <= 0x7a }),
            !last.hasPrefix("0x")
        else { return false }
        return labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
                && label.utf8.allSatisfy { byte in
                    byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte)
                }
        }
    }

    /// True for a path with an optional query (RFC 3986 §3.3 and §3.4), valid percent-encoding and no fragment.
    static func isPath(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.first == UInt8(ascii: "/") else { return false }
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: continue
            case UInt8(ascii: "%"):
                guard index + 2 < bytes.count, isHex(bytes[index + 1]), isHex(bytes[index + 2]) else { return false }
            default:
                guard "-._~!$&'()*+,;=:@/?".utf8.contains(byte) else { return false }
            }
        }
        return true
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
        default: false
        }
    }
}
