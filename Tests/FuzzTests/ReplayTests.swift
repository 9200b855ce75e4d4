import Foundation
import Testing

/// Runs the corpus and the findings of the fuzzer through the targets, without the fuzzer.
///
/// Each target runs in its own process, so that a crashing input can be named and the other targets still run.
@Suite("Corpus and findings")
struct ReplayTests {
    @Test("do not crash", arguments: FuzzTarget.all.map(\.name))
    func breakNothing(_ name: String) async {
        let last = FileManager.default.temporaryDirectory.appending(path: "confab-replay-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: last) }
        let result = await #expect(processExitsWith: .success) { [name, last = last as String] in
            guard let target = FuzzTarget.all.first(where: { $0.name == name }) else { exit(1) }
            for input in KeptInput.all(of: target) {
                try input.path.write(toFile: last, atomically: false, encoding: .utf8)
                do throws(BrokenProperty) {
                    try target.check(input.bytes)
                } catch {
                    Issue.record("\(input.path): \(error)")
                }
            }
        }
        if result == nil {
            let path = try? String(contentsOfFile: last, encoding: .utf8)
            Issue.record("\(path ?? "no input"): the child process ended at this input")
        }
    }

    @Test("exist for every target, and every folder belongs to a target")
    func everyTargetHasInputs() throws {
        let names = Set(FuzzTarget.all.map(\.name))
        for target in FuzzTarget.all {
            #expect(!KeptInput.all(of: target).isEmpty, "\(target.name) has no stored inputs")
        }
        for folder in ["Fuzz/Corpora", "Fuzz/Findings"] {
            let found = KeptInput.names(in: folder)
            #expect(names.isSuperset(of: found), "\(folder) has \(found.subtracting(names)), which are not targets")
        }
    }
}
