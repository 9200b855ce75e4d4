/// Decides to which servers the connections of a client go: that for commands to the primary, that for reads of streams to the
/// same server, and that for discovery to one of the Sentinels.
///
/// Invariant: streams are read only from the server to which commands are sent. So the connection for streams follows that for
/// commands, and is given up with it, because a new connection may lead to another server, even at the same address.
struct RedisLocator: Sendable {
    /// A connection of the client.
    enum Link: Hashable, Sendable { case commands, streams, sentinel }

    /// What happened.
    enum Event: Sendable {
        /// A connection needs an address.
        ///
        /// - Parameter failed: the server that was tried last and could not be used.
        case wanted(Link, failed: RedisEndpoint?)
        /// The state of a connection has changed.
        case changed(Link, RedisState)
        /// The result of `ask`.
        case answered(Result<RESPValue, RedisError>)
        /// The Sentinel refused the command of `subscribe`.
        case subscriptionRefused
        /// A message from the Sentinel.
        case pushed([RESPValue])
    }

    /// What the shell must do.
    enum Effect: Equatable, Sendable {
        /// The answer to `wanted`. It can come later.
        case located(Link, RedisEndpoint)
        /// Report to the connection for commands that the primary is another server now.
        case moved(RedisEndpoint)
        /// Give up the connection.
        case abandon(Link, RedisError)
        /// Send this command to the Sentinel, and report the result as `answered`.
        case ask(RedisCommand)
        /// Send this command to the Sentinel, and report if it is refused.
        case subscribe(RedisCommand)
    }

    /// The configured addresses, which are used in turn: of Sentinels, or of servers if there are no Sentinels.
    private let addresses: [RedisEndpoint]
    private var turn = 0
    private var discovery: SentinelDiscovery?
    /// Whether the connections wait for an address.
    private var isSearching = (commands: false, streams: false)
    /// The server to which commands are sent.
    private var server: RedisServer?

    /// - Parameter addresses: at least one.
    init(addresses: [RedisEndpoint], discovery: SentinelDiscovery?) {
        (self.addresses, self.discovery) = (addresses, discovery)
    }

    /// Handles an event and returns what the shell must do.
    mutating func handle(_ event: Event) -> [Effect] {
        switch event {
        case .wanted(.commands, let failed):
            guard discovery != nil else { return next(for: .commands) }
            isSearching.commands = true
            return discover(.wanted(failed: failed))
        case .wanted(.streams, _):
            isSearching.streams = true
            return locateStreams()
        case .wanted(.sentinel, _): return next(for: .sentinel)
        case .changed(.commands, let state): return follow(state)
        case .changed(.sentinel, .ready): return discover(.connected)
        case .changed(.sentinel, _): return discover(.disconnected)
        case .changed(.streams, _): return []
        case .answered(let result): return discover(.answered(result))
        case .subscriptionRefused: return discover(.subscriptionRefused)
        case .pushed(let message): return discover(.pushed(message))
        }
    }

    private mutating func next(for link: Link) -> [Effect] {
        guard !addresses.isEmpty else { return [] }
        defer { turn = (turn + 1) % addresses.count }
        return [.located(link, addresses[turn])]
    }

    private mutating func follow(_ state: RedisState) -> [Effect] {
        guard case .ready(let server) = state else {
            guard self.server != nil else { return [] }
            self.server = nil
            return [.abandon(.streams, RedisError(.connectionLost, "The connection for commands was lost."))]
        }
        self.server = server
        return locateStreams()
    }

    private mutating func locateStreams() -> [Effect] {
        guard isSearching.streams, let server else { return [] }
        isSearching.streams = false
        return [.located(.streams, server.endpoint)]
    }

    private mutating func discover(_ event: SentinelDiscovery.Event) -> [Effect] {
        (discovery?.handle(event) ?? []).compactMap { effect in
            switch effect {
            case .ask(let command): return .ask(command)
            case .subscribe(let command): return .subscribe(command)
            case .useNextSentinel:
                return .abandon(
                    .sentinel, RedisError(.unsuitable, "This Sentinel does not report a primary that works."))
            case .located(let endpoint):
                guard isSearching.commands else { return nil }
                isSearching.commands = false
                return .located(.commands, endpoint)
            case .moved(let endpoint):
                isSearching.commands = false
                return .moved(endpoint)
            }
        }
    }
}
