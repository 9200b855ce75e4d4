import Foundation
import Wire

/// A file in a room's chat. Everyone in the room can download it with ``Room/download(_:to:progress:)``.
public struct SharedFile: Hashable, Sendable, Identifiable {
    /// The id of the file, which the server assigns.
    public let id: RoomFileID
    /// The name, at most 200 bytes. It has no characters that could lead out of a folder or that hide the file's
    /// type.
    public let name: String
    /// The size in bytes.
    public let size: Int

    init(_ file: Wire.RoomFile, named name: String) { (id, self.name, size) = (file.id, Self.safe(name), file.size) }

    /// Returns the name in a form that is safe on any file system. The name was sent by the server, and an application
    /// may use it in a path. Names from an honest server do not change.
    static func safe(_ name: String) -> String {
        var safe = String.UnicodeScalarView()
        var bytes = 0
        for scalar in name.unicodeScalars {
            let isAllowed = scalar.isAllowedInNames && !"/\\:*?\"<>|".unicodeScalars.contains(scalar)
            let kept = isAllowed ? scalar : "_"
            bytes += UTF8.width(kept)
            if bytes > Limits.fileName { break }
            safe.append(kept)
        }
        let trimmed = String(safe).trimmingCharacters(in: CharacterSet(charactersIn: "."))
        return trimmed.unicodeScalars.contains(where: \.isVisibleInNames) ? trimmed : "file"
    }
}

/// The progress of an upload or download of a file.
public struct TransferProgress: Hashable, Sendable {
    /// The number of bytes transferred so far.
    public let bytes: Int
    /// The size of the file in bytes.
    public let size: Int
    /// The part of the file that has been transferred, from 0 to 1.
    public var fraction: Double { size > 0 ? Double(bytes) / Double(size) : 1 }
}

// Files go through the server (`protocol/rooms.md`). The server checks permissions; this side limits what it sends and
// receives to the announced sizes.
extension Room {
    /// The files in the chat, oldest first; empty after this person has left the room.
    nonisolated public var files: [SharedFile] { chat.compactMap(\.file) }
    /// The maximum size of a file in bytes; nil if the server does not accept files, and after leaving the room.
    nonisolated public var maxFileSize: Int? { access?.maxSize }

    /// Sends a file to everyone, and returns when the server has received it. The file then appears in the chat. If
    /// the task is canceled, the file is not sent.
    ///
    /// - Parameters:
    ///   - file: a file on this device.
    ///   - name: the name to show, at most 200 bytes without `/ \ : * ? " < > |`; nil for the file's own name.
    ///   - progress: called on any thread. It must return quickly.
    /// - Throws: `not_joined`, `file_unreadable`, `not_found` if the server does not accept files, `message_too_large`,
    ///   `invalid_name`, `storage_quota`, `rate_limited` and others, or an error of the connection.
    public func send(
        _ file: URL, as name: String? = nil, progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws(ConfabError) {
        guard let access else { throw isCurrent ? .noFiles : .roomLeft }
        let handle: FileHandle
        let size: Int
        do {
            handle = try FileHandle(forReadingFrom: file)
            size = Int(clamping: try handle.seekToEnd())
            try handle.seek(toOffset: 0)
        } catch {
            throw .unreadable(error)
        }
        defer { try? handle.close() }
        guard size > 0 else { throw .emptyFile }
        guard size <= access.maxSize else { throw .fileTooLarge(access.maxSize) }
        let request = RoomVerb.File(name: name ?? file.lastPathComponent, size: size)
        let answer = try await feature.ask(.verb(.file(request)))
        guard case .room(.upload(let upload)) = answer else { throw .noAnswer }
        let core = feature.desk.core
        var transfer = HTTPTransfer(url: try core.address(of: upload.path), bearer: "\(upload.secret)")
        transfer.upload = .init(handle: handle, size: size)
        if let progress { transfer.progress = { progress(TransferProgress(bytes: $0, size: size)) } }
        try await core.run(transfer)
    }

    /// Downloads a file of the chat.
    ///
    /// - Parameters:
    ///   - file: the file.
    ///   - destination: where to write it. The file appears there only when it is complete, and replaces an existing
    ///     file.
    ///   - progress: called on any thread. It must return quickly.
    /// - Throws: `not_joined`, `not_found` if the file was deleted, `file_unwritable`, or an error of the connection.
    public func download(
        _ file: SharedFile, to destination: URL, progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws(ConfabError) {
        guard let access else { throw isCurrent ? .noFiles : .roomLeft }
        let core = feature.desk.core
        var transfer = HTTPTransfer(
            url: try core.address(of: "\(access.path)/\(file.id)"), bearer: "\(access.key)")
        let part = destination.appendingPathExtension("\(file.id).part")
        let handle: FileHandle
        do {
            try Data().write(to: part)
            handle = try FileHandle(forWritingTo: part)
        } catch {
            throw .unwritable(error)
        }
        defer { try? FileManager.default.removeItem(at: part) }
        transfer.download = .init(handle: handle, size: file.size)
        if let progress { transfer.progress = { progress(TransferProgress(bytes: $0, size: file.size)) } }
        do throws(ConfabError) { try await core.run(transfer) } catch {
            try? handle.close()
            throw error
        }
        do {
            try handle.close()
            guard rename(part.path, destination.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
        } catch {
            throw .unwritable(error)
        }
    }

    /// Deletes a file from the server and the chat. Only the person who sent it, hosts and cohosts may do this.
    public func remove(_ file: SharedFile) async throws(ConfabError) { try await send(.removeFile(.init(id: file.id))) }
}

extension ConfabError.Code {
    /// The file cannot be read, or is empty.
    public static let fileUnreadable: Self = "file_unreadable"
    /// The file cannot be written.
    public static let fileUnwritable: Self = "file_unwritable"
    /// The file or message is larger than the server allows.
    public static let messageTooLarge = Self(.messageTooLarge)
}

extension ConfabError {
    fileprivate static let noFiles = ConfabError(.notFound, "Files are disabled on this server. Send a link instead.")
    fileprivate static let emptyFile = ConfabError(.fileUnreadable, "This file is empty. Choose another one.")
    fileprivate static func unreadable(_ error: any Error) -> ConfabError {
        ConfabError(.fileUnreadable, "This file cannot be read. Choose another one.", cause: error)
    }
    fileprivate static func unwritable(_ error: any Error) -> ConfabError {
        ConfabError(.fileUnwritable, "The file cannot be written. Choose another folder or free space.", cause: error)
    }
    fileprivate static func fileTooLarge(_ size: Int) -> ConfabError {
        ConfabError(.messageTooLarge, "This file is too large. The server allows \(size) bytes; send a smaller one.")
    }
}
