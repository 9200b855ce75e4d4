/// The path in `publicURL`, such as `/video`. A proxy makes this server available below that path, beside other pages
/// of the same site.
///
/// A proxy may pass the path on or remove it, so the server accepts requests with and without it. Pages use relative
/// references, and clients append the paths in messages to the server's URL (`protocol/README.md` §1), so neither
/// pages nor messages contain the base path. The `Location` header does contain it, because clients resolve that
/// header against the request's URL.
struct BasePath: Equatable, Sendable {
    /// The base path: empty, or a path such as `/video`, which begins with a slash and does not end with one.
    let text: String

    /// The first segments of the server's own paths. A base path must not begin with one of them: the server could not tell
    /// whether a proxy has removed it.
    static let reserved: Set = [
        "app", "broadcasts", "ca.crt", "check", "favicon.ico", "favicon.svg", "health", "lan", "lib", "live", "nearby",
        "ready", "room", "rooms", "socket.io", "strangers", "sw.js", "try", "v1", "v2", "whep", "whip", "xirsys",
    ]

    init(_ configuration: ConfabConfiguration) {
        text = configuration.publicURL.map(WebURLText.path) ?? ""
    }

    /// The first segment of the base path if it is reserved; otherwise nil.
    var reservedSegment: String? {
        text.split(separator: "/").first.map(String.init).flatMap { Self.reserved.contains($0) ? $0 : nil }
    }

    /// Returns the target of a request without the base path, or unchanged if it is not below the base path.
    ///
    /// The base path alone, without a slash at its end, is returned unchanged. The server redirects it, because a
    /// browser would resolve the page's relative references against the wrong directory.
    func removed(from target: String) -> String {
        guard !text.isEmpty, target.utf8.starts(with: text.utf8) else { return target }
        let rest = target.utf8.dropFirst(text.utf8.count)
        return rest.first == UInt8(ascii: "/") ? String(Substring(rest)) : target
    }

    /// The base path with a slash at its end, to which requests for the base path without that slash are redirected.
    /// Nil if there is no base path.
    var redirection: String? { text.isEmpty ? nil : text + "/" }
}
