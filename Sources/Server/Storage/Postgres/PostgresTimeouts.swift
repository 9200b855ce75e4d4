import Wire

/// How long a connection to PostgreSQL waits, and how long PostgreSQL waits for it.
struct PostgresTimeouts: Sendable {
    /// The time in seconds to connect to each of the URL's hosts. libpq takes at least 2.
    var connect = 5
    /// The longest pause between two attempts to connect.
    var longestPause: Duration = .seconds(2)
    /// How long the server may work on a statement. Confab's statements take milliseconds. Zero is no limit.
    var statement: Duration = .seconds(10)
    /// How long to wait for an answer. Longer than the server's timeout, so that only a server that does not answer at all costs
    /// the connection.
    var answer: Duration = .seconds(12)
    /// How long a statement may wait for a lock. Zero is no limit but that of the statement.
    var lock: Duration = .zero
    /// How long the server keeps a transaction whose client sends nothing. Zero is no limit.
    var idleTransaction: Duration = .seconds(12)
    /// How long the server keeps a session whose client sends nothing. Zero is no limit.
    var idleSession: Duration = .zero
    /// After an outage of the network, both sides end the session when this is over, and the server releases the session's locks:
    /// the time in seconds until TCP asks a silent peer, the time between these questions, and their number. By default it would
    /// take two hours. On a Unix socket these settings have no effect.
    var keepalive = (idle: 10, interval: 5, count: 3)
    /// How long data that was sent may wait for its acknowledgment.
    var acknowledgment: Duration = .seconds(15)

    /// For work that may take as long as it needs. TCP still notices a server that is gone.
    static let long: Duration = .seconds(86_400)

    static let standard = PostgresTimeouts()

    /// For a copy of the whole database.
    static let patient: PostgresTimeouts = {
        var timeouts = PostgresTimeouts()
        (timeouts.statement, timeouts.answer, timeouts.idleTransaction) = (.zero, long, .zero)
        return timeouts
    }()

    /// For the storage of a node in a cluster. Writing transactions of all nodes run one after the other, and a fence waits for
    /// one of the life that it ends. So a node that stops in the middle of a transaction must not hold it for long.
    static let node: PostgresTimeouts = {
        var timeouts = PostgresTimeouts()
        timeouts.idleTransaction = .seconds(2)
        return timeouts
    }()

    /// For the ledger of a cluster. A lease is valid for less than three seconds, so an answer that takes longer than two is of no
    /// use. PostgreSQL gives up a statement before the client does, and ends the session of a node that is gone.
    static let ledger: PostgresTimeouts = {
        var timeouts = PostgresTimeouts()
        (timeouts.connect, timeouts.longestPause) = (2, .milliseconds(200))
        (timeouts.statement, timeouts.answer, timeouts.lock) = (.milliseconds(1500), .seconds(2), .milliseconds(500))
        (timeouts.idleTransaction, timeouts.idleSession) = (.seconds(2), .seconds(10))
        (timeouts.keepalive, timeouts.acknowledgment) = ((idle: 1, interval: 1, count: 2), .seconds(2))
        return timeouts
    }()

    /// The settings of libpq, without the URL. The URL can override them.
    var keywords: [(String, String)] {
        [
            ("connect_timeout", "\(connect)"), ("application_name", "confab"), ("keepalives_idle", "\(keepalive.idle)"),
            ("keepalives_interval", "\(keepalive.interval)"), ("keepalives_count", "\(keepalive.count)"),
            ("tcp_user_timeout", "\(acknowledgment.wholeMilliseconds)"), ("target_session_attrs", "read-write"),
        ]
    }

    /// The statements that set the server's timeouts for a session.
    var settings: String {
        """
        SET statement_timeout = \(statement.wholeMilliseconds);
        SET lock_timeout = \(lock.wholeMilliseconds);
        SET idle_in_transaction_session_timeout = \(idleTransaction.wholeMilliseconds);
        SET idle_session_timeout = \(idleSession.wholeMilliseconds);
        SET tcp_keepalives_idle = \(keepalive.idle);
        SET tcp_keepalives_interval = \(keepalive.interval);
        SET tcp_keepalives_count = \(keepalive.count);
        SET tcp_user_timeout = \(acknowledgment.wholeMilliseconds)
        """
    }
}
