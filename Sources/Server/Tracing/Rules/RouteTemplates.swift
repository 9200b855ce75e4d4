/// Finds the route of a request's path, such as `/v1/rooms/{name}`. Spans contain the route instead of the path, because paths contain
/// names of rooms, ids and tokens.
struct RouteTemplates: Sendable {
    /// A part of a route between two slashes.
    private enum Segment: Equatable, Sendable {
        case literal(Substring)
        case variable
        /// Any number of segments, at the end.
        case rest
    }

    /// The route of all paths that are not in the list.
    static let other = "/**"

    private let templates: [(segments: [Segment], text: String)]

    /// - Parameter paths: the routes as the router takes them, with `:name` or `{name}` for a variable segment and `**` for the rest. The
    ///   first one that fits counts.
    init(_ paths: [String]) {
        var seen: Set<String> = []
        templates = paths.compactMap { path in
            let texts = Self.split(path[...]).map { $0.hasPrefix(":") ? "{\($0.dropFirst())}" : String($0) }
            let text = "/" + texts.joined(separator: "/")
            guard seen.insert(text).inserted else { return nil }
            let segments: [Segment] = texts.map { text in
                if text == "**" { return .rest }
                return text.hasPrefix("{") ? .variable : .literal(text[...])
            }
            return (segments, text)
        }
    }

    /// - Parameter uri: the request's target. The query is ignored.
    func route(of uri: String) -> String {
        let segments = Self.split(uri.prefix { $0 != "?" && $0 != "#" })
        return templates.first { Self.fits($0.segments, segments) }?.text ?? Self.other
    }

    private static func split(_ path: Substring) -> [Substring] { path.split(separator: "/") }

    private static func fits(_ template: [Segment], _ segments: [Substring]) -> Bool {
        for (index, segment) in template.enumerated() {
            if segment == .rest { return true }
            guard index < segments.count else { return false }
            if case .literal(let text) = segment, text != segments[index] { return false }
        }
        return template.count == segments.count
    }
}
