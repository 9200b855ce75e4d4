import Foundation
import NIOCore
import NIOPosix
import Signaling
import Synchronization
import Wire

/// The contents of the files in rooms. Each is one file in a folder of the data directory.
///
/// Rooms decide which files are stored and for how long. Chats of rooms do not survive a restart, and neither do their
/// files. All file system calls run on a thread pool, so that a slow disk does not block the event loop.
///
/// A file is open only while a thread of the pool reads or writes a part of it. A client that is slow, or does not read
/// at all, therefore holds no descriptor other than its connection, and the number of threads limits the number of open
/// files.
final class RoomFileStore: Sendable {
    /// The number of bytes read or written at a time, which is also the memory used by a transfer.
    static let chunkSize = 64 * 1024

    private let directory: String
    /// For each upload that is under way and was not deleted, the number of its bytes that are on the disk.
    private let arrived = Mutex<[RoomFileID: Int]>([:])

    var arrivedBytes: Int { arrived.withLock { $0.values.reduce(0, +) } }

    init(dataDirectory: String) { directory = dataDirectory + "/files" }

    private func path(_ id: RoomFileID) -> String { "\(directory)/\(id)" }

    /// Deletes files that an earlier run of the server left behind. Call once, before the first client connects.
    func clear() throws {
        guard FileManager.default.fileExists(atPath: directory) else { return }
        try FileManager.default.removeItem(atPath: directory)
    }

    /// Deletes a file. Uploads and downloads of it that are in progress fail, so that none of its data takes disk
    /// space after the space reserved for it is released.
    func delete(_ id: RoomFileID) {
        let path = path(id)
        _ = arrived.withLock { $0.removeValue(forKey: id) }
        NIOThreadPool.singleton.submit { _ in
            truncate(path, 0)
            unlink(path)
        }
    }

    // MARK: Uploads

    /// Writes a body to disk, part by part. No data is read from the client while the disk is busy.
    ///
    /// - Parameter confirm: called when the file exists; throws if the file is no longer wanted. After this call,
    ///   deleting the file ends the upload.
    /// - Throws: an error for the client if the body has a different size, does not arrive completely, or cannot be
    ///   written, or if the file was deleted. The partial file is not deleted.
    func receive<Body: AsyncSequence>(
        _ body: Body, as id: RoomFileID, size: Int, confirm: () async throws -> Void = {}
    ) async throws(WireError) where Body.Element == ByteBuffer {
        try await create(id)
        var received = 0
        // Parts can be as small as a byte, and each write is a task for the thread pool, so collect larger parts.
        var unwritten = ByteBuffer()
        arrived.withLock { $0[id] = 0 }
        defer { _ = arrived.withLock { $0.removeValue(forKey: id) } }
        do {
            try await confirm()
            for try await part in body {
                guard part.readableBytes <= size - received else { throw WireError.otherSize }
                received += part.readableBytes
                unwritten.writeImmutableBuffer(part)
                guard unwritten.readableBytes >= Self.chunkSize else { continue }
                try await write(unwritten, to: id, at: received - unwritten.readableBytes)
                // Count the bytes only if the file was not deleted in the meantime: a deleted file takes no space.
                arrived.withLock { if $0[id] != nil { $0[id] = received } }
                unwritten.clear()
            }
            guard received == size else { throw WireError.otherSize }
            try await write(unwritten, to: id, at: received - unwritten.readableBytes)
        } catch let error as WireError {
            throw error
        } catch {
            throw WireError(.malformed, "The upload is incomplete. Send the file again.")
        }
    }

    private func create(_ id: RoomFileID) async throws(WireError) {
        let (directory, path) = (directory, path(id))
        let isCreated = try? await NIOThreadPool.singleton.runIfActive { () -> Bool in
            guard (try? PrivateFiles.makeDirectory(directory)) != nil else { return false }
            let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            return descriptor >= 0 && close(descriptor) == 0
        }
        guard isCreated == true else { throw .diskFailed }
    }

    private func write(_ part: ByteBuffer, to id: RoomFileID, at offset: Int) async throws {
        let path = path(id)
        let error = try await NIOThreadPool.singleton.runIfActive { () -> WireError? in
            let descriptor = open(path, O_WRONLY | O_CLOEXEC)
            // If the file is missing, it was deleted, because IDs are never reused.
            guard descriptor >= 0 else { return errno == ENOENT ? .noUpload : .diskFailed }
            let isWritten = Self.writeAll(part, descriptor, at: offset)
            // Closing can report that an earlier write failed.
            return close(descriptor) == 0 && isWritten ? nil : .diskFailed
        }
        if let error { throw error }
    }

    private static func writeAll(_ part: ByteBuffer, _ descriptor: CInt, at offset: Int) -> Bool {
        part.withUnsafeReadableBytes { bytes in
            var written = 0
            while written < bytes.count {
                let count = pwrite(
                    descriptor, bytes.baseAddress?.advanced(by: written), bytes.count - written,
                    off_t(offset + written))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                written += count
            }
            return true
        }
    }

    // MARK: Downloads

    /// Reads a file part by part, as fast as `send` accepts the parts.
    func read(_ id: RoomFileID, size: Int, send: (ByteBuffer) async throws -> Void) async throws {
        let path = path(id)
        var offset = 0
        while offset < size {
            let (start, count) = (offset, min(Self.chunkSize, size - offset))
            let part = try await NIOThreadPool.singleton.runIfActive {
                ByteBuffer(bytes: try Self.readPart(of: path, at: start, count))
            }
            try await send(part)
            offset += part.readableBytes
        }
    }

    private static func readPart(of path: String, at offset: Int, _ count: Int) throws(WireError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .noFile }
        defer { close(descriptor) }
        let part = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = max(0, pread(descriptor, buffer.baseAddress, count, off_t(offset)))
        }
        // The file has ended early, although the response has announced more bytes. Throw: the connection then closes,
        // and the client detects the error.
        guard !part.isEmpty else { throw .diskFailed }
        return part
    }
}

extension WireError {
    static let otherSize = WireError(
        .malformed, "The file's size differs from the announced size. Send it again.")
    fileprivate static let diskFailed = WireError(
        .storageFull, "The server could not store this file. Try again later, or send a link.", retryable: true)
}
