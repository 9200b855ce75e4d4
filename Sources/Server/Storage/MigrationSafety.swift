import Foundation
import GRDB
import Signaling
import Wire

/// Checks and copies a database before it is migrated. A migration cannot be undone, and could turn unnoticed damage
/// into lost data.
struct MigrationSafety: Sendable {
    /// How many copies to keep. The second newest copy is for problems that are noticed only after the next upgrade.
    private static let keptCopies = 2
    /// The free space required, as a multiple of the database's size: one part for the copy, and one because a
    /// migration may rewrite the largest table, in the database or in its log.
    private static let spaceFactor = 2

    /// The size in bytes above which a database is checked with `quick_check` instead of `integrity_check`.
    /// `quick_check` reads every page but does not compare indexes with their tables. It takes seconds for a
    /// gigabyte. `integrity_check` takes minutes, during which the server is not running.
    var largeSize = 256 << 20
    var now: @Sendable () -> Date = { Date() }
    /// Returns the free disk space of a directory in bytes, or nil if it cannot be read.
    var freeSpace: @Sendable (_ directory: String) -> Int? = DiskSpace.freeBytes(of:)

    /// Checks the database, copies it to a file beside it, and deletes earlier copies of the same schema version.
    ///
    /// - Returns: the path of the copy.
    /// - Throws: `StorageError`: `.diskFull` without enough space, `.corrupt` if the check finds damage,
    ///   `.notAccessible` if the copy cannot be created. The database is never changed.
    func copy(_ pool: DatabasePool, version: Int) throws -> String {
        let directory = (pool.path as NSString).deletingLastPathComponent
        let size = try pool.read(Self.size)
        try requireSpace(Self.spaceFactor * size, in: directory)
        try pool.read { try check($0, size: size) }
        let name = Self.name(version: version, at: now())
        let path = directory + "/" + name
        let unfinished = path + ".unfinished"
        Self.remove(unfinished)
        guard try StorageFiles.createFile(unfinished) else {
            throw StorageError(.notAccessible, "Cannot replace \(unfinished). Remove it.")
        }
        do {
            try pool.read { try $0.copy(to: unfinished) }
        } catch {
            Self.remove(unfinished)
            throw error
        }
        guard rename(unfinished, path) == 0 else {
            throw StorageError(.notAccessible, "Cannot rename \(unfinished) to \(name). Check the permissions.")
        }
        PrivateFiles.syncDirectory(of: path)
        // Delete earlier copies of the same version: a server that restarts repeatedly because an upgrade fails must
        // not fill the disk with copies.
        for same in try Self.copies(in: directory) where same != name && same.hasPrefix("\(Self.prefix)\(version)-") {
            Self.remove(directory + "/" + same)
        }
        return path
    }

    /// Deletes all but the newest copies. Call this after the migration has succeeded: until then, the operator may
    /// need an older copy.
    ///
    /// - Parameter last: the newest copy. It is kept even if its name contains an earlier time, from a clock that was
    ///   wrong.
    static func deleteOldCopies(beside last: String) throws {
        let (directory, name) = ((last as NSString).deletingLastPathComponent, (last as NSString).lastPathComponent)
        let others = try copies(in: directory).filter { $0 != name }
        for old in others.dropLast(keptCopies - 1) { remove(directory + "/" + old) }
    }

    private static func size(_ db: Database) throws -> Int {
        let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
        return pages * (try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0)
    }

    private func requireSpace(_ needed: Int, in directory: String) throws {
        // Continue if the free space cannot be read. If there is too little, the copy itself fails.
        guard let free = freeSpace(directory), free < needed else { return }
        throw StorageError(
            .diskFull,
            """
            The database has to be upgraded, which needs \(Self.mebibytes(needed)) MiB of free space in \(directory) for a copy; \
            \(Self.mebibytes(free)) MiB are free. Free some space and start again. Nothing has been changed.
            """)
    }

    private static func mebibytes(_ bytes: Int) -> Int { (bytes + (1 << 20) - 1) >> 20 }

    private func check(_ db: Database, size: Int) throws {
        let pragma = size > largeSize ? "quick_check" : "integrity_check"
        // The messages can be shown in the error, because they name tables and pages, not stored data.
        let found = try String.fetchAll(db, sql: "PRAGMA \(pragma)(3)")
        guard found != ["ok"] else { return }
        throw StorageError(
            .corrupt,
            """
            The database is damaged, so it was not upgraded: \(found.joined(separator: "; ")). Restore a backup. Nothing has been \
            changed.
            """)
    }

    // MARK: Copies

    private static let prefix = "confab-v"
    private static let suffix = ".sqlite"

    /// Returns the name of a copy, such as `confab-v2-20260131T120000Z.sqlite`.
    private static func name(version: Int, at time: Date) -> String {
        let digits = TimeText.write(Timestamp(milliseconds: Int64(time.timeIntervalSince1970 * 1000)))
            .filter { $0 != "-" && $0 != ":" }
        return "\(prefix)\(version)-\(digits)\(suffix)"
    }

    /// Returns the names of the copies in a directory, oldest first.
    static func copies(in directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory)
            .filter { $0.wholeMatch(of: /confab-v\d+-\d{8}T\d{6}Z\.sqlite/) != nil }
            .sorted { time(in: $0) < time(in: $1) }
    }

    /// Returns the part of a copy's name that contains the time. It sorts like the time.
    private static func time(in name: String) -> Substring { name.split(separator: "-").last ?? "" }

    private static func remove(_ path: String) {
        for suffix in ["", "-journal", "-wal", "-shm"] { unlink(path + suffix) }
    }
}
