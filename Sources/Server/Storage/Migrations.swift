import GRDB

/// The schema migrations. Never edit a released migration, because existing databases have already run it. To change the
/// schema, append a migration with the next number in its name.
///
/// `eraseDatabaseOnSchemaChange` stays off, also in debug builds: it deletes all data.
enum Migrations {
    static var all: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("v1 blocks, bans and reports") { db in
            try db.execute(sql: version1)
        }
        migrator.registerMigration("v2 people and calls") { db in
            try db.execute(sql: version2)
        }
        migrator.registerMigration("v3 addresses of reports, revoked tokens and the audit log") { db in
            try db.execute(sql: version3)
        }
        migrator.registerMigration("v4 use of profiles") { db in
            try db.execute(sql: version4)
        }
        migrator.registerMigration("v5 persistent rooms") { db in
            try db.execute(sql: version5)
        }
        migrator.registerMigration("v6 rooms opened again") { db in
            try db.execute(sql: version6)
        }
        migrator.registerMigration("v7 projects") { db in
            try db.execute(sql: version7)
        }
        migrator.registerMigration("v8 outbox of webhooks") { db in
            try db.execute(sql: version8)
        }
        migrator.registerMigration("v9 keys of deleted projects") { db in
            try db.execute(sql: version9)
        }
        migrator.registerMigration("v10 size of the outbox") { db in
            try db.execute(sql: version10)
        }
        migrator.registerMigration("v11 archives") { db in
            try db.execute(sql: version11)
        }
        migrator.registerMigration("v12 broadcasts") { db in
            try db.execute(sql: version12)
        }
        migrator.registerMigration("v13 samples of reports") { db in
            try db.execute(sql: version13)
        }
        return migrator
    }

    /// Migrates a database to the current schema. Rejects a database of a newer version, because writing to it could lose data
    /// that the newer version added.
    ///
    /// A database that has to be migrated is checked and copied first.
    ///
    /// Call it under the lock of `SQLiteStorage.open`. The migrator determines the pending migrations before it starts their
    /// transactions, so two processes that start together would both run the first one.
    ///
    /// - Returns: the path of the copy; nil if nothing had to be migrated or the database is new.
    @discardableResult
    static func run(on pool: DatabasePool, _ safety: MigrationSafety = MigrationSafety()) throws -> String? {
        let migrator = all
        guard try !pool.read(migrator.hasBeenSuperseded) else {
            throw StorageError(
                .newerSchema,
                """
                The database \(pool.path) was written by a newer version of Confab. Install that version or a later \
                one, or use another data directory (--data-dir) or a backup made by this version.
                """)
        }
        let applied = try pool.read { try migrator.appliedIdentifiers($0) }
        let isComplete = migrator.migrations.allSatisfy(applied.contains)
        let copy = isComplete || applied.isEmpty ? nil : try safety.copy(pool, version: version(of: applied))
        try migrator.migrate(pool)
        if let copy { try MigrationSafety.deleteOldCopies(beside: copy) }
        return copy
    }

    /// Returns the schema version of a database, for the name of its copy: the highest number with which the name of
    /// an applied migration starts (3 for `v3 …`), or 0.
    private static func version(of applied: Set<String>) -> Int {
        applied.compactMap { Int($0.dropFirst().prefix { $0.isNumber }) }.max() ?? 0
    }

    /// Identities and matches are 16-byte blobs, times are milliseconds since 1970.
    ///
    /// `block.id` defines the order: a new rowid is always greater than those in the table, while `createdAt` can go backwards
    /// if the clock was changed between two runs. `report.id` is AUTOINCREMENT so that a report's number is never reused.
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

    /// A row of `device` without a person is a retired device, whose secret is no longer valid. It is kept permanently, because
    /// the secret never expires.
    ///
    /// `contact.id` defines the order, like `block.id`. A call log is sorted by time and, within the same millisecond, by the
    /// call's ID. A page cursor then needs no row number, which would reveal how many calls the server handles.
    private static let version2 = """
        CREATE TABLE profile (
            identity BLOB NOT NULL PRIMARY KEY CHECK (length(identity) = 16),
            person BLOB NOT NULL UNIQUE CHECK (length(person) = 16),
            name TEXT NOT NULL,
            isVisible INTEGER NOT NULL,
            doNotDisturb INTEGER NOT NULL,
            ringable TEXT NOT NULL
        ) WITHOUT ROWID;

        CREATE TABLE device (
            identity BLOB NOT NULL PRIMARY KEY CHECK (length(identity) = 16),
            person BLOB CHECK (length(person) = 16),
            label TEXT NOT NULL,
            linkedAt INTEGER,
            CHECK ((person IS NULL) = (linkedAt IS NULL))
        ) WITHOUT ROWID;
        CREATE INDEX deviceByPerson ON device (person) WHERE person IS NOT NULL;

        CREATE TABLE contact (
            id INTEGER PRIMARY KEY,
            owner BLOB NOT NULL CHECK (length(owner) = 16),
            other BLOB NOT NULL CHECK (length(other) = 16),
            name TEXT NOT NULL,
            since INTEGER NOT NULL,
            UNIQUE (owner, other)
        );
        CREATE INDEX contactByOther ON contact (other);

        CREATE TABLE openCall (
            call BLOB NOT NULL PRIMARY KEY CHECK (length(call) = 16),
            session TEXT NOT NULL,
            caller BLOB NOT NULL CHECK (length(caller) = 16),
            callee BLOB NOT NULL CHECK (length(callee) = 16),
            callerName TEXT NOT NULL,
            calleeName TEXT NOT NULL,
            video INTEGER NOT NULL,
            placedAt INTEGER NOT NULL,
            ringsUntil INTEGER NOT NULL,
            acceptedAt INTEGER
        ) WITHOUT ROWID;

        CREATE TABLE callLog (
            owner BLOB NOT NULL CHECK (length(owner) = 16),
            call BLOB NOT NULL CHECK (length(call) = 16),
            other BLOB NOT NULL CHECK (length(other) = 16),
            otherName TEXT NOT NULL,
            direction TEXT NOT NULL,
            outcome TEXT NOT NULL,
            video INTEGER NOT NULL,
            at INTEGER NOT NULL,
            durationMs INTEGER,
            isSeen INTEGER NOT NULL,
            PRIMARY KEY (owner, call)
        ) WITHOUT ROWID;
        CREATE INDEX callLogByOwner ON callLog (owner, at, call);
        CREATE INDEX callLogUnseen ON callLog (owner, at, call) WHERE NOT isSeen;
        CREATE INDEX callLogByOther ON callLog (other);
        CREATE INDEX callLogByTime ON callLog (at);

        CREATE TABLE pushEndpoint (
            id INTEGER PRIMARY KEY,
            identity BLOB NOT NULL CHECK (length(identity) = 16),
            device BLOB NOT NULL CHECK (length(device) = 16),
            kind TEXT NOT NULL,
            endpoint TEXT NOT NULL,
            p256dh TEXT,
            auth TEXT,
            sandbox INTEGER,
            createdAt INTEGER NOT NULL,
            UNIQUE (identity, endpoint)
        );
        CREATE INDEX pushEndpointByDevice ON pushEndpoint (device);
        """

    /// Reports made before this version have no addresses. `revokedToken.fingerprint` is a hash of the token, not the token.
    private static let version3 = """
        ALTER TABLE report ADD COLUMN reporterAddress TEXT NOT NULL DEFAULT '';
        ALTER TABLE report ADD COLUMN againstAddress TEXT NOT NULL DEFAULT '';
        CREATE INDEX reportByReporter ON report (reporter);
        CREATE INDEX reportByAgainst ON report (against);

        CREATE TABLE revokedToken (
            session TEXT NOT NULL,
            fingerprint BLOB NOT NULL,
            expiresAt INTEGER NOT NULL,
            PRIMARY KEY (session, fingerprint)
        ) WITHOUT ROWID;
        CREATE INDEX revokedTokenByTime ON revokedToken (expiresAt);

        CREATE TABLE mutedSession (
            session TEXT NOT NULL PRIMARY KEY,
            mutedAt INTEGER NOT NULL
        ) WITHOUT ROWID;

        CREATE TABLE audit (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            at INTEGER NOT NULL,
            actor TEXT NOT NULL,
            action TEXT NOT NULL,
            subject TEXT NOT NULL,
            detail TEXT NOT NULL
        );
        CREATE INDEX auditByTime ON audit (at);
        """

    /// Profiles from before this version count as used at the time of the migration.
    private static let version4 = """
        ALTER TABLE profile ADD COLUMN usedAt INTEGER NOT NULL DEFAULT 0;
        UPDATE profile SET usedAt = CAST(strftime('%s', 'now') AS INTEGER) * 1000;
        CREATE INDEX profileByUse ON profile (usedAt);
        """

    /// `bans` and `revokedTokens` are lists of 16-byte values in one blob, because the lists are only read and written
    /// as a whole. `passwordHash` is keyed with the server key, which is not in the database.
    private static let version5 = """
        CREATE TABLE room (
            id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
            name TEXT NOT NULL,
            media TEXT NOT NULL,
            capacity INTEGER NOT NULL,
            locked INTEGER NOT NULL,
            lobby INTEGER NOT NULL,
            chat INTEGER NOT NULL,
            share TEXT NOT NULL,
            passwordSalt BLOB,
            passwordHash BLOB,
            creator BLOB CHECK (length(creator) = 16),
            hasHostTokens INTEGER NOT NULL,
            bans BLOB NOT NULL CHECK (length(bans) % 16 = 0),
            revokedTokens BLOB NOT NULL CHECK (length(revokedTokens) % 16 = 0),
            createdAt INTEGER NOT NULL,
            usedAt INTEGER NOT NULL,
            CHECK ((passwordSalt IS NULL) = (passwordHash IS NULL))
        ) WITHOUT ROWID;
        CREATE INDEX roomByCreator ON room (creator) WHERE creator IS NOT NULL;
        """

    /// A row without a secret has the additional properties of the main project.
    private static let version7 = """
        CREATE TABLE project (
            apiKey TEXT NOT NULL PRIMARY KEY,
            secret TEXT,
            previousSecret TEXT,
            previousUntil INTEGER,
            name TEXT NOT NULL,
            createdAt INTEGER NOT NULL,
            applicationID TEXT,
            publicKey TEXT,
            webhookURL TEXT,
            webhookSecret TEXT,
            maxConnections INTEGER
        ) WITHOUT ROWID;
        """

    /// A new project must not get the API key of a deleted one: the session IDs of the deleted project would be valid again.
    ///
    /// Earlier versions could store a room's creator again after the person was deleted. Clear it, because a lobby would
    /// wait for this person forever. A retired identity with linked devices belongs to a person who still exists.
    private static let version9 = """
        CREATE TABLE deletedProject (apiKey TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
        INSERT OR IGNORE INTO deletedProject SELECT subject FROM audit WHERE action = 'project.delete';

        UPDATE room SET creator = NULL
            WHERE creator IN (SELECT identity FROM device WHERE person IS NULL)
                AND creator NOT IN (SELECT person FROM device WHERE person IS NOT NULL);
        """

    private static let version6 = "ALTER TABLE room ADD COLUMN formerID BLOB CHECK (length(formerID) = 16)"

    /// `webhookEvent.id` is AUTOINCREMENT, because the event of a reused number would be skipped: its number is below
    /// the position up to which the server has read. Triggers keep the number of events in `webhookBacklog`, because
    /// counting them for each new event would read all of them.
    private static let version8 = """
        CREATE TABLE webhookEvent (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            delivery BLOB NOT NULL DEFAULT (randomblob(16)),
            project TEXT NOT NULL,
            session TEXT NOT NULL,
            at INTEGER NOT NULL,
            body BLOB NOT NULL
        );
        CREATE INDEX webhookEventByProject ON webhookEvent (project, id);
        CREATE INDEX webhookEventBySession ON webhookEvent (session, id);

        CREATE TABLE webhookOpen (
            id INTEGER PRIMARY KEY,
            project TEXT NOT NULL,
            session TEXT NOT NULL,
            kind INTEGER NOT NULL,
            subject TEXT NOT NULL,
            detail BLOB NOT NULL,
            UNIQUE (session, kind, subject)
        );
        CREATE INDEX webhookOpenByKind ON webhookOpen (kind, id);
        CREATE INDEX webhookOpenByProject ON webhookOpen (project);

        CREATE TABLE webhookBacklog (
            project TEXT NOT NULL PRIMARY KEY,
            waiting INTEGER NOT NULL,
            refused INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        CREATE TRIGGER webhookEventAdded AFTER INSERT ON webhookEvent BEGIN
            INSERT INTO webhookBacklog (project, waiting) VALUES (NEW.project, 1)
                ON CONFLICT (project) DO UPDATE SET waiting = waiting + 1;
        END;
        CREATE TRIGGER webhookEventRemoved AFTER DELETE ON webhookEvent BEGIN
            UPDATE webhookBacklog SET waiting = waiting - 1 WHERE project = OLD.project;
        END;
        """

    /// `webhookBacklog.bytes` estimates the disk space of a project's waiting events, with their rows and indexes. `reserved`
    /// estimates the space of what was reported as created, and of the event for its end, so adding that event never
    /// increases the sum of both.
    private static let version10 = """
        ALTER TABLE webhookBacklog ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE webhookBacklog ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
        DROP TRIGGER webhookEventAdded;
        DROP TRIGGER webhookEventRemoved;
        CREATE TRIGGER webhookEventAdded AFTER INSERT ON webhookEvent BEGIN
            INSERT INTO webhookBacklog (project, waiting, bytes) VALUES (NEW.project, 1, length(NEW.body) + 512)
                ON CONFLICT (project) DO UPDATE SET waiting = waiting + 1, bytes = bytes + excluded.bytes;
        END;
        CREATE TRIGGER webhookEventRemoved AFTER DELETE ON webhookEvent BEGIN
            UPDATE webhookBacklog SET waiting = waiting - 1, bytes = bytes - length(OLD.body) - 512
                WHERE project = OLD.project;
        END;
        CREATE TRIGGER webhookOpenAdded AFTER INSERT ON webhookOpen BEGIN
            INSERT INTO webhookBacklog (project, waiting, reserved)
                VALUES (NEW.project, 0, 2 * length(NEW.detail) + 1536)
                ON CONFLICT (project) DO UPDATE SET reserved = reserved + excluded.reserved;
        END;
        CREATE TRIGGER webhookOpenRemoved AFTER DELETE ON webhookOpen BEGIN
            UPDATE webhookBacklog SET reserved = reserved - 2 * length(OLD.detail) - 1536 WHERE project = OLD.project;
        END;
        UPDATE webhookBacklog SET
            bytes = (SELECT COALESCE(SUM(length(body) + 512), 0) FROM webhookEvent AS e
                WHERE e.project = webhookBacklog.project),
            reserved = (SELECT COALESCE(SUM(2 * length(detail) + 1536), 0) FROM webhookOpen AS o
                WHERE o.project = webhookBacklog.project);
        CREATE INDEX webhookEventByAge ON webhookEvent (project, at);
        """

    /// `detail` has everything that no statement searches for, as JSON.
    private static let version11 = """
        CREATE TABLE archive (
            id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
            project TEXT NOT NULL,
            session TEXT NOT NULL,
            status TEXT NOT NULL,
            node TEXT NOT NULL,
            createdAt INTEGER NOT NULL,
            updatedAt INTEGER NOT NULL,
            detail BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX archiveByProject ON archive (project, createdAt);
        CREATE INDEX archiveBySession ON archive (session, createdAt);
        CREATE INDEX archiveByStatus ON archive (status, node, updatedAt);
        """

    /// `detail` has everything that no statement searches for, as JSON.
    private static let version12 = """
        CREATE TABLE broadcast (
            id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
            project TEXT NOT NULL,
            session TEXT NOT NULL,
            status TEXT NOT NULL,
            node TEXT NOT NULL,
            createdAt INTEGER NOT NULL,
            updatedAt INTEGER NOT NULL,
            detail BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX broadcastByProject ON broadcast (project, createdAt);
        CREATE INDEX broadcastBySession ON broadcast (session, createdAt);
        CREATE INDEX broadcastByStatus ON broadcast (status, node, updatedAt);
        """

    /// The latest sample of the reported person's camera.
    private static let version13 = """
        CREATE TABLE reportSample (
            report INTEGER NOT NULL PRIMARY KEY REFERENCES report (id) ON DELETE CASCADE,
            jpeg BLOB NOT NULL,
            at INTEGER NOT NULL,
            verdict TEXT,
            warnings INTEGER NOT NULL,
            blurs INTEGER NOT NULL
        );
        """
}
