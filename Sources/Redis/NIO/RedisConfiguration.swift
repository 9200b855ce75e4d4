import NIOSSL

/// Which Redis to use, and how.
package struct RedisConfiguration: Sendable {
    /// Where the primary is.
    package enum Location: Sendable {
        /// At one of these addresses. The others are replicas, or do not answer. Each URL has its own credentials.
        case servers([RedisURL])
        /// Where the Sentinels at these addresses say. Each URL has its own credentials.
        ///
        /// - Parameters:
        ///   - primaryName: the name under which the Sentinels monitor the primary.
        ///   - credentials: the user of the primary and its replicas.
        ///   - isSecure: whether connections to the primary use TLS.
        case sentinels([RedisURL], primaryName: String, credentials: RedisCredentials?, isSecure: Bool)
    }

    /// How the primary is found.
    package var location: Location
    /// How certificates of servers are verified, and the client's own certificate.
    package var tls: TLSConfiguration = {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        return tls
    }()
    /// The connection's limits, without credentials.
    package var connection = RedisConnection.Settings()

    package init(_ location: Location) { self.location = location }

    /// The URLs at which connections begin.
    var urls: [RedisURL] {
        switch location {
        case .servers(let urls), .sentinels(let urls, _, _, _): urls
        }
    }

    /// Whether any connection can use TLS.
    var needsTLS: Bool {
        if case .sentinels(_, _, _, true) = location { return true }
        return urls.contains { $0.endpoint.isSecure }
    }

    func settings(for role: RedisGreeting.Role) -> RedisConnection.Settings {
        var settings = connection
        // A test can connect to a Sentinel as to a server.
        if role == .sentinel { settings.role = .sentinel }
        switch (location, role) {
        case (.servers(let urls), _), (.sentinels(let urls, _, _, _), .sentinel):
            let pairs = urls.compactMap { url in url.credentials.map { (url.endpoint, $0) } }
            settings.credentials = .servers(Dictionary(pairs, uniquingKeysWith: { first, _ in first }))
        case (.sentinels(_, _, let credentials, _), .primary):
            settings.credentials = credentials.map(RedisCredentials.Assignment.reported) ?? .noServer
        }
        return settings
    }

    /// What an operator should know before this configuration is used. Log each sentence as a warning.
    package var warnings: [String] {
        let exposed = urls.filter { $0.credentials != nil && !$0.endpoint.isSecure && !$0.endpoint.isLoopback }
        var found = exposed.map { url in
            "The password for \(url) is sent without encryption. Use rediss:// unless the network is private."
        }
        if case .sentinels(let urls, let name, .some, false) = location,
            !urls.allSatisfy(\.endpoint.isLoopback)
        {
            found.append(
                "The password for the primary \(name) is sent without encryption. Use TLS for it "
                    + "unless the network is private.")
        }
        return found
    }
}
