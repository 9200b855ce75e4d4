import Cluster
import Datagrams
import RTC
import SFU
import Wire

/// Media between this node and others: the ends of relays on the media loops.
extension MediaPlane {
    /// Opens this node's end of a relay. Does nothing if it is open.
    ///
    /// The relay connects when both ends have each other's credentials (`RelayEvent.credentials`).
    /// - Parameter theirs: from the other node's record.
    /// - Returns: false if the record has no usable address, or no fingerprint.
    func open(_ relay: PlannedRelay, to other: NodeTag, _ theirs: NodeRelays) -> Bool {
        let paths = paths(to: relay.addresses, from: relay.loop)
        guard let fingerprint = Fingerprint.sha256(theirs.fingerprint), UInt8(exactly: relay.index) != nil,
            !paths.isEmpty
        else { return false }
        let peer = RelayPeer(fingerprint: fingerprint, paths: paths, isController: relay.isController)
        perform(RelayID(other, relay.index)) { $0.openRelay($1, to: peer, now: .monotonic) }
        return true
    }

    /// Passes on the credentials of the other end of a relay.
    func receiveRelayCredentials(_ id: RelayID, attempt: UInt32, _ credentials: ICECredentials) {
        perform(id) { $0.receiveRelayCredentials($1, attempt: attempt, credentials, now: .monotonic) }
    }

    /// Closes a relay for good: the other node has ended, or will.
    func closeRelay(_ id: RelayID) { perform(id) { $0.closeRelay($1, now: .monotonic) } }

    /// Lets the streams of a client of another node arrive, as far as they have subscribers here.
    func pull(_ client: ConnectionID, over id: RelayID) {
        perform(id) { $0.pull(Key(client), over: $1, now: .monotonic) }
    }

    /// Ends what arrives of a client of another node.
    func stopPulling(_ client: ConnectionID, over id: RelayID) {
        perform(id) { $0.stopPulling(Key(client), over: $1, now: .monotonic) }
    }

    /// Runs a request on the loop that has this node's end of a relay.
    private func perform(_ id: RelayID, _ body: @escaping @Sendable (Router, RelayID) -> Void) {
        perform(.relay, onLoop: Int(id.index) % udpPorts.count) { router in body(router, id) }
    }

    /// Returns the ways to a media loop of another node: from each UDP socket of this node's loop to each address of the same family.
    private func paths(to addresses: [String], from loop: Int) -> [Path] {
        let known = addresses.prefix(MediaAddresses.maxAddresses).compactMap { TransportAddress.parsing($0) }
        let sockets = socketFamilies.indices.contains(loop) ? socketFamilies[loop] : []
        return known.flatMap { remote in
            sockets.indices.filter { sockets[$0].isIPv4 == remote.isIPv4 }.map {
                Path(socket: UInt32($0), remote: remote)
            }
        }
    }
}

extension RelayID {
    /// Identifies a relay to a life of another node.
    init(_ life: NodeTag, _ index: Int) {
        self.init(node: life.node, life: life.life, index: UInt8(clamping: index))
    }
}

extension TransportAddress {
    /// Reads the form of `description`, such as `10.0.0.2:40000` or `[fd00::2]:40000`. Returns nil for any other text.
    static func parsing(_ text: String) -> TransportAddress? {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return nil
        }
        let host = text[..<colon]
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        guard let address = IPAddress(isBracketed ? host.dropFirst().dropLast() : host),
            address.isIPv4 != isBracketed
        else { return nil }
        return address.transportAddress(port: port)
    }
}

extension Fingerprint {
    /// Reads 64 hexadecimal digits. Returns nil for any other text.
    static func sha256(_ text: String) -> Fingerprint? {
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == 64, text.count == 64 else { return nil }
        return Fingerprint(
            .sha256, stride(from: 0, to: 64, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }
}
