import Foundation
import Testing

@testable import Server

/// Checks that the dashboard and the alerts in `deploy/` ask only for metrics that exist, and that all metrics are documented.
/// `scripts/check-metrics` checks the syntax of the rules.
@Suite("Dashboard, alerts and the table of metrics") struct MonitoringFilesTests {
    private static func text(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// Returns the names of metrics in the text, without the endings that Prometheus gives to the series of a histogram.
    private static func names(in text: String) -> Set<String> {
        let known = Set(ConfabServer.metricsHelp.keys)
        return Set(
            text.matches(of: /\b(?:confab|process)_[a-z_]+\b/).map { match in
                let name = String(match.output)
                let ending = ["_bucket", "_sum", "_count"].first { name.hasSuffix($0) } ?? ""
                let family = String(name.dropLast(ending.count))
                return known.contains(family) && family.hasSuffix("_seconds") ? family : name
            })
    }

    @Test(
        "every metric in the dashboard and the alerts exists",
        arguments: [
            ("deploy/grafana-dashboard.json", 30), ("deploy/prometheus-alerts.yml", 9),
        ])
    func exist(path: String, atLeast count: Int) throws {
        let names = Self.names(in: try Self.text(path))
        #expect(names.subtracting(ConfabServer.metricsHelp.keys).sorted() == [])
        #expect(names.count >= count, "the pattern finds the names")
        // They will be removed.
        let old = ConfabServer.metricsHelp.filter { $0.value.contains("removed") }.keys
        #expect(old.count == 7 && names.isDisjoint(with: old))
    }

    @Test("the dashboard is JSON, and each panel has an expression")
    func dashboard() throws {
        let text = try Self.text("deploy/grafana-dashboard.json")
        let board = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        let panels = try #require(board["panels"] as? [[String: Any]])
        for panel in panels where panel["type"] as? String != "row" {
            let targets = panel["targets"] as? [[String: Any]] ?? []
            #expect(!targets.isEmpty && targets.allSatisfy { $0["expr"] is String }, "\(panel["title"] ?? "")")
        }
        #expect(Set(panels.compactMap { $0["id"] as? Int }).count == panels.count)
    }

    @Test("docs/operations.md names every metric")
    func documented() throws {
        let names = Self.names(in: try Self.text("docs/operations.md"))
        let current = ConfabServer.metricsHelp.filter { !$0.value.contains("removed") }.keys
        #expect(Set(current).subtracting(names).sorted() == [])
        #expect(names.subtracting(ConfabServer.metricsHelp.keys).sorted() == [])
    }
}
