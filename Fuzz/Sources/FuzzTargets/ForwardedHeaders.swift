import Server

extension FuzzTarget {
    /// Fuzzes forwarded headers. The input contains one header per line, as a client sends them to a trusted proxy.
    static let forwardedHeaders = FuzzTarget("forwarded-headers", dictionary: "forwarded") {
        input throws(BrokenProperty) in
        guard let proxy = IPAddress("10.0.0.1"), let client = IPAddress("203.0.113.9"),
            let block = CIDRBlock("10.0.0.0/8")
        else { return }
        let headers = headers(in: input)
        let nobody = ForwardedAddress.client(peer: proxy, headers: headers, trusted: TrustedProxies())
        try require(nobody?.address == proxy && nobody?.isSecure == nil, "the headers of an untrusted proxy are used")
        let trusted = TrustedProxies([block])
        _ = ForwardedAddress.client(peer: proxy, headers: headers, trusted: trusted)
        for added in [[xForwardedFor(client)], [forwarded(client)], [xForwardedFor(client), forwarded(client)]] {
            for joins in [true, false] {
                let passed = added.reduce(headers) { append($1, to: $0, joins: joins) }
                let seen = ForwardedAddress.client(peer: proxy, headers: passed, trusted: trusted)
                // A request whose headers contradict each other is refused.
                try require(
                    seen == nil || seen?.address == client,
                    "the client at \(client) passes for \(seen?.address.description ?? "nobody") with \(passed)")
            }
        }
    }

    private typealias Header = (name: String, value: String)

    private static func headers(in input: [UInt8]) -> [Header] {
        lines(of: input).compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 ? (name: String(parts[0]), value: String(parts[1].drop { $0 == " " })) : nil
        }
    }

    private static func xForwardedFor(_ address: IPAddress) -> Header { ("X-Forwarded-For", "\(address)") }
    private static func forwarded(_ address: IPAddress) -> Header { ("Forwarded", "for=\(address)") }

    /// Acts as a proxy: appends the address that the request came from, to the last header of that name or in a new header.
    private static func append(_ header: Header, to headers: [Header], joins: Bool) -> [Header] {
        var headers = headers
        let last = headers.lastIndex { $0.name.lowercased() == header.name.lowercased() }
        if joins, let last {
            headers[last].value += ", " + header.value
        } else {
            headers.append(header)
        }
        return headers
    }
}
