import Wire

/// What a part of the client, such as a session or the roulette, hears from the connection. Listeners hear all events in the
/// order in which they happen.
enum LineEvent: Sendable {
    /// How a connection relates to the previous one.
    enum Start: Sendable {
        /// There was no previous connection.
        case first
        /// The connection continues, and nothing is lost.
        case resumed
        /// The server has forgotten the previous connection and all that belonged to it.
        case restarted
    }

    /// A message that answers no request.
    case message(ServerMessage)
    /// The server sent its welcome.
    case connected(Welcome, Start)
    /// The connection dropped. Requests wait.
    case reconnecting
    /// The server has forgotten the connection. The client still tries to connect.
    case expired
    /// The client is closed or offline, and does not try to connect by itself. Nil: the application closed it.
    case ended(ConfabError?)
}
