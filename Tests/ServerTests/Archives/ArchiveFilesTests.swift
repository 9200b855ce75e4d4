import Foundation
import MediaFiles
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Files of archives", .ownThreads) struct ArchiveFilesTests: StorageFixtures {
    private let id = ArchiveID(high: 5, low: 1)

    private var archive: ArchiveRecord {
        var archive = ArchiveRecord(
            id: id, project: "1000", session: SessionID("2_session")!, request: ArchiveRequest(), createdAt: now)
        archive.files = [
            RecordedFile(
                stream: StreamID(high: 1, low: 1), name: "x.webm", size: 9, start: .zero, stop: .seconds(1),
                connectionData: "", videoType: nil)
        ]
        return archive
    }

    @Test("checksums are computed once for all who wait, remembered, and tried again after a failure")
    func checksums() async throws {
        try await withDirectory { directory in
            let (files, archive) = (ArchiveFiles(folder: directory), archive)
            await #expect(throws: WireError.self) { try await files.checksums(of: archive) }
            let folder = "\(directory)/\(id)"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data("123456789".utf8).write(to: URL(filePath: "\(folder)/x.webm"))
            let found = try await withThrowingTaskGroup(of: [UInt32].self) { group in
                for _ in 0..<50 { group.addTask { try await files.checksums(of: archive) } }
                return try await group.reduce(into: Set<[UInt32]>()) { $0.insert($1) }
            }
            // The check value of CRC-32/ISO-HDLC.
            #expect(found == [[0xCBF4_3926]])
            #expect(try await files.archives(with: "x.webm") == [id])
            #expect(try await files.archives(with: "y.webm").isEmpty)
            try FileManager.default.removeItem(atPath: folder)
            #expect(try await files.checksums(of: archive) == [0xCBF4_3926])
            try await files.delete(id)
            await #expect(throws: WireError.self) { try await files.checksums(of: archive) }
        }
    }

    @Test("a small file is read as a whole, whatever its size, and a large one is refused")
    func small() async throws {
        try await withDirectory { directory in
            let files = ArchiveFiles(folder: directory)
            let path = "\(directory)/\(id)/upload.json"
            try FileManager.default.createDirectory(atPath: "\(directory)/\(id)", withIntermediateDirectories: true)
            for size in [0, 1, ArchiveFiles.chunkSize, 2 * ArchiveFiles.chunkSize + 1] {
                try Data(repeating: 7, count: size).write(to: URL(filePath: path))
                #expect(try await files.readAll("upload.json", of: id).count == size)
            }
            try Data(repeating: 7, count: 17 << 20).write(to: URL(filePath: path))
            await #expect(throws: WireError.self) { try await files.readAll("upload.json", of: id) }
        }
    }

    @Test("the manifest of an archive with thousands of files is read")
    func manyFiles() async throws {
        try await withDirectory { directory in
            let file = ArchiveManifestFile(
                stream: "\(StreamID(high: 1, low: 1))", name: "x.webm", start: .zero, stop: .seconds(1),
                connectionData: String(repeating: "é", count: 100))
            let manifest = ArchiveManifest(
                id: "\(id)", partnerID: "1000", session: "2_session", createdAt: now,
                files: Array(repeating: file, count: 5_000), duration: .seconds(1))
            let folder = "\(directory)/\(id)"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data(manifest.json).write(to: URL(filePath: "\(folder)/\(ArchiveFileName.manifest)"))
            let files = ArchiveFiles(folder: directory)
            #expect(try await files.completed(id)?.files.count == 5_000)
        }
    }

    @Test("links are not followed, and names that leave the folder are refused")
    func links() async throws {
        try await withDirectory { directory in
            let (outside, recordings) = ("\(directory)/outside", "\(directory)/recordings")
            for folder in [outside, recordings] {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            }
            try Data("secret".utf8).write(to: URL(filePath: "\(outside)/x.webm"))
            let files = ArchiveFiles(folder: recordings)
            try FileManager.default.createSymbolicLink(atPath: "\(recordings)/\(id)", withDestinationPath: outside)
            #expect(!files.hasFolder(of: id))
            await #expect(throws: WireError.self) { try await files.read("x.webm", of: id, at: 0, 1) }
            try await files.delete(id)
            #expect(FileManager.default.fileExists(atPath: "\(outside)/x.webm"), "only the link was deleted")
            try FileManager.default.createDirectory(
                atPath: "\(recordings)/\(id)", withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: "\(recordings)/\(id)/x.webm", withDestinationPath: "\(outside)/x.webm")
            for name in ["x.webm", "../../outside/x.webm", "..", ".", "", "a/b", "x\0.webm", ".hidden", "é.webm"] {
                await #expect(throws: WireError.self, "\(name)") { try await files.read(name, of: id, at: 0, 1) }
            }
        }
    }

    @Test("one change of an archive is in progress at a time")
    func changes() {
        let files = ArchiveFiles(folder: "/missing")
        #expect(files.beginChange(of: id) && !files.beginChange(of: id))
        #expect(files.beginChange(of: ArchiveID(high: 5, low: 2)))
        files.endChange(of: id)
        #expect(files.beginChange(of: id))
    }
}
