import Wire

/// The projects' webhooks.
public protocol WebhookTargets: Sendable {
    /// Returns the webhooks of all projects that have one, keyed by API key.
    func webhooks() async throws -> [String: WebhookTarget]
    /// Returns the webhook of a project; nil if it has none.
    func webhook(of project: String) async throws -> WebhookTarget?
}

/// The webhook of a project: the URL at which the project's application server is notified of events, and the secret
/// that signs the requests.
public struct WebhookTarget: Hashable, Sendable {
    /// Minimum length of a secret in bytes.
    public static let shortestSecret = 32

    let url: WebhookURL
    let secret: String

    /// - Throws: ``InvalidWebhook`` if the URL is malformed or never allowed, or the secret is too short.
    public init(url: String, secret: String) throws(InvalidWebhook) {
        self.url = try WebhookURL(url)
        guard secret.utf8.count >= Self.shortestSecret else {
            throw InvalidWebhook(
                "The secret of a webhook must have at least \(Self.shortestSecret) bytes. Use a random one.")
        }
        self.secret = secret
    }
}

extension WebhookTarget: CustomStringConvertible, CustomReflectable {
    /// Omits the secret and the path of the URL, so that they are not printed by accident.
    public var description: String { url.service }
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Why a URL or a secret cannot be used for a webhook.
public struct InvalidWebhook: Error, Equatable, CustomStringConvertible {
    /// A sentence for the person who sets the webhook.
    public let description: String

    init(_ description: String) { self.description = description }
}

/// The URL of a webhook. The server connects to it, so parsing is strict: it accepts only URLs that all parsers interpret in
/// the same way.
struct WebhookURL: Hashable, Sendable {
    static let maxSize = 2048

    let isSecure: Bool
    /// A host name in lower case, or the canonical text of an IP address.
    let host: String
    let port: Int
    /// The path of the URL, including the query.
    let path: String

    /// Whether the host is an address that is not globally reachable. A host name may still resolve to one.
    var isPrivate: Bool { IPAddress(host).map { !PublicAddresses.contain($0) } ?? false }

    /// The scheme, the host, and the port unless it is the default. Contains nothing confidential.
    var service: String {
        let isDefault = port == (isSecure ? WebPushURL.defaultPort : Self.plainPort)
        return "\(isSecure ? "https" : "http")://\(URLAuthority(host: host, port: isDefault ? nil : port))"
    }

    private static let plainPort = 80

    init(_ text: String) throws(InvalidWebhook) {
        guard text.utf8.count <= Self.maxSize, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw InvalidWebhook("The URL of a webhook has at most \(Self.maxSize) characters, all of them ASCII.")
        }
        let scheme = text.prefix { $0 != ":" }.lowercased()
        guard scheme == "https" || scheme == "http", text.dropFirst(scheme.count).hasPrefix("://") else {
            throw InvalidWebhook("The URL of a webhook must start with https:// or http://.")
        }
        isSecure = scheme == "https"
        let rest = text.dropFirst(scheme.count + 3)
        let authority = rest.prefix { !"/?#\\".contains($0) }
        let path = rest[authority.endIndex...]
        guard !authority.contains("@") else {
            throw InvalidWebhook(
                "The URL of a webhook must not contain a user name. Check the signature of the requests instead.")
        }
        guard let (host, port) = Self.split(authority) else {
            throw InvalidWebhook(
                "The host in the URL of a webhook must be a host name, an IPv4 address with four numbers, or an IPv6 "
                    + "address in brackets.")
        }
        guard port.isEmpty || WebPushURL.number(port) != nil else {
            throw InvalidWebhook("The port in the URL of a webhook must be a number from 1 to 65535.")
        }
        self.host = host
        self.port = WebPushURL.number(port) ?? (isSecure ? WebPushURL.defaultPort : Self.plainPort)
        self.path = path.hasPrefix("/") ? String(path) : "/" + path
        guard WebPushURL.isPath(self.path) else {
            throw InvalidWebhook("The path in the URL of a webhook is malformed. It has no fragment (#).")
        }
    }

    /// Splits the authority of a URL into its host, in canonical form, and its port with the colon. Returns nil if the host
    /// is neither a host name nor an address.
    private static func split(_ authority: Substring) -> (host: String, port: Substring)? {
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            let inner = authority[..<end].dropFirst()
            guard !inner.contains("%"), inner.contains(":"), let address = IPAddress(inner) else { return nil }
            let port = authority[end...].dropFirst()
            return port.isEmpty || port.hasPrefix(":") ? (address.description, port) : nil
        }
        let name = authority.prefix { $0 != ":" }.lowercased()
        let port = authority.dropFirst(name.utf8.count)
        if let address = IPAddress(name) { return (address.description, port) }
        return WebPushURL.isHostName(name) ? (name, port) : nil
    }
}
