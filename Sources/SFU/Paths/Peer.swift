import RTC

/// One peer connection between a client and the server: its paths, its state, and the half that handles its media.
final class Peer {
    let side: Side
    let link: PeerLink
    let half: any PeerHalf
    /// The session id in the `o=` line, which identifies the client's `RTCPeerConnection` (RFC 8829 §5.2.1).
    let originSessionID: String
    private(set) var remoteUfrag = ""
    /// The certificate fingerprint of the client's first description; nil before that. A different one requires a new
    /// connection (RFC 8842 §3.1).
    private(set) var remoteFingerprint: Fingerprint?
    /// The number of answers so far, used as the version in `o=` (RFC 3264 §8).
    private(set) var descriptions: UInt64 = 0
    /// The local username fragments that the client's checks may use, including those from before an ICE restart.
    private(set) var ufrags: [String] = []
    /// The peer's current and previous paths, the newest last.
    private(set) var paths: [Path] = []
    /// The path that was selected last; nil before the first.
    private var lastPath: Path?
    /// The sockets of TCP connections that closed since the previous tick, at most as many as there were paths.
    private var closedSockets: [UInt32] = []
    /// When the client's last RTCP packet arrived; nil before the first.
    private(set) var heardAt: MediaTime?
    private var hasFailed = false
    /// The value of the connection's latest `RouterEvent.connected`; false before the first.
    private var wasConnected = false
    /// Whether media could be sent to the client at the last check.
    private var wasWritable = false

    static let maxPaths = 16

    init(side: Side, link: PeerLink, half: any PeerHalf, originSessionID: String) {
        (self.side, self.link, self.half, self.originSessionID) = (side, link, half, originSessionID)
    }

    var client: Key { link.client }
    var transport: PeerTransport { link.transport }

    /// Whether the connection has ended and can no longer carry anything.
    var isOver: Bool {
        switch transport.state {
        case .closed, .failed(.dtls): true
        case .new, .connecting, .connected, .disconnected, .failed(.noPath): hasFailed
        }
    }

    // MARK: Descriptions

    func countDescription() { descriptions += 1 }

    /// Records what the client's description says about its transport.
    func setRemote(ufrag: String, _ fingerprint: Fingerprint) {
        (remoteUfrag, remoteFingerprint) = (ufrag, fingerprint)
    }

    /// Adds a local username fragment.
    /// - Returns: the fragments to forget. The two most recent ones stay, because checks may use the previous one until
    ///   the ICE restart is complete (RFC 8445 §9).
    func add(ufrag: String) -> [String] {
        ufrags.append(ufrag)
        var old: [String] = []
        while ufrags.count > 2 { old.append(ufrags.removeFirst()) }
        return old
    }

    // MARK: Paths

    /// Adds a validated path.
    /// - Returns: the path to forget, if there are too many.
    func add(_ path: Path) -> Path? {
        paths.removeAll { $0 == path }
        paths.append(path)
        guard paths.count > Self.maxPaths,
            let index = paths.firstIndex(where: { $0 != transport.selectedPath })
        else { return nil }
        return paths.remove(at: index)
    }

    /// Removes the path of a closed TCP connection. The next tick removes it from the transport.
    func remove(_ path: Path) {
        paths.removeAll { $0 == path }
        half.wake()
        if path.isTCP { closedSockets.append(path.socket) }
    }

    /// Removes the paths of closed TCP connections from the transport.
    /// - Parameter body: called after each of them.
    func removeClosedSockets(now: MediaTime, _ body: () -> Void) {
        while let socket = closedSockets.popLast() {
            transport.remove(socket: socket, now: now)
            body()
        }
    }

    func heard(now: MediaTime) { heardAt = now }

    // MARK: Changes

    /// Tells the half whether the path or the state has changed, and reports each connection, disconnection and failure
    /// once.
    func noteChanges(to output: RouterOutput) {
        if let path = transport.selectedPath, path != lastPath {
            if lastPath != nil { half.pathChanged() }
            lastPath = path
        }
        let isWritable = transport.isWritable
        if isWritable != wasWritable {
            wasWritable = isWritable
            half.writabilityChanged()
        }
        let isConnected = transport.state == .connected
        if isConnected != wasConnected {
            wasConnected = isConnected
            output.report(.connected(client: client, side, isConnected))
        }
        if case .failed(.dtls(let failure)) = transport.state, !hasFailed {
            hasFailed = true
            let reason = failure == .fingerprint ? PeerFailure.fingerprint : .handshake
            output.report(.failed(client: client, side, reason))
        }
    }
}
