import Wire

/// Which services may be sent to. Endpoints are URLs that strangers give us to connect to, so only the services of
/// browsers, by name, and Apple's are admitted (RFC 8030 §8 leaves this to whoever sends).
public struct PushServices: Hashable, Sendable {
    /// Lower-case host names; one that begins with `*.` stands for everything below it. A port follows where it is not
    /// 443.
    let names: [String]
    /// Whether this server can sign for Apple's service.
    let admitsApps: Bool

    init(names: [String], admitsApps: Bool) {
        (self.names, self.admitsApps) = (names, admitsApps)
    }

    public init(_ configuration: ConfabConfiguration.Push) {
        self.init(names: configuration.services, admitsApps: configuration.apnsKey != nil)
    }

    /// What a client may be woken at.
    ///
    /// - Throws: `push_invalid` when it is not an endpoint at all, `push_not_allowed` when this server sends nothing
    ///   there.
    public func validate(_ registration: PushRegistration) throws(WireError) -> PushEndpoint {
        let endpoint = try PushEndpoint(registration)
        guard admits(endpoint) else {
            if case .apns = endpoint.kind {
                throw WireError(.pushNotAllowed, "This server has no key for Apple's push service.")
            }
            throw WireError(.pushNotAllowed, "This server does not send to that push service.")
        }
        return endpoint
    }

    func admits(_ endpoint: PushEndpoint) -> Bool {
        switch endpoint.kind {
        case .apns: admitsApps
        case .web(let url, _, _): names.contains { Self.pattern($0, admits: url.service) }
        }
    }

    /// Whether a name of the configuration stands for this host, both with the port that is not 443.
    private static func pattern(_ pattern: String, admits service: String) -> Bool {
        guard pattern.hasPrefix("*.") else { return pattern == service }
        return service.hasSuffix(pattern.dropFirst())
    }

    /// Whether the configuration may name this.
    static func isPattern(_ text: String) -> Bool {
        let name = text.hasPrefix("*.") ? text.dropFirst(2) : text[...]
        // The reader of endpoints is the judge; a lone label below "*." would admit a whole top-level domain.
        guard let url = try? WebPushURL("https://\(name)/"), url.service == name else { return false }
        return !text.hasPrefix("*.") || name.contains(".")
    }
}
