import Foundation
import Wire

// The texts that `confab doctor` parses. The fuzzer builds this file without the rest.

/// The URL of a server in parts.
struct SiteAddress: Equatable, Sendable {
    /// The default port of HTTPS.
    static let securePort = 443

    var isSecure: Bool
    /// A name or an address, without brackets.
    var host: String
    var port: Int
    /// The path in front of the server's own paths: empty, or such as `/video`.
    var path: String

    /// Parses `http(s)://host[:port][/path]`. Returns nil for anything else.
    init?(_ url: String) {
        guard let url = WebURLText.normalized(url, allowsPath: true) else { return nil }
        isSecure = url.hasPrefix("https://")
        host = WebURLText.host(url)
        path = WebURLText.path(url)
        let authority = url.dropFirst(isSecure ? 8 : 7).prefix { $0 != "/" }
        let rest = authority.hasPrefix("[") ? authority.drop { $0 != "]" }.dropFirst() : authority.drop { $0 != ":" }
        port = rest.hasPrefix(":") ? Int(rest.dropFirst()) ?? 0 : isSecure ? Self.securePort : 80
        guard !host.isEmpty, (1...65535).contains(port) else { return nil }
    }

    private var hasDefaultPort: Bool { port == (isSecure ? Self.securePort : 80) }
    /// Host and port, as in a `Host` header.
    var authority: String { URLAuthority(host: host, port: hasDefaultPort ? nil : port).description }
    /// Host and port, for people.
    var place: String { URLAuthority(host: host, port: port).description }
    /// The origin of the server's pages.
    var origin: String { (isSecure ? "https://" : "http://") + authority }
    var url: String { origin + path }
    /// Whether only this machine can use the URL. Browsers give such pages a camera even without HTTPS.
    var isLoopback: Bool { host == "localhost" || IPAddress(host)?.isLoopback == true }
}

/// The URL of a STUN or TURN server (RFC 7064, RFC 7065).
struct RelayAddress: Equatable, Sendable {
    /// How messages reach the server.
    enum Transport: Equatable, Sendable { case udp, tcp, tls }

    var isTURN: Bool
    var host: String
    var port: Int
    var transport: Transport

    /// Parses `stun:`, `turn:` and `turns:` URLs. Returns nil for anything else.
    init?(_ url: String) {
        guard let colon = url.firstIndex(of: ":"), url.utf8.count <= 1024 else { return nil }
        let scheme = url[..<colon].lowercased()
        guard ["stun", "turn", "turns"].contains(scheme) else { return nil }
        let parts = url[url.index(after: colon)...].split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let authority = parts.first else { return nil }
        let isBracketed = authority.hasPrefix("[")
        let host = isBracketed ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        let rest = authority.dropFirst(host.count)
        isTURN = scheme != "stun"
        self.host = URLAuthority(host: host).host
        port = rest.hasPrefix(":") ? Int(rest.dropFirst()) ?? 0 : scheme == "turns" ? 5349 : 3478
        let isTCP = parts.count > 1 && parts[1].lowercased() == "transport=tcp"
        transport = scheme == "turns" ? .tls : isTCP ? .tcp : .udp
        guard !self.host.isEmpty, (1...65535).contains(port) else { return nil }
    }
}

/// The head of an HTTP/1.1 response.
struct HTTPResponseHeadText: Equatable, Sendable {
    /// The maximum length in bytes. Proxies accept 4 to 16 KiB.
    static let maxLength = 16 << 10

    var status: Int
    /// The headers, with names in lower case. Repeated ones are joined with commas.
    var headers: [String: String] = [:]
    /// Its length in bytes, with the empty line.
    var length: Int

    /// Parses the beginning of a connection. Returns nil if the head is incomplete, or is none.
    init?(_ bytes: [UInt8]) {
        let part = bytes.prefix(Self.maxLength)
        guard let end = part.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        length = end.upperBound
        let lines = String(decoding: part[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let first = lines.first?.split(separator: " ", maxSplits: 2) ?? []
        guard first.count >= 2, first[0].hasPrefix("HTTP/1."), let status = Int(first[1]), (100...599).contains(status)
        else { return nil }
        self.status = status
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { continue }
            let value = parts[1].trimmingCharacters(in: .whitespaces)
            let name = parts[0].lowercased()
            headers[name] = headers[name].map { "\($0), \(value)" } ?? value
        }
    }
}
