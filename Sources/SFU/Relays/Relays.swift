import RTC

/// All relays of a router, and how datagrams find them.
final class Relays {
    private let output: RouterOutput
    private let negotiator: Negotiator
    private let host: Relay.Host
    /// In the order in which they were opened.
    private(set) var all: [Relay] = []
    /// Maps the addresses of the other ends to their relays.
    private var byPath: [Path: Relay] = [:]
    private let events = Events()

    /// The events that were not taken yet.
    private final class Events {
        var all: [RelayEvent] = []
    }

    init(output: RouterOutput, negotiator: Negotiator, host: Relay.Host) {
        (self.output, self.negotiator, self.host) = (output, negotiator, host)
    }

    var isEmpty: Bool { all.isEmpty }

    func relay(_ id: RelayID) -> Relay? { all.first { $0.id == id } }

    func takeEvents() -> [RelayEvent] {
        // Called in each iteration of the loop, mostly without relays.
        guard !events.all.isEmpty else { return [] }
        defer { events.all.removeAll(keepingCapacity: true) }
        return events.all
    }

    func open(_ id: RelayID, _ peer: RelayPeer, now: MediaTime) {
        guard relay(id) == nil else { return }
        let new = Relay(id, peer, host, output, negotiator, now: now) { [events] in events.all.append($0) }
        all.append(new)
        // A lite end learns the other one's address by the first check, the controlling end sends it.
        if peer.isController { for path in peer.paths { byPath[path] = new } }
    }

    func close(_ id: RelayID, now: MediaTime) {
        guard let relay = relay(id) else { return }
        all.removeAll { $0 === relay }
        byPath = byPath.filter { $0.value !== relay }
        relay.close(now: now)
    }

    /// Processes a datagram that belongs to no client.
    /// - Returns: false if it belongs to no relay either.
    func receive(
        _ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, arrivedAt: MediaTime
    ) -> Bool {
        guard !all.isEmpty, let relay = relay(of: datagram, on: path) else { return false }
        relay.receive(datagram, on: path, now: now, arrivedAt: arrivedAt)
        if byPath[path] == nil, relay.isValidated(path) { byPath[path] = relay }
        return true
    }

    private func relay(of datagram: UnsafeMutableRawBufferPointer, on path: Path) -> Relay? {
        if let known = byPath[path] { return known }
        guard datagram[0] < 4, let username = STUN.username(of: UnsafeRawBufferPointer(datagram)) else { return nil }
        let ufrag = String(decoding: username.local, as: UTF8.self)
        return all.first { $0.ufrag == ufrag }
    }

    /// Returns whether a connected relay uses this path.
    func isInUse(_ path: Path) -> Bool { !all.isEmpty && byPath[path]?.uses(path) ?? false }

    /// Sends the packets that have arrived since the previous flush.
    func forward() { for relay in all { relay.forward() } }

    func flush(now: MediaTime) { for relay in all { relay.flush(now: now) } }

    func tick(now: MediaTime) { for relay in all { relay.tick(now: now) } }
}

extension Router {
    /// The version of relays, which both ends must have.
    public static var relayVersion: Int { Int(RelayMessage.version) }

    /// Opens one end of a relay to another node. Does nothing if it is open.
    ///
    /// The relay connects when each end has received the other's credentials, and again whenever the connection is lost, until it is
    /// closed. The owner passes credentials on: `takeRelayEvents` returns those of this end.
    public func openRelay(_ id: RelayID, to peer: RelayPeer, now: MediaTime) { relays.open(id, peer, now: now) }

    /// Receives the credentials of the other end of a relay. Does nothing if the relay is not open, or if they are out of date.
    public func receiveRelayCredentials(
        _ id: RelayID, attempt: UInt32, _ credentials: ICECredentials, now: MediaTime
    ) { relays.relay(id)?.receive(credentials, attempt: attempt, now: now) }

    /// Closes a relay for good. What arrived over it ends.
    public func closeRelay(_ id: RelayID, now: MediaTime) { relays.close(id, now: now) }

    /// Lets a client's streams arrive over a relay, as far as they have subscribers. The client is connected to the other node. Its
    /// streams are published like those of any client. Over a relay that does not carry the client's media loop, nothing arrives, so
    /// a client whose loop is not known can be pulled over all relays to its node.
    public func pull(_ client: Key, over id: RelayID, now: MediaTime) { relays.relay(id)?.pull(client, now: now) }

    /// Ends what arrives of a client over a relay.
    public func stopPulling(_ client: Key, over id: RelayID, now: MediaTime) {
        relays.relay(id)?.stopPulling(client, now: now)
    }

    /// Returns the events of relays since the previous call and removes them.
    public func takeRelayEvents() -> [RelayEvent] { relays.takeEvents() }
}
