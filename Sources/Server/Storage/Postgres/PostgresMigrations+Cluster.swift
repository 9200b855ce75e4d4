import Cluster

extension PostgresMigrations {
    /// The ledger of a cluster (`PostgresLedger`), and which life of a node has which calls. Without a cluster these tables stay
    /// empty.
    ///
    /// `fenced` is part of a key, so a statement that changes it takes the lock `FOR UPDATE` on the row and waits for the commits of
    /// that life, which hold `FOR KEY SHARE`. No renewal of a lease waits for a commit, because `aliveUntil` is part of no key. A
    /// node number has at most one life that is not fenced. `heir` is the tag of the life that fenced it, as text. `connection`
    /// is the ID of the connection on which the node writes, as in `owner`.
    ///
    /// `judge` has one row, and `epoch` one for each state of Redis under which places have been claimed.
    static let version2 = """
        CREATE SEQUENCE nodeLife AS BIGINT MINVALUE 1 MAXVALUE \(NodeTag.lastLife) NO CYCLE;

        CREATE TABLE node (
            life BIGINT PRIMARY KEY CHECK (life BETWEEN 1 AND \(NodeTag.lastLife)),
            node BIGINT NOT NULL CHECK (node BETWEEN 1 AND \(UInt16.max)),
            process TEXT NOT NULL,
            started TIMESTAMPTZ NOT NULL,
            aliveUntil TIMESTAMPTZ NOT NULL,
            fenced BOOLEAN NOT NULL DEFAULT FALSE,
            voidFrom TIMESTAMPTZ,
            heir TEXT,
            epoch BIGINT,
            connection BYTEA CHECK (length(connection) = 16),
            UNIQUE (life, fenced),
            CHECK (fenced = (voidFrom IS NOT NULL) AND fenced = (heir IS NOT NULL))
        );
        CREATE UNIQUE INDEX nodeUnfenced ON node (node) WHERE NOT fenced;

        CREATE TABLE judge (
            timeline TEXT NOT NULL,
            started TIMESTAMPTZ NOT NULL,
            since TIMESTAMPTZ NOT NULL
        );
        INSERT INTO judge (timeline, started, since) VALUES ('', pg_postmaster_start_time(), clock_timestamp());

        CREATE TABLE epoch (
            number BIGINT PRIMARY KEY,
            store TEXT COLLATE "C" NOT NULL UNIQUE,
            since TIMESTAMPTZ NOT NULL
        );

        CREATE TABLE callLife (
            call BYTEA PRIMARY KEY REFERENCES openCall (call) ON DELETE CASCADE,
            life BIGINT NOT NULL
        );
        CREATE INDEX callLifeByLife ON callLife (life);
        """

    /// What operators have requested of lives through other nodes. It is not a column of `node`: adding one would lock that table, and
    /// the nodes that run meanwhile could not renew their leases.
    static let version6 = """
        CREATE TABLE nodeRequest (
            life BIGINT PRIMARY KEY,
            state TEXT NOT NULL CHECK (state IN ('serving', 'draining'))
        );
        """
}
