/// The client's address and scheme, taken from forwarding headers if the request came through trusted proxies.
///
/// Any client can send `X-Forwarded-For`, so the header counts only if the peer is a trusted proxy. Each trusted proxy
/// appends the address it saw. The first untrusted address from the right is therefore the client, and everything to the left
/// of it was written by that client.
public struct ForwardedAddress: Equatable, Sendable {
    /// The address that limits, bans and logs use.
    public var address: IPAddress
    /// Whether the client connected over HTTPS; nil if no trusted proxy reported it.
    public var isSecure: Bool?

    /// Maximum number of hops to consider. No real chain of proxies is longer.
    static let maxHops = 32

    /// Resolves the client's address and scheme.
    ///
    /// If both `X-Forwarded-For` and `Forwarded` (RFC 7239) name an address, they must agree. Most proxies write one of
    /// them and pass the other through as the client sent it, and there is no way to tell which. Any choice would let
    /// the client decide whose limits and bans apply to it, so such a request is refused.
    ///
    /// Other headers are ignored: `X-Real-IP`, which many proxies pass through, and `X-Forwarded-Host` and
    /// `X-Forwarded-Port`, because URLs are built from `publicURL` and `Host`.
    ///
    /// - Parameters:
    ///   - peer: the remote address of the socket.
    ///   - headers: the headers in the order received, for example `HTTPHeaders`. Repeated names are read as one list.
    /// - Returns: the first untrusted address from the right, or the leftmost address if all are trusted. The peer's
    ///   address if the peer is not trusted, or if there are no forwarding headers. If a proxy wrote something that is
    ///   not an address (`unknown`, an obfuscated name, or garbage), returns that proxy's address. Nil if the headers
    ///   contradict each other.
    public static func client(
        peer: IPAddress, headers: some Sequence<(name: String, value: String)>, trusted: TrustedProxies
    ) -> ForwardedAddress? {
        guard trusted.contains(peer) else { return ForwardedAddress(address: peer) }
        var lists: [String: [String]] = [:]
        for (name, value) in headers {
            let name = name.lowercased()
            if names.contains(name) { lists[name, default: []] += elements(value, separator: ",") }
        }
        let standard = (lists["forwarded"] ?? []).map(parameters)
        let fromList = lists["x-forwarded-for"].map { walk($0.map(node), peer: peer, trusted: trusted) }
        // Ignore a `Forwarded` header that reports no client, only the scheme. The client's address can then come
        // only from `X-Forwarded-For`.
        let nodes = standard.map { $0["for"] }
        let fromStandard =
            nodes.allSatisfy { $0 == nil }
            ? nil : walk(nodes.map { $0.flatMap(node) }, peer: peer, trusted: trusted)
        if let fromList, let fromStandard, fromList != fromStandard { return nil }
        let scheme = lists["x-forwarded-proto"]?.last ?? standard.last?["proto"]
        return ForwardedAddress(address: fromList ?? fromStandard ?? peer, isSecure: scheme.flatMap(isSecure))
    }

    private static let names: Set = ["forwarded", "x-forwarded-for", "x-forwarded-proto"]

    /// Returns the first untrusted address from the right, or the leftmost address if all are trusted. An element that
    /// is not an address ends the search. The result is then the address to its right (for the last element, the
    /// peer), because that is the proxy that wrote the element.
    private static func walk(_ hops: [IPAddress?], peer: IPAddress, trusted: TrustedProxies) -> IPAddress {
        var client = peer
        for hop in hops.suffix(maxHops).reversed() {
            guard let hop else { break }
            client = hop
            if !trusted.contains(hop) { break }
        }
        return client
    }

    /// Splits a list at a separator, trims the elements and drops empty ones (RFC 9110 §5.6.1).
    ///
    /// Unlike the RFC, it also splits within double quotes. Otherwise, a client could send an unclosed quote that hides what
    /// the trusted proxy appended. Addresses and schemes contain no commas or semicolons, so this loses nothing.
    private static func elements(_ value: String, separator: Character) -> [String] {
        value.split(separator: separator).map { trimmed($0) }.filter { !$0.isEmpty }
    }

    /// Returns the parameters of a `Forwarded` element, with lowercased names and without quotes.
    private static func parameters(_ element: String) -> [String: String] {
        var found: [String: String] = [:]
        for pair in elements(element, separator: ";") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            found[trimmed(parts[0]).lowercased()] = unquoted(trimmed(parts[1]))
        }
        return found
    }

    /// Parses an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
    /// Returns nil for anything else.
    private static func node(_ text: String) -> IPAddress? {
        let text = unquoted(text)
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            let rest = text[text.index(after: close)...]
            guard rest.isEmpty || (rest.hasPrefix(":") && isPort(rest.dropFirst())) else { return nil }
            let inner = text[text.index(after: text.startIndex)..<close]
            return inner.contains(":") ? IPAddress(inner) : nil
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return IPAddress(text) }
        return isPort(parts[1]) ? IPAddress(parts[0]) : nil
    }

    /// Returns whether the text is a port: one to five digits, or an obfuscated name, which begins with `_` (RFC 7239
    /// §6).
    private static func isPort(_ text: Substring) -> Bool {
        if text.hasPrefix("_") { return true }
        return (1...5).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }

    private static func isSecure(_ scheme: String) -> Bool? {
        switch scheme.lowercased() {
        case "https", "wss": true
        case "http", "ws": false
        default: nil
        }
    }

    private static func unquoted(_ text: String) -> String {
        guard text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return text }
        return String(text.dropFirst().dropLast())
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        let start = text.drop(while: isBlank)
        return String(start.reversed().drop(while: isBlank).reversed())
    }
}
