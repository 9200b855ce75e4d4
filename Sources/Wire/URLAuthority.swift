/// The part of a URL that names the server: host and port (RFC 3986 §3.2).
///
/// An IPv6 address needs brackets, because its colons would otherwise look like the colon before the port. Use this
/// wherever a URL or a `Host` header is made from a host and a port.
///
/// ```swift
/// "http://\(URLAuthority(host: "::1", port: 8080))"  // "http://[::1]:8080"
/// ```
public struct URLAuthority: Equatable, Sendable, CustomStringConvertible {
    /// A name or an address, without brackets.
    public let host: String
    /// The port; nil for the default port of the URL's scheme.
    public let port: Int?

    /// Creates an authority. Removes the brackets from an IPv6 address.
    ///
    /// - Parameters:
    ///   - host: a name or an address, with or without brackets.
    ///   - port: nil for the scheme's default.
    public init(host: some StringProtocol, port: Int? = nil) {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        self.host = isBracketed ? String(host.dropFirst().dropLast()) : String(host)
        self.port = port
    }

    /// The text in a URL or in a `Host` header.
    public var description: String {
        // RFC 6874 §2: the zone of a link-local address begins with an encoded percent sign.
        let zoned = host.split(separator: "%", maxSplits: 1).joined(separator: "%25")
        return (host.contains(":") ? "[\(zoned)]" : host) + (port.map { ":\($0)" } ?? "")
    }
}
