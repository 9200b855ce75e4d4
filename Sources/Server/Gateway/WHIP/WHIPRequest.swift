import NIOHTTP1
import Signaling
import Wire

/// What a request under `/whip/` or `/whep/` is about, read from its method and address alone.
struct WHIPRequest: Equatable, Sendable {
    enum Target: Equatable, Sendable {
        /// Where resources are made: of a session, and perhaps of a stream in it.
        case endpoint(SessionID, ResourcePurpose)
        /// One that was made, by the last part of its address.
        case resource(String)
        case nothing
    }

    enum Action: Equatable, Sendable {
        case post, patch, delete
        /// A browser asks before it does one of these across origins (CORS).
        case options
        /// RFC 9725 §4.2 leaves no other.
        case other
    }

    var target: Target
    var action: Action
    var isWHIP: Bool

    static let resources = "resources"

    /// - Returns: `nil` for what is none of WHIP's or WHEP's business.
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
        switch method {
        case .POST: action = .post
        case .PATCH: action = .patch
        case .DELETE: action = .delete
        case .OPTIONS: action = .options
        default: action = .other
        }
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

    /// What may be done there, for `Allow` and for browsers.
    var allowed: String {
        switch target {
        case .endpoint, .nothing: "POST, OPTIONS"
        case .resource: "PATCH, DELETE, OPTIONS"
        }
    }

    var isAllowed: Bool {
        switch (target, action) {
        case (.endpoint, .post), (.resource, .patch), (.resource, .delete): true
        default: false
        }
    }
}

/// What a request's head says that WHIP and WHEP go by.
extension HTTPHeaders {
    /// RFC 6750 §2.1. Nil without exactly one of the kind.
    var bearerToken: String? {
        let values = self["Authorization"]
        guard values.count == 1, let value = values.first, value.utf8.count <= Limits.token + 16 else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty || token.contains(" ") ? nil : String(token)
    }

    /// Whether the body is of this type, whatever its parameters say.
    func hasContentType(_ type: String) -> Bool {
        let values = self["Content-Type"]
        guard values.count == 1, let value = values.first, self["Content-Encoding"].isEmpty else { return false }
        let name = value.prefix { $0 != ";" }
        return name.filter { $0 != " " && $0 != "\t" }.lowercased() == type
    }

    /// RFC 9110 §13.1.1. Weak tags match nothing there, so they are left out.
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
