import Wire

/// The URLs of a server that listens on a host, which may be a wildcard. Nobody can open a wildcard address.
struct ServerURLs: Equatable, Sendable {
    /// How many other addresses are shown: a machine can have dozens, and the operator reads them.
    static let shownAddresses = 4

    /// Reaches the server from this machine at least.
    let main: String
    /// Reach the server at this machine's other addresses.
    let others: [String]

    /// - Parameters:
    ///   - host: the name or address that the server listens on.
    ///   - addresses: this machine's addresses except loopback, the most reachable first.
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
