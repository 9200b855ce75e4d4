import Foundation
import Testing

/// Compares what the router sends with recordings, to notice any change of its behavior, wanted or not.
///
/// If a change is wanted, set `CONFAB_RECORD_TRACES=1` to record again, and review the difference. To see which packet
/// differs, set `CONFAB_TRACE_PACKETS` to a folder. Each scenario then writes all of its packets there, to be compared
/// with those of a former revision.
@Suite("Recorded behavior")
struct TraceTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Traces")

    @Test("the router sends what it sent when the scenario was recorded", arguments: TraceScenario.allCases)
    func unchanged(_ scenario: TraceScenario) throws {
        let packets = Self.environment["CONFAB_TRACE_PACKETS"].map { URL(filePath: $0) }
        let recorded = try scenario.record(keepsPackets: packets != nil)
        if let packets { try Self.write(recorded.packets, to: packets, scenario) }
        guard Self.environment["CONFAB_RECORD_TRACES"] == nil else {
            return try Self.write(recorded.lines, to: Self.folder, scenario)
        }
        let text = try String(contentsOf: Self.file(scenario, in: Self.folder), encoding: .utf8)
        let stored = text.split(separator: "\n").map(String.init)
        for index in 0..<max(stored.count, recorded.lines.count) {
            let (old, new) = (stored.at(index), recorded.lines.at(index))
            guard old != new else { continue }
            let step = recorded.lines.prefix(index).last { $0.contains(" # ") } ?? "the start"
            Issue.record("Line \(index + 1) of \(scenario).txt, after \"\(step)\":\nrecorded \(old)\nnow      \(new)")
            break
        }
    }

    private static func file(_ scenario: TraceScenario, in folder: URL) -> URL {
        folder.appending(path: "\(scenario).txt")
    }

    private static func write(_ lines: [String], to folder: URL, _ scenario: TraceScenario) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: file(scenario, in: folder))
    }
}

extension [String] {
    /// The line at this index, or a remark that there is none.
    fileprivate func at(_ index: Int) -> String { indices.contains(index) ? self[index] : "(nothing)" }
}
