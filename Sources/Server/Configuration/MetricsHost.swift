extension ConfabConfiguration.Metrics {
    /// True if the request's `Host` is an IP address, `localhost` or ``host``.
    ///
    /// A web page can point a name of its own at 127.0.0.1 and then read what a server there answers (DNS rebinding). Its
    /// requests carry that name.
    ///
    /// - Parameter authority: host and port. Nil if there is none, as in HTTP/1.0: browsers always send it.
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
