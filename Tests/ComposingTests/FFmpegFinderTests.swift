import Foundation
import Testing

@testable import Composing

@Suite("Finding ffmpeg again") struct FFmpegFinderTests {
    /// A program in place of ffmpeg, which notes each call.
    private static func install(_ codecs: [String], in archive: TestArchive) throws -> String {
        let lines = ["ffmpeg version 7.1 Copyright"] + codecs.map { " V....D \($0) x" }
        let script = "#!/bin/sh\necho >>'\(archive.path("calls"))'\n" + lines.map { "echo '\($0)'\n" }.joined()
        try archive.write(Array(script.utf8), to: "ffmpeg")
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: archive.path("ffmpeg"))
        return archive.path("ffmpeg")
    }

    private static func calls(_ archive: TestArchive) -> Int { (try? archive.bytes("calls"))?.count ?? 0 }

    @Test("one that was found is not asked again until its file changes")
    func remembered() async throws {
        try await TestArchive.with { archive in
            let path = try Self.install(["libx264", "aac", "libopus"], in: archive)
            let finder = FFmpegFinder()
            let installation = try await finder.find(path)
            #expect(installation == FFmpegInstallation(path: path, version: "7.1"))
            #expect(try await finder.find(path) == installation)
            #expect(Self.calls(archive) == 3)
            // Another finder does not know it.
            #expect(try await FFmpegFinder().find(path) == installation)
            #expect(Self.calls(archive) == 6)
            let changed = Date(timeIntervalSince1970: 1_700_000_000)
            try FileManager.default.setAttributes([.modificationDate: changed], ofItemAtPath: path)
            #expect(try await finder.find(path) == installation)
            #expect(Self.calls(archive) == 9)
            try FileManager.default.removeItem(atPath: path)
            await #expect(throws: ComposeError.ffmpegMissing(path)) { try await finder.find(path) }
        }
    }

    @Test("one that cannot compose is asked each time, because a library may have been installed meanwhile")
    func incomplete() async throws {
        try await TestArchive.with { archive in
            let path = try Self.install(["libx264", "aac"], in: archive)
            let finder = FFmpegFinder()
            for attempt in 1...2 {
                await #expect(throws: ComposeError.ffmpegIncomplete(["libopus"])) { try await finder.find(path) }
                #expect(Self.calls(archive) == 3 * attempt)
            }
        }
    }
}
