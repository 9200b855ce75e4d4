import Foundation
import Testing

/// What the fuzzer begins with and what it found, run through the same functions without it.
///
/// Each target is replayed in a process of its own: an input that traps is named, and the other targets are replayed even
/// so.
@Suite("Kept inputs")
struct ReplayTests {
    @Test("break nothing any more", arguments: FuzzTarget.all.map(\.name))
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
            Issue.record("\(path ?? "no input"): it ended here")
        }
    }

    @Test("are there for every target, in folders that belong to one")
    func everyTargetHasInputs() throws {
        let names = Set(FuzzTarget.all.map(\.name))
        for target in FuzzTarget.all {
            #expect(!KeptInput.all(of: target).isEmpty, "\(target.name) begins with nothing")
        }
        for folder in ["Fuzz/Corpora", "Fuzz/Findings"] {
            let found = KeptInput.names(in: folder)
            #expect(names.isSuperset(of: found), "\(folder) has \(found.subtracting(names)), which are no targets")
        }
    }
}
