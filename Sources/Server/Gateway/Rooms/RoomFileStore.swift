import Foundation
import NIOCore
import NIOPosix
import Signaling
import Wire

/// The bytes of the files in rooms, one file each in a folder of the data directory.
///
/// Rooms decide what is stored and for how long. Their chats do not survive a restart, and neither do their files. All calls to
/// the file system run on a thread pool, so that a slow disk does not hold up the event loop.
final class RoomFileStore: Sendable {
    /// Bytes of a file that are written or read at a time, and so the memory of a transfer.
    static let chunkSize = 64 * 1024

    private let directory: String

    init(dataDirectory: String) { directory = dataDirectory + "/files" }

    private func path(_ id: RoomFileID) -> String { "\(directory)/\(id)" }

    /// Deletes what an earlier run of the server left. Call once, before the first client connects.
    func clear() throws {
        guard FileManager.default.fileExists(atPath: directory) else { return }
        try FileManager.default.removeItem(atPath: directory)
    }

    /// Deletes a file. What is still being sent or downloaded fails, so that nothing outlives the space reserved for it.
    func delete(_ id: RoomFileID) {
        let path = path(id)
        NIOThreadPool.singleton.submit { _ in
            truncate(path, 0)
            unlink(path)
        }
    }

    // MARK: Uploads

    /// Writes a body to disk, part by part. The client is not read while the disk is busy.
    ///
    /// - Parameter confirm: called when the file exists, and throws if it is no longer wanted. From then on, deleting it ends the
    ///   upload.
    /// - Throws: an error for the client if the body has another size, does not arrive, or the disk does not take it, or if the
    ///   file was deleted. What was written is not deleted.
    func receive<Body: AsyncSequence>(
        _ body: Body, as id: RoomFileID, size: Int, confirm: () async throws -> Void = {}
    ) async throws(WireError) where Body.Element == ByteBuffer {
        let descriptor = try await create(id)
        // Closing takes no time: the system writes the rest later.
        defer { close(descriptor) }
        var received = 0
        // Parts can be as small as a byte, and each write is a task for the thread pool.
        var unwritten = ByteBuffer()
        do {
            try await confirm()
            for try await part in body {
                guard part.readableBytes <= size - received else { throw WireError.otherSize }
                received += part.readableBytes
                unwritten.writeImmutableBuffer(part)
                guard unwritten.readableBytes >= Self.chunkSize else { continue }
                try await write(unwritten, descriptor, at: received - unwritten.readableBytes)
                unwritten.clear()
            }
            guard received == size else { throw WireError.otherSize }
            try await write(unwritten, descriptor, at: received - unwritten.readableBytes)
        } catch let error as WireError {
            throw error
        } catch {
            throw WireError(.malformed, "The upload is incomplete. Send the file again.")
        }
    }

    private func create(_ id: RoomFileID) async throws(WireError) -> CInt {
        let (directory, path) = (directory, path(id))
        let created = try? await NIOThreadPool.singleton.runIfActive { () -> CInt in
            guard (try? PrivateFiles.makeDirectory(directory)) != nil else { return -1 }
            return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        }
        guard let created, created >= 0 else { throw .diskFailed }
        return created
    }

    private func write(_ part: ByteBuffer, _ descriptor: CInt, at offset: Int) async throws {
        let error = try await NIOThreadPool.singleton.runIfActive { () -> WireError? in
            guard Self.exists(descriptor) else { return .noUpload }
            return Self.writeAll(part, descriptor, at: offset) ? nil : .diskFailed
        }
        if let error { throw error }
    }

    /// False once the file was deleted.
    private static func exists(_ descriptor: CInt) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_nlink > 0
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

    /// Reads a file part by part, as fast as `send` takes it.
    func read(_ id: RoomFileID, size: Int, send: (ByteBuffer) async throws -> Void) async throws {
        let path = path(id)
        let descriptor = try await NIOThreadPool.singleton.runIfActive { open(path, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw WireError.noFile }
        defer { close(descriptor) }
        var offset = 0
        while offset < size {
            let (start, count) = (offset, min(Self.chunkSize, size - offset))
            let part = try await NIOThreadPool.singleton.runIfActive { () -> [UInt8] in
                [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                    initialized = max(0, pread(descriptor, buffer.baseAddress, count, off_t(start)))
                }
            }
            // The response has promised more bytes. Failing closes the connection, so that the client notices.
            guard !part.isEmpty else { throw WireError.diskFailed }
            try await send(ByteBuffer(bytes: part))
            offset += part.count
        }
    }
}

extension WireError {
    static let otherSize = WireError(
        .malformed, "The file has another size than was announced. Send it again.")
    fileprivate static let diskFailed = WireError(
        .storageFull, "The server cannot store this file now. Try again later, or send a link.", retryable: true)
}
