import Server

extension FuzzTarget {
    /// The `Host` header of a request for metrics.
    static let metricsHosts = FuzzTarget("metrics-hosts", longestInput: 128) { input throws(BrokenProperty) in
        let host = String(decoding: input, as: UTF8.self)
        var metrics = ConfabConfiguration.Metrics()
        metrics.host = "metrics.example.org"
        // What an attacker can put there is a name in a domain of their own, with any port.
        let name = host.filter { !"[]:".contains($0) } + ".attacker.example"
        try require(!metrics.allows(host: name), "\(name) is allowed")
        try require(!metrics.allows(host: name + ":9464"), "\(name) is allowed with a port")
        guard metrics.allows(host: host), !host.hasPrefix("["), !host.contains(":") else { return }
        let isKnown = ["localhost", metrics.host].contains(host.lowercased())
        try require(isKnown || IPAddress(host) != nil, "\(host) is allowed")
    }
}
