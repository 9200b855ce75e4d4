import Foundation

/// The address of a server with its credentials, from a URL such as `rediss://user:password@redis.example:6380`.
///
/// `rediss` is TLS. Without a port it is 6379. Reserved characters in the user's name and the password are
/// percent-encoded. Without a user's name, the password is that of the user `default`. Other databases than 0 are refused,
/// because Redis Sentinel and Confab's keys do not need them.
package struct RedisURL: Hashable, Sendable, CustomStringConvertible {
    /// The host, the port, and whether to use TLS.
    package var endpoint: RedisEndpoint
    /// The user and the password; nil if the URL has none.
    package var credentials: RedisCredentials?

    package init(_ endpoint: RedisEndpoint, credentials: RedisCredentials? = nil) {
        (self.endpoint, self.credentials) = (endpoint, credentials)
    }

    /// - Throws: ``RedisError/Code/invalidConfiguration``. The message does not repeat the URL, which can contain a password.
    package init(_ text: String) throws(RedisError) {
        guard let url = URLComponents(string: text), let scheme = url.scheme?.lowercased(),
            ["redis", "rediss"].contains(scheme)
        else { throw Self.invalid("It must look like redis://host:6379 or rediss://user:password@host:6379.") }
        guard var host = url.host, !host.isEmpty else { throw Self.invalid("It has no host.") }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        let port = url.port ?? 6379
        guard (1...65_535).contains(port) else { throw Self.invalid("Its port is not between 1 and 65535.") }
        guard ["", "/", "/0"].contains(url.path), url.query == nil, url.fragment == nil else {
            throw Self.invalid("It must end after the port. Only database 0 is supported.")
        }
        self.init(RedisEndpoint(host: host, port: port, isSecure: scheme == "rediss"))
        switch (url.user ?? "", url.password ?? "") {
        case ("", ""): break
        case (_, ""): throw Self.invalid("It has a user without a password.")
        case ("", let password): credentials = RedisCredentials(password: password)
        case (let user, let password): credentials = RedisCredentials(user: user, password: password)
        }
    }

    private static func invalid(_ reason: String) -> RedisError {
        RedisError(.invalidConfiguration, "This is not a URL of Redis. \(reason)")
    }

    /// The URL without the credentials.
    package var description: String { endpoint.description }
}
