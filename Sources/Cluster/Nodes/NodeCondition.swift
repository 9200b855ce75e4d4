/// What a node of a cluster does, for operators. The raw values are in responses, in records and in metrics.
public enum NodeCondition: String, CaseIterable, Sendable {
    /// It takes new clients.
    case serving
    /// An operator takes it out of service. Its clients may stay until the grace period ends.
    case draining
    /// It is out of service, and has disconnected all clients once.
    case drained
    /// Its process stops.
    case stopping
    /// It has just started, and has not registered its places in Redis.
    case registering
    /// Its lease is not valid. Its rules wait for PostgreSQL, and its media continues.
    case waiting
    /// Clients and the load balancer do not reach it, so it lets its lease expire.
    case cutOff = "cut_off"
    /// Its lease is valid, but the node that was asked has no record of it.
    case unknown
    /// Its life is over: another node, or its own next life, has fenced it.
    case fenced
}
