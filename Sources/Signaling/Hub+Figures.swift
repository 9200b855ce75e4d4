import Wire

/// Totals for metrics and tests.
extension Hub {
    public var hubSettings: HubSettings { turn.hubSettings }

    public var clientCount: Int { turn.figures.online }
    public var resourceCount: Int { clients.resourceCount }
    public var personCount: Int { people.count }
    public var sessionCount: Int { sessions.count }
    public var matchCount: Int { matches.count }
    public var callCount: Int { calls.count }
    /// People who are present on at least one device.
    public var presentCount: Int { turn.figures.present }
    public var callFigures: (ringing: Int, active: Int) {
        let ringing = calls.count { $0.isRinging }
        return (ringing, calls.count - ringing)
    }
    /// The sockets of these people's clients, and of the person on this socket. Looks at every socket, so this is for failures.
    public func sockets(of identities: Set<IdentityID>, and socket: SocketID?) -> Set<SocketID> {
        let own = socket.flatMap { clients.client(on: $0)?.identity }
        return clients.sockets(of: identities.union(own.map { [$0] } ?? []))
    }
    public var waitingCount: Int { pool.machine.waitingCount }
    /// People who search or chat in the roulette during a call. Tests check that there are none.
    package var peopleInTwoPlaces: [IdentityID] { people.ids { $0.roulette.search != nil && $0.calls.isBusy } }
}
