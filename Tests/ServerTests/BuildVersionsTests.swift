import Foundation
import Testing

/// `Package.resolved` is not part of the repository, so the documentation has to say how to build the same versions again.
@Suite("Versions of a build") struct BuildVersionsTests {
    private static func text(_ path: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test("docs/operations.md says how to pin the versions of dependencies")
    func pinning() throws {
        let text = try Self.text("docs/operations.md")
        let sections = text.components(separatedBy: "\n## ")
        let building = try #require(sections.first(where: { $0.hasPrefix("Building\n") }))
        for word in ["`Package.resolved`", "`--only-use-versions-from-resolved-file`"] {
            #expect(building.contains(word), "\(word)")
        }
    }

    @Test("each dependency states the oldest version that works, and none follows a branch")
    func versions() throws {
        let text = try Self.text("Package.swift")
        let stated = text.matches(of: /\.package\(\s*url: "[^"]+", (?:from|exact): "\d+\.\d+\.\d+"/).count
        #expect(stated > 10)
        #expect(stated == text.components(separatedBy: ".package(").count - 1)
    }
}
