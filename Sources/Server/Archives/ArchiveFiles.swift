import CSockets
import Foundation
import MediaFiles
import NIOCore
import NIOPosix
import Signaling
import Synchronization
import Wire

/// The files of archives that have ended: one folder for each archive, which the recorder has written.
///
/// Reads them for downloads and deletes them. All calls of the file system run on a thread pool. Links are not followed, and a
/// file is open only while a thread reads a part of it.
final class ArchiveFiles: Sendable {
    /// The number of bytes read at a time, which is also the memory used by a download.
    static let chunkSize = 256 * 1024
    /// Maximum size in bytes of a file that is read as a whole. A manifest has about 400 bytes for each file, of which a stream may
    /// have several (`ArchiveRecording.maxAdded`), and an upload about 50 bytes for each of 10,000 parts.
    private static let maxSmall = 16 << 20
    /// Maximum number of archives whose checksums are remembered.
    private static let maxRemembered = 200

    private let folder: String
    /// The checksums of the files of recently downloaded archives, in the order of the files. All requests for an archive wait for the
    /// same computation, because it reads all files.
    private let checksums = Mutex<[ArchiveID: Task<[UInt32], any Error>]>([:])
    /// The archives that are being deleted, or whose end is being stored.
    private let changing = Mutex<Set<ArchiveID>>([])

    init(folder: String) { self.folder = folder }

    private func path(_ archive: ArchiveID) -> String { "\(folder)/\(archive)" }

    /// Begins to delete an archive, or to store that it has expired or moved. Read its record again after this, because it may
    /// have changed.
    ///
    /// - Returns: false if such a change is in progress. Otherwise call ``endChange(of:)`` when the change is stored.
    func beginChange(of archive: ArchiveID) -> Bool { changing.withLock { $0.insert(archive).inserted } }

    /// Ends what ``beginChange(of:)`` has begun.
    func endChange(of archive: ArchiveID) { _ = changing.withLock { $0.remove(archive) } }

    /// Returns the archives in whose folder there is a file of this name.
    func archives(with name: String) async throws -> [ArchiveID] {
        let folder = folder
        return try await NIOThreadPool.singleton.runIfActive {
            let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return names.compactMap { ArchiveID($0) }.filter {
                FileManager.default.fileExists(atPath: "\(folder)/\($0)/\(name)")
            }
        }
    }

    /// Whether the recorder has made a folder for this archive.
    func hasFolder(of archive: ArchiveID) -> Bool { confab_is_folder(path(archive)) != 0 }

    /// Returns what the recorder has recorded, if it has completed the archive; nil if it has not, or the manifest is damaged.
    func completed(_ archive: ArchiveID) async throws -> RecordingResult? {
        guard hasFolder(of: archive) else { return nil }
        let bytes = try await readAll(ArchiveFileName.manifest, of: archive)
        return (try? ArchiveManifest(bytes))?.result
    }

    /// Deletes the folder of an archive with all its files. Does nothing if it does not exist.
    ///
    /// - Throws: the file system's error if something could not be deleted.
    func delete(_ archive: ArchiveID) async throws {
        let path = path(archive)
        checksums.withLock { $0[archive] = nil }
        try await NIOThreadPool.singleton.runIfActive {
            var status = stat()
            guard lstat(path, &status) == 0 else {
                guard errno == ENOENT else { throw CocoaError(.fileWriteNoPermission) }
                return
            }
            try FileManager.default.removeItem(atPath: path)
        }
    }

    /// Reads a part of a file.
    ///
    /// - Returns: at least one byte, and at most ``chunkSize``.
    /// - Throws: an error if the file does not exist, is not a regular file, or has ended.
    func read(_ name: String, of archive: ArchiveID, at offset: UInt64, _ count: UInt64) async throws -> ByteBuffer {
        let part = try await readRest(name, of: archive, at: offset, count)
        guard !part.isEmpty else { throw WireError.noArchiveFile }
        return ByteBuffer(bytes: part)
    }

    /// Reads a part of a file, which is empty at its end.
    private func readRest(
        _ name: String, of archive: ArchiveID, at offset: UInt64, _ count: UInt64
    ) async throws -> [UInt8] {
        let path = path(archive)
        let count = Int(min(count, UInt64(Self.chunkSize)))
        return try await NIOThreadPool.singleton.runIfActive { try Self.read(name, in: path, at: offset, count) }
    }

    /// Reads a small file as a whole.
    ///
    /// - Throws: an error if the file does not exist, or is larger than ``maxSmall``.
    func readAll(_ name: String, of archive: ArchiveID) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let part = try await readRest(name, of: archive, at: UInt64(bytes.count), UInt64(Self.chunkSize))
            if part.isEmpty { return bytes }
            bytes += part
            guard bytes.count <= Self.maxSmall else { throw WireError.noArchiveFile }
        }
    }

    /// Writes a small file into the folder of an archive, in one step.
    func write(_ name: String, of archive: ArchiveID, _ bytes: [UInt8]) async throws {
        let url = URL(filePath: path(archive)).appending(path: name)
        try await NIOThreadPool.singleton.runIfActive { try Data(bytes).write(to: url, options: .atomic) }
    }

    private static func read(_ name: String, in path: String, at offset: UInt64, _ count: Int) throws -> [UInt8] {
        guard isFileName(name) else { throw WireError.noArchiveFile }
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard directory >= 0 else { throw WireError.noArchiveFile }
        defer { close(directory) }
        let file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else { throw WireError.noArchiveFile }
        defer { close(file) }
        guard confab_file_size(file) >= 0 else { throw WireError.noArchiveFile }
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            let read = pread(file, buffer.baseAddress, count, off_t(offset))
            guard read >= 0 else { throw WireError.noArchiveFile }
            initialized = read
        }
    }

    /// Names are those that the recorder gives: letters, digits, `-` and single dots.
    static func isFileName(_ name: String) -> Bool {
        (1...80).contains(name.utf8.count) && !name.hasPrefix(".") && !name.contains("..")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }

    /// Returns the checksums of an archive's files, in the order of the files. Reads all files, unless they were read recently.
    func checksums(of archive: ArchiveRecord) async throws -> [UInt32] {
        let computation = checksums.withLock { known in
            if let computation = known[archive.id] { return computation }
            // Forget all, because it is not known which was used last, and computing them again only takes time.
            if known.count >= Self.maxRemembered { known = [:] }
            // Not canceled with the request, because others may wait for it too.
            let computation = Task { try await computeChecksums(of: archive) }
            known[archive.id] = computation
            return computation
        }
        do {
            return try await computation.value
        } catch {
            checksums.withLock { $0[archive.id] = nil }
            throw error
        }
    }

    private func computeChecksums(of archive: ArchiveRecord) async throws -> [UInt32] {
        var found: [UInt32] = []
        for file in archive.files {
            var (crc, offset) = (CRC32(), UInt64(0))
            let size = UInt64(clamping: file.size)
            while offset < size {
                let part = try await read(file.name, of: archive.id, at: offset, size - offset)
                part.withUnsafeReadableBytes { crc.add($0) }
                offset += UInt64(part.readableBytes)
            }
            found.append(crc.value)
        }
        return found
    }
}

extension WireError {
    static let noArchiveFile = WireError(
        .notFound, "There is no such file, or its URL has expired. Get a new URL from the application.")
}
