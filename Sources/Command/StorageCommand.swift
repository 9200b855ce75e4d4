import ArgumentParser
import Server
import Signaling
import Wire

/// The `confab storage` command.
struct StorageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage", abstract: "Move the data between SQLite and PostgreSQL.", subcommands: [Copy.self])

    /// Copies all data from one database to another.
    struct Copy: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Copy all data from one database to another. Stop the server first.",
            discussion: """
                Each place is a data directory (SQLite) or a URL of a PostgreSQL database. The target must be empty. Other users \
                of the machine can see the arguments of a command, so put a password into the environment variable PGPASSWORD \
                or the file ~/.pgpass instead of the URL.

                The project file and the server key are not copied. Keep the data directory.
                """)
        @Option(help: "Data directory or postgresql:// URL to read.") var from: String
        @Option(help: "Data directory or postgresql:// URL to write to.") var to: String

        func run() async throws {
            let copy = try StorageCopy(from: place(from, "--from"), to: place(to, "--to"))
            let tables = try await copy.run { step in
                // A line for each 100 000 rows, so that long work is visible.
                if step.copied % (100 * StorageCopy.rowsAtOnce) == 0 {
                    print("\(step.table): \(step.copied) of \(step.total) rows")
                }
            }
            for table in tables where table.copied > 0 { print("\(table.table): \(table.copied) rows copied") }
            print("All rows were copied, and their numbers agree.")
            for note in try copy.notes() { print(note) }
            try await copy.close()
        }

        private func place(_ text: String, _ option: String) throws -> StorageCopy.Place {
            guard let place = StorageCopy.Place(text) else {
                throw ValidationError(
                    "\(option) must be a data directory or a postgresql:// URL, with a user if it has a port or a password, and "
                        + "special characters as %XX.")
            }
            return place
        }
    }
}
