import Wire

/// The push services that this server may send to.
///
/// Endpoints are URLs from untrusted clients, and this server connects to them. It therefore allows only Apple's
/// service and the configured services of browsers, by host name (RFC 8030 §8 leaves this to the application server).
public struct PushServices: Hashable, Sendable {
    /// Lower-case host names, with a port unless the port is 443. A name that starts with `*.` matches all subdomains.
    let names: [String]
    /// Whether this server has a key for Apple's service.
    let admitsApps: Bool

    init(names: [String], admitsApps: Bool) {
        (self.names, self.admitsApps) = (names, admitsApps)
    }

    public init(_ configuration: ConfabConfiguration.Push) {
        self.init(names: configuration.services, admitsApps: configuration.apnsKey != nil)
    }

    /// Validates a client's registration.
    ///
    /// - Throws: `push_invalid` if it is malformed, `push_not_allowed` if this server may not send to the service.
    public func validate(_ registration: PushRegistration) throws(WireError) -> PushEndpoint {
        let endpoint = try PushEndpoint(registration)
        guard admits(endpoint) else {
            if case .apns = endpoint.kind {
                throw WireError(
                    .pushNotAllowed,
                    "This server is not configured for Apple's push service. Ask the operator to configure it.")
            }
            throw WireError(
                .pushNotAllowed, "This push service is not allowed on this server. Ask the operator to allow it.")
        }
        return endpoint
    }

    func admits(_ endpoint: PushEndpoint) -> Bool {
        switch endpoint.kind {
        case .apns: admitsApps
        case .web(let url, _, _): names.contains { Self.pattern($0, admits: url.service) }
        }
    }

    /// True if a configured name matches a service. Both include the port unless it is 443.
    private static func pattern(_ pattern: String, admits service: String) -> Bool {
        guard pattern.hasPrefix("*.") else { return pattern == service }
        return service.hasSuffix(pattern.dropFirst())
    }

    /// True if the text may be an entry in the configured list of push services: a host name, or `*.` and a host name.
    static func isPattern(_ text: String) -> Bool {
        let name = text.hasPrefix("*.") ? text.dropFirst(2) : text[...]
        // Validate with the parser for endpoints. A single label after "*." would allow a whole top-level domain.
        guard let url = try? WebPushURL("https://\(name)/"), url.service == name else { return false }
        return !text.hasPrefix("*.") || name.contains(".")
    }
}
