import GRDB

/// The schema's history. A migration that was released is never edited: files in the field have run it. A change of the
/// schema is a new migration at the end, with a name that starts with the next number.
///
/// `eraseDatabaseOnSchemaChange` stays off, in debug builds too: it deletes people's data.
enum Migrations {
    static var all: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("v1 blocks, bans and reports") { db in
            try db.execute(sql: version1)
        }
        return migrator
    }

    /// Brings a file up to date, or refuses one from the future: writing with old rules into a new schema could lose
    /// what the later version added.
    ///
    /// Call it under the lock of `SQLiteStorage.open`: the migrator looks which migrations are due before it begins
    /// their transactions, so two processes that start together would both run the first.
    static func run(on pool: DatabasePool) throws {
        let migrator = all
        guard try !pool.read(migrator.hasBeenSuperseded) else {
            throw StorageError(
                .newerSchema,
                """
                The database \(pool.path) was written by a newer version of Confab: install that version or a later \
                one, or start with another data directory (--data-dir) or with a backup made by this version.
                """)
        }
        try migrator.migrate(pool)
    }

    /// Identities and matches are 16-byte blobs, times are milliseconds since 1970.
    ///
    /// `block.id` gives the order: a table's next rowid is always above those in it, while `createdAt` can step back
    /// when the wall clock was set between two runs. `report.id` is AUTOINCREMENT so that "report 12" in an operator's
    /// notes never comes to mean another one.
    private static let version1 = """
        CREATE TABLE block (
            id INTEGER PRIMARY KEY,
            owner BLOB NOT NULL CHECK (length(owner) = 16),
            blocked BLOB NOT NULL CHECK (length(blocked) = 16),
            createdAt INTEGER NOT NULL,
            UNIQUE (owner, blocked)
        );
        CREATE INDEX blockByOwner ON block (owner);

        CREATE TABLE ban (
            id INTEGER PRIMARY KEY,
            identity BLOB UNIQUE CHECK (length(identity) = 16),
            address TEXT UNIQUE,
            reason TEXT NOT NULL,
            createdAt INTEGER NOT NULL,
            expiresAt INTEGER,
            CHECK ((identity IS NULL) <> (address IS NULL))
        );

        CREATE TABLE report (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            match BLOB NOT NULL CHECK (length(match) = 16),
            reporter BLOB NOT NULL CHECK (length(reporter) = 16),
            against BLOB NOT NULL CHECK (length(against) = 16),
            reason TEXT NOT NULL,
            createdAt INTEGER NOT NULL,
            closedAt INTEGER
        );
        CREATE INDEX reportByTime ON report (createdAt);

        CREATE TABLE reportLine (
            report INTEGER NOT NULL REFERENCES report (id) ON DELETE CASCADE,
            position INTEGER NOT NULL,
            author BLOB NOT NULL CHECK (length(author) = 16),
            text TEXT NOT NULL,
            at INTEGER NOT NULL,
            PRIMARY KEY (report, position)
        ) WITHOUT ROWID;
        """
}
