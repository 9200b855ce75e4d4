import Wire

/// The URLs of a server that listens on a host. If the host is a wildcard, which no client can open, the URLs contain
/// the loopback address and this machine's other addresses instead.
struct ServerURLs: Equatable, Sendable {
    /// Maximum number of other addresses that are shown. A machine can have dozens, too many for the operator to
    /// read.
    static let shownAddresses = 4

    /// The URL that reaches the server at least from this machine.
    let main: String
    /// The URLs that reach the server at this machine's other addresses; empty unless the host is a wildcard.
    let others: [String]

    /// Determines the URLs for a server that listens on `host`.
    ///
    /// - Parameters:
    ///   - host: the name or address that the server listens on.
    ///   - addresses: this machine's addresses except loopback, the most likely reachable first.
    init(host: String, port: Int, isSecure: Bool, addresses: [IPAddress] = []) {
        func url(_ host: String) -> String {
            "\(isSecure ? "https" : "http")://\(URLAuthority(host: host, port: port))"
        }
        guard let wildcard = IPAddress(host), wildcard.isUnspecified else {
            (main, others) = (url(host), [])
            return
        }
        main = url(wildcard.isIPv4 ? "127.0.0.1" : "::1")
        // An IPv6 wildcard accepts IPv4 too.
        let reached = addresses.filter { !wildcard.isIPv4 || $0.isIPv4 }.prefix(Self.shownAddresses).map(\.description)
        others = ((wildcard.isIPv4 ? [] : ["127.0.0.1"]) + reached).map(url)
    }
}
