import CSockets
import Foundation

/// Reads and writes the files of `confab setup`.
struct SetupFiles: Sendable {
    /// The maximum size of a file in bytes.
    private static let maxSize = 1 << 20

    /// A folder in front of all paths; empty for this machine.
    let prefix: String

    /// The maximum number of links that lead to a file, as Linux has it.
    private static let maxLinks = 40

    /// Returns where a path is, with the prefix. Its links are followed as on the system below the prefix, so that none leads out of it.
    ///
    /// - Throws: `SetupError` if links form a loop.
    func location(_ path: String) throws(SetupError) -> String {
        guard !prefix.isEmpty else { return path }
        func names(_ path: String) -> [String] { path.split(separator: "/").reversed().map { String($0) } }
        var (left, found, links) = (names(path), [String](), 0)
        while let name = left.popLast() {
            if name == "." { continue }
            if name == ".." {
                _ = found.popLast()
                continue
            }
            let here = ([prefix] + found + [name]).joined(separator: "/")
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: here) else {
                found.append(name)
                continue
            }
            links += 1
            guard links <= Self.maxLinks else {
                throw SetupError("\(prefix + path) has too many links. Remove those that form a loop.")
            }
            if target.hasPrefix("/") { found = [] }
            left += names(target)
        }
        return ([prefix] + found).joined(separator: "/")
    }

    /// Returns the text of a file; nil if it does not exist.
    func read(_ path: String) throws(SetupError) -> String? {
        let location = try location(path)
        guard Self.isFile(location) else {
            throw SetupError("\(prefix + path) is not a regular file. Check that it is the right path.")
        }
        do throws(DataDirectoryError) {
            guard let file = try PrivateFiles.read(location, limit: Self.maxSize) else { return nil }
            if let text = String(validating: file.bytes, as: UTF8.self) { return text }
        } catch {
            throw SetupError(error)
        }
        throw SetupError("\(prefix + path) is not UTF-8 text. Check that it is the right file.")
    }

    /// Whether reading does not block, as it would with a pipe. True for what does not exist or cannot be opened.
    private static func isFile(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return true }
        defer { close(descriptor) }
        return confab_file_size(descriptor) >= 0
    }

    /// Whether a file or folder exists.
    func exists(_ path: String) -> Bool {
        (try? location(path)).map { FileManager.default.fileExists(atPath: $0) } ?? false
    }

    /// Checks that a file is as it was when the plan was made, so that nothing is lost that was saved meanwhile.
    func requireUnchanged(_ file: SetupPlan.File) throws(SetupError) {
        guard try read(file.path) == file.old else {
            throw SetupError("\(prefix + file.path) has changed meanwhile. Nothing was written. Run setup again.")
        }
    }

    /// Creates or replaces a file atomically. An existing one keeps its owner and its mode; a file with secrets always has mode
    /// 0600.
    func write(_ file: SetupPlan.File) throws(SetupError) {
        // A link stays a link.
        let path = URL(fileURLWithPath: try location(file.path)).resolvingSymlinksInPath().path
        try makeFolder(of: path)
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        var owner: PrivateFiles.Owner?
        if let user = (attributes?[.ownerAccountID] as? NSNumber)?.uint32Value,
            let group = (attributes?[.groupOwnerAccountID] as? NSNumber)?.uint32Value
        {
            owner = PrivateFiles.Owner(user: user, group: group)
        }
        let mode = file.isSecret ? 0o600 : (attributes?[.posixPermissions] as? NSNumber)?.uint32Value ?? 0o644
        do throws(DataDirectoryError) {
            try PrivateFiles.replace(path, contents: Array(file.new.utf8), suffix: "setup", mode: mode, owner: owner)
        } catch {
            throw SetupError(error)
        }
    }

    private func makeFolder(of path: String) throws(SetupError) {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        } catch {
            let isDenied = (error as? CocoaError)?.code == .fileWriteNoPermission
            throw SetupError(DataDirectoryError("The folder \(folder) cannot be created.", isDenied: isDenied))
        }
    }
}

extension SetupError {
    fileprivate init(_ error: DataDirectoryError) {
        self.init(error.description + (error.isDenied ? " Run setup as root: sudo confab setup." : ""))
    }
}
