/// The address of a server.
package struct RedisEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name or an address. An IPv6 address has no brackets.
    package var host: String
    /// The TCP port.
    package var port: Int
    /// Whether the connection uses TLS.
    package var isSecure: Bool

    package init(host: String, port: Int, isSecure: Bool = false) {
        (self.host, self.port, self.isSecure) = (host, port, isSecure)
    }

    /// The address as a URL, without credentials.
    /// Whether nobody but this machine sees the connection's bytes.
    package var isLoopback: Bool { host == "localhost" || host == "::1" || host.hasPrefix("127.") }

    package var description: String {
        "\(isSecure ? "rediss" : "redis")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }
}

/// A user of Redis and the password. Neither its description nor its mirror shows the password, so that no log does.
package struct RedisCredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The user's name. `default` is the user of servers that have only a password.
    package var user: String
    /// The secret. Send it only to the server.
    package var password: String

    package init(user: String = "default", password: String) { (self.user, self.password) = (user, password) }

    package var description: String { "\(user), with a password" }
    /// Shows only the user, also to `dump`.
    package var customMirror: Mirror { Mirror(self, children: ["user": user]) }

    /// Which servers get which credentials. A password is never sent to a server for which it was not configured.
    package enum Assignment: Hashable, Sendable {
        /// No server gets a password.
        case noServer
        /// Each server gets its own. Other servers get none.
        case servers([RedisEndpoint: RedisCredentials])
        /// Each server that the Sentinels report gets these.
        case reported(RedisCredentials)

        /// The credentials for a server; nil if it gets none.
        func of(_ endpoint: RedisEndpoint) -> RedisCredentials? {
            switch self {
            case .noServer: nil
            case .servers(let credentials): credentials[endpoint]
            case .reported(let credentials): credentials
            }
        }
    }
}

/// A server to which the client is connected.
package struct RedisServer: Hashable, Sendable {
    /// The number of the connection, counted from 1. Each connection has another one, also to the same server.
    package var connection: UInt64
    /// Where the server is.
    package var endpoint: RedisEndpoint
    /// The version that the server reports, such as `7.0.15`. At most 32 printable characters of ASCII.
    package var version: String
}

/// Whether commands reach a server.
package enum RedisState: Hashable, Sendable {
    /// The first connection is being made.
    case connecting
    /// Commands are sent to this server.
    case ready(RedisServer)
    /// The connection was lost or could not be made. The client tries again.
    case disconnected(RedisError)
    /// The client was closed, and connects no more.
    case closed
}
