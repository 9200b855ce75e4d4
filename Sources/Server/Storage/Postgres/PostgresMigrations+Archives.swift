extension PostgresMigrations {
    /// `archive.detail` has everything that no statement searches for, as JSON.
    static let version3 = """
        CREATE TABLE archive (
            id BYTEA PRIMARY KEY CHECK (length(id) = 16),
            project TEXT COLLATE "C" NOT NULL,
            session TEXT COLLATE "C" NOT NULL,
            status TEXT NOT NULL,
            node TEXT COLLATE "C" NOT NULL,
            createdAt BIGINT NOT NULL,
            updatedAt BIGINT NOT NULL,
            detail BYTEA NOT NULL
        );
        CREATE INDEX archiveByProject ON archive (project, createdAt);
        CREATE INDEX archiveBySession ON archive (session, createdAt);
        CREATE INDEX archiveByStatus ON archive (status, node, updatedAt);
        """

    /// `broadcast.detail` has everything that no statement searches for, as JSON.
    static let version4 = """
        CREATE TABLE broadcast (
            id BYTEA PRIMARY KEY CHECK (length(id) = 16),
            project TEXT COLLATE "C" NOT NULL,
            session TEXT COLLATE "C" NOT NULL,
            status TEXT NOT NULL,
            node TEXT COLLATE "C" NOT NULL,
            createdAt BIGINT NOT NULL,
            updatedAt BIGINT NOT NULL,
            detail BYTEA NOT NULL
        );
        CREATE INDEX broadcastByProject ON broadcast (project, createdAt);
        CREATE INDEX broadcastBySession ON broadcast (session, createdAt);
        CREATE INDEX broadcastByStatus ON broadcast (status, node, updatedAt);
        """

    /// The latest sample of a reported person's camera.
    static let version5 = """
        CREATE TABLE reportSample (
            report BIGINT PRIMARY KEY REFERENCES report (id) ON DELETE CASCADE,
            jpeg BYTEA NOT NULL,
            at BIGINT NOT NULL,
            verdict TEXT,
            warnings BIGINT NOT NULL,
            blurs BIGINT NOT NULL
        );
        """
}
