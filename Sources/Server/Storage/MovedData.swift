#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The file in a data directory that says that its data is in PostgreSQL.
///
/// A command that lacks `storage.url`, for example because only the server's unit sets it, would otherwise change the old SQLite
/// database, or an empty new one, and answer that the ban was added.
enum MovedData {
    private static func path(_ directory: String) -> String { directory + "/" + DataFiles.moved }

    /// Creates the file, unless it exists.
    static func mark(_ directory: String) throws(DataDirectoryError) {
        let text = "The data is in PostgreSQL (storage.url). Delete this file to use \(DataFiles.database) again.\n"
        try PrivateFiles.create(
            path(directory), contents: Array(text.utf8), suffix: String(UInt64.random(in: 0 ... .max)))
    }

    /// Removes the file if it exists, after the data was moved back.
    static func unmark(_ directory: String) {
        try? FileManager.default.removeItem(atPath: path(directory))
    }

    /// - Throws: `.notAccessible` if the data is in PostgreSQL.
    static func requireAbsence(in directory: String) throws(StorageError) {
        guard FileManager.default.fileExists(atPath: path(directory)) else { return }
        throw StorageError(
            .notAccessible,
            "The data of \(directory) is in PostgreSQL. Set CONFAB_STORAGE_URL or storage.url to the server's URL. To use "
                + "\(DataFiles.database) again, delete \(path(directory)).")
    }
}
