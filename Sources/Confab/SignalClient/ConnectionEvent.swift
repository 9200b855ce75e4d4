import Wire

/// An event of the connection, for the client's features, such as a session or the roulette. Listeners receive all
/// events in the order in which they happen.
enum ConnectionEvent: Sendable {
    /// How a connection relates to the previous one.
    enum Start: Sendable {
        /// There was no previous connection.
        case first
        /// The connection continues, and nothing is lost.
        case resumed
        /// The server has discarded the previous connection and everything that belonged to it.
        case restarted
    }

    /// A message that is not an answer to a request.
    case message(ServerMessage)
    /// The server sent its welcome.
    case connected(Welcome, Start)
    /// The connection dropped. Requests are queued.
    case reconnecting
    /// The server has discarded the connection. The client keeps trying to connect.
    case expired
    /// The client is closed or offline, and does not reconnect automatically. The error is nil if the application
    /// closed the client.
    case ended(ConfabError?)
}
