import Foundation

/// Reads and writes the files of `confab setup`.
struct SetupFiles: Sendable {
    /// The maximum size of a file in bytes.
    private static let maxSize = 1 << 20

    /// A folder in front of all paths; empty for this machine.
    let prefix: String

    /// Returns the text of a file; nil if it does not exist.
    func read(_ path: String) throws(SetupError) -> String? {
        do throws(DataDirectoryError) {
            guard let file = try PrivateFiles.read(prefix + path, limit: Self.maxSize) else { return nil }
            if let text = String(validating: file.bytes, as: UTF8.self) { return text }
        } catch {
            throw SetupError("\(error) Run setup as root: sudo confab setup.")
        }
        throw SetupError("\(prefix + path) is not UTF-8 text. Check that it is the right file.")
    }

    /// Whether a file or folder exists.
    func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: prefix + path) }

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
        let path = URL(fileURLWithPath: prefix + file.path).resolvingSymlinksInPath().path
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
            throw SetupError("\(error) Run setup as root: sudo confab setup.")
        }
    }

    private func makeFolder(of path: String) throws(SetupError) {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        do {
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        } catch {
            throw SetupError("The folder \(folder) cannot be created. Run setup as root: sudo confab setup.")
        }
    }
}
