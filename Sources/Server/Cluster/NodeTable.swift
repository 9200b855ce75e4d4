public import Wire

/// The nodes of a cluster as a table, from the response to `GET /v1/nodes`. Used by `confab node`.
public struct NodeTable: Sendable {
    /// How far a node is with what was requested of it.
    public enum Progress: Hashable, Sendable {
        /// It has not carried it out yet.
        case pending
        /// It has. The text says what it does now.
        case done(String)
        /// Its life is over, or another one has begun.
        case ended
    }

    /// After this time (milliseconds) without an answer from PostgreSQL, the node that was asked may know too little.
    private static let longestSilence: Int64 = 3000

    private let asked: String
    private let seenMsAgo: Int64?
    private let nodes: [JSONObject]

    /// - Parameter response: the JSON object in the response.
    /// - Throws: `malformed` if that is not a list of nodes.
    public init(_ response: JSONObject) throws(WireError) {
        guard case .string(let asked)? = response["asked"], case .array(let values)? = response["nodes"] else {
            throw WireError(.malformed, "The response has no nodes.")
        }
        self.asked = asked
        seenMsAgo = if case .integer(let age)? = response["seenMsAgo"] { age } else { nil }
        nodes = values.compactMap { if case .object(let node) = $0 { node } else { nil } }
    }

    /// The lines of the table: its head, one for each node, and what the node that was asked relies on.
    public var lines: [String] {
        // Without cluster.relays, no node has them.
        let hasRelays = nodes.contains { $0["relays"] != nil }
        var head = ["NODE", "STATE", "VERSION", "LIFE", "LEASE", "SOCKETS", "LOAD", "PLACES"]
        if hasRelays { head.append("RELAYS") }
        head += ["ADDRESS", "URL"]
        let rows = [head] + nodes.map { Self.row($0, hasRelays: hasRelays) }
        let widths = head.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { Self.line($0, widths) } + [source]
    }

    /// Returns how far a node is with a request.
    ///
    /// - Parameters:
    ///   - response: the response to the request, which names the node and its life.
    ///   - isDraining: whether it was asked to drain, or to serve.
    public func progress(of response: JSONObject, isDraining: Bool) -> Progress {
        guard let node = nodes.first(where: { $0["node"] == response["node"] }), node["life"] == response["life"],
            case .string(let state)? = node["state"], state != "fenced"
        else { return .ended }
        let isOut = Self.showsService(state) ? state != "serving" : node["outOfService"] == .bool(true)
        guard node["requested"] == nil, isOut == isDraining else { return .pending }
        return .done(Self.summary(of: node))
    }

    /// Describes a node in one line, such as `n2  draining (1742 s left), 57 sockets`.
    public static func summary(of node: JSONObject) -> String {
        let sockets = text(node["sockets"]).map { ", \($0) sockets" } ?? ""
        return "\(text(node["node"]) ?? "-")  \(state(of: node))\(sockets)"
    }

    // MARK: Parts

    /// Whether the state says if the node is in service. Each other one, such as that of a node that waits for PostgreSQL, hides it.
    private static func showsService(_ state: String) -> Bool {
        ["serving", "draining", "drained", "stopping"].contains(state)
    }

    private static func line(_ row: [String], _ widths: [Int]) -> String {
        var line = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
        while line.last == " " { line.removeLast() }
        return line
    }

    private static func row(_ node: JSONObject, hasRelays: Bool) -> [String] {
        let lease = milliseconds(node["leaseMs"]).map { "\($0 / 1000).\($0 % 1000 / 100) s" }
        var load: String?
        if case .number(let share)? = node["load"], (0...1).contains(share) {
            load = "\(Int((share * 100).rounded())) %"
        }
        if case .integer(let share)? = node["load"], (0...1).contains(share) { load = "\(share * 100) %" }
        var cells: [String?] = [
            text(node["node"]), state(of: node), text(node["version"]), text(node["life"]), lease,
            text(node["sockets"]), load, text(node["places"]),
        ]
        if hasRelays { cells.append(relays(of: node)) }
        cells += [text(node["address"]), text(node["url"])]
        return cells.map { cell in
            guard let cell, !cell.isEmpty else { return "-" }
            return cell
        }
    }

    private static func state(of node: JSONObject) -> String {
        var state = text(node["state"]) ?? "-"
        let isHidden = !showsService(state)
        if let heir = text(node["fencedBy"]) { state += " by \(heir)" }
        if let left = milliseconds(node["disconnectsInMs"]) {
            state += " (\(left / 1000 + 1) s left)"
        } else if isHidden, node["outOfService"] == .bool(true) {
            state += " (out of service)"
        }
        switch text(node["requested"]) {
        case "draining"?: state += " (drain requested)"
        case "serving"?: state += " (serve requested)"
        default: break
        }
        return state
    }

    /// How many of the relays to a node are connected, such as `1/2 (unreachable)`. Nil if that is not known.
    private static func relays(of node: JSONObject) -> String? {
        guard case .object(let relays)? = node["relays"], case .integer(let connected)? = relays["connected"],
            case .integer(let connecting)? = relays["connecting"], connected >= 0, connecting >= 0
        else { return nil }
        let (count, overflow) = connected.addingReportingOverflow(connecting)
        guard !overflow else { return nil }
        if let fault = text(relays["fault"]) { return "\(connected)/\(count) (\(fault))" }
        if case .integer(let thinned)? = relays["thinned"], thinned > 0 {
            return "\(connected)/\(count) (loses packets)"
        }
        return "\(connected)/\(count)"
    }

    /// What the table relies on, as a sentence.
    private var source: String {
        guard let seenMsAgo else { return "\(asked) was asked, and has not reached PostgreSQL yet." }
        guard seenMsAgo > Self.longestSilence else { return "\(asked) was asked." }
        return "\(asked) was asked, and has not reached PostgreSQL for \(seenMsAgo / 1000) s. Other nodes may have "
            + "changed since. Ask another one with --server URL."
    }

    private static func text(_ value: JSONValue?) -> String? {
        switch value {
        case .string(let text)?: text
        case .integer(let number)?: "\(number)"
        default: nil
        }
    }

    /// A number of milliseconds that is not negative.
    private static func milliseconds(_ value: JSONValue?) -> Int64? {
        guard case .integer(let number)? = value, (0...Int64.max - 1).contains(number) else { return nil }
        return number
    }
}
