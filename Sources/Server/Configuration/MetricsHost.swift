extension ConfabConfiguration.Metrics {
    /// True if the request's `Host` is an IP address, `localhost` or ``host``.
    ///
    /// A web page can point a host name that it controls at 127.0.0.1 and then read the responses of a server there
    /// (DNS rebinding). Its requests contain that name.
    ///
    /// - Parameter authority: host and port. Nil if there is none, as in HTTP/1.0; browsers always send it.
    public func allows(host authority: String?) -> Bool {
        guard let authority else { return true }
        let name: Substring
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return false }
            name = authority[..<end].dropFirst()
            return IPAddress(name) != nil
        }
        name = authority.prefix { $0 != ":" }
        return IPAddress(name) != nil || ["localhost", host.lowercased()].contains(name.lowercased())
    }
}
