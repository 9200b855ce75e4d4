import NIOHTTP1
import Signaling
import Wire

/// A request under `/whip/` or `/whep/`, parsed from its method and URL.
struct WHIPRequest: Equatable, Sendable {
    /// What the URL refers to.
    enum Target: Equatable, Sendable {
        /// The URL for creating resources in a session. For WHEP, it may also name the stream to watch.
        case endpoint(SessionID, ResourcePurpose)
        /// A resource, identified by the last part of its URL. It need not exist.
        case resource(String)
        case nothing
    }

    var target: Target
    /// OPTIONS is a CORS preflight request, or a query for the accepted content types.
    var method: HTTPMethod
    var isWHIP: Bool
    /// The node of a cluster that the request names (`?at=n2`); nil if it names none.
    var node: String?
    private let uri: String

    static let resources = "resources"

    /// Returns nil if the request is for neither protocol.
    init?(method: HTTPMethod, uri: String) {
        let path = uri.prefix { $0 != "?" }
        var parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        guard path.utf8.first == UInt8(ascii: "/"), let first = parts.popFirst(), first == "whip" || first == "whep"
        else {
            return nil
        }
        if parts.last?.isEmpty ?? false { parts.removeLast() }
        isWHIP = first == "whip"
        target = Self.target(isWHIP: isWHIP, Array(parts))
        self.method = method
        node = NodeQuery.name(in: uri)
        self.uri = uri
    }

    private static func target(isWHIP: Bool, _ parts: [Substring]) -> Target {
        if parts.count == 2, parts[0] == resources { return .resource(String(parts[1])) }
        guard let first = parts.first, let session = SessionID(String(first)) else { return .nothing }
        switch parts.count {
        case 1: return .endpoint(session, isWHIP ? .publish : .watch(nil))
        case 2 where !isWHIP: return StreamID(parts[1]).map { .endpoint(session, .watch($0)) } ?? .nothing
        default: return .nothing
        }
    }

    /// The allowed methods, for the `Allow` and CORS headers.
    var allowed: String {
        switch target {
        case .endpoint, .nothing: "POST, OPTIONS"
        case .resource: "PATCH, DELETE, OPTIONS"
        }
    }

    /// The header that names the accepted content type (RFC 9725 §4.2).
    var accepted: HTTPHeaders {
        switch target {
        case .endpoint, .nothing: ["Accept-Post": WHIPBody.offerType]
        case .resource: ["Accept-Patch": WHIPBody.fragmentType]
        }
    }

    /// Returns the redirect to the node of a cluster that has the session (RFC 9725 §4.5). Nil for other errors, and if the request already
    /// names that node: the load balancer then ignores `at`, and redirects would loop.
    ///
    /// The URL is only a query. So the path stays correct below a proxy's path prefix. The origin stays the same, too: browsers drop the
    /// `Authorization` header if a redirect leads to another origin.
    func redirect(_ error: WireError) -> GateResponse? {
        guard error.code == .elsewhere, let node = error.at, node != self.node else { return nil }
        return GateResponse(status: 307, headers: ["Location": NodeQuery.reference(to: node, from: uri)])
    }

    /// Whether the target supports the method. RFC 9725 §4.2 allows no other methods.
    var isAllowed: Bool {
        switch (target, method) {
        case (.endpoint, .POST), (.resource, .PATCH), (.resource, .DELETE): true
        default: false
        }
    }
}

/// Headers that WHIP and WHEP use.
extension HTTPHeaders {
    /// The bearer token (RFC 6750 §2.1). Nil unless there is exactly one `Authorization` header and it is valid.
    var bearerToken: String? {
        let values = self["Authorization"]
        guard values.count == 1, let value = values.first, value.utf8.count <= Limits.token + 16 else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty || token.contains(" ") ? nil : String(token)
    }

    /// True if the content type matches, ignoring parameters, and there is no content encoding.
    func hasContentType(_ type: String) -> Bool {
        let values = self["Content-Type"]
        guard values.count == 1, let value = values.first, self["Content-Encoding"].isEmpty else { return false }
        let name = value.prefix { $0 != ";" }
        return name.filter { $0 != " " && $0 != "\t" }.lowercased() == type
    }

    /// The condition in `If-Match` (RFC 9110 §13.1.1). Weak tags never match in this header, so they are ignored.
    var entityCondition: ResourceRequest.Condition {
        let items = self[canonicalForm: "If-Match"]
        if items.isEmpty { return .none }
        if items.contains("*") { return .any }
        return .tags(
            items.compactMap { item in
                guard item.utf8.count >= 2, item.hasPrefix("\""), item.hasSuffix("\"") else { return nil }
                return String(item.dropFirst().dropLast())
            }
        )
    }
}
