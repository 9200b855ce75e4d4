/// The transport of one peer connection: ICE selects the path, DTLS negotiates keys over it, and SRTP protects the media
/// (RFC 8827 §6). Not thread-safe.
///
/// The owner passes the transport every datagram of the peer, calls `handleTimeout` at `nextTimeout`, and checks `state` after
/// either.
///
/// ```swift
/// let transport = PeerTransport(server: ICECredentials(using: &random), certificate: certificate)
/// transport.setRemote(theirs, fingerprint: fingerprint)
/// switch transport.receive(datagram, on: path, now: now, sink: socket) {
/// case .rtp(let length): forward(datagram[..<length])
/// case .rtcp(let length): read(datagram[..<length])
/// case .nothing: break
/// }
/// ```
public final class PeerTransport {
    // The fields that each packet needs come first, so that they share few cache lines.
    @usableFromInline private(set) var sender: SRTPSender?
    /// The path for media; nil while no pair is nominated, or after all paths are lost.
    public private(set) var selectedPath: Path?
    private var receiver: SRTPReceiver?

    private let role: DTLSConnection.Role
    private let certificate: DTLSCertificate
    private let maxSources: Int
    private var random: any RandomNumberGenerator
    private var agent: TransportAgent
    private var remoteFingerprint: Fingerprint?
    /// The DTLS connection; nil before the handshake starts and after its memory is released.
    private var handshake: DTLSConnection?

    public private(set) var state = TransportState.new
    /// The negotiated SRTP profile; nil before the handshake is complete.
    public private(set) var profile: SRTPProfile?
    public private(set) var counters = TransportCounters()
    /// When `handleTimeout` must be called next; nil if nothing is scheduled. The value is stored, because it is read
    /// far more often than it changes.
    public private(set) var nextTimeout: MediaTime?

    /// Creates the server side, which uses ICE-lite and has the server role in DTLS. It never sends before it receives.
    ///
    /// - Parameter maxSources: the maximum number of SSRCs that the remote side may send.
    public init(
        server local: ICECredentials, certificate: DTLSCertificate, maxSources: Int = SRTPReceiver.maxSources
    ) {
        role = .server
        (self.certificate, self.maxSources) = (certificate, maxSources)
        random = SystemRandomNumberGenerator()
        agent = .lite(ICELiteAgent(local: local))
    }

    /// Creates the client side, which is controlling in ICE and has the client role in DTLS. Checks begin after `setRemote` and
    /// `add`.
    ///
    /// - Parameter maxSources: the maximum number of SSRCs that the remote side may send.
    public init(
        client local: ICECredentials, certificate: DTLSCertificate, maxSources: Int = SRTPReceiver.maxSources,
        random: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        role = .client
        (self.certificate, self.maxSources) = (certificate, maxSources)
        var random = random
        agent = .controlling(ICEControllingAgent(local: local, using: &random))
        self.random = random
    }

    public var local: ICECredentials { agent.local }
    /// Returns whether ICE has validated this path.
    public func isValidated(_ path: Path) -> Bool { agent.isValidated(path) }
    public var localFingerprint: Fingerprint { certificate.fingerprint }

    /// Sets the parameters of the remote description. A changed fingerprint is rejected, because it would need a new DTLS
    /// association (RFC 8842 §3.1) and thus a new transport.
    /// - Returns: false if the fingerprint is rejected.
    @discardableResult
    public func setRemote(_ remote: ICECredentials, fingerprint: Fingerprint) -> Bool {
        guard remoteFingerprint == nil || remoteFingerprint == fingerprint else { return false }
        remoteFingerprint = fingerprint
        agent.setRemote(remote)
        reschedule()
        return true
    }

    /// Adds a pair of a local socket and a server candidate. Has no effect on the server side.
    public func add(_ path: Path, priority: UInt32) {
        agent.add(path, priority: priority)
        reschedule()
    }

    /// Restarts ICE (RFC 8445 §9). The keys stay, and the path stays until a new path is nominated.
    public func restart(local: ICECredentials, remote: ICECredentials) {
        agent.restart(local: local, remote: remote)
        if state == .failed(.noPath) { state = .connecting }
        reschedule()
    }

    /// Removes all paths of a closed socket.
    public func remove(socket: UInt32, now: MediaTime) {
        agent.remove(socket: socket)
        settle(now)
    }

    // MARK: Datagrams

    /// Processes one datagram. Media is decrypted in place, at the start of the datagram.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink
    ) -> Received {
        guard let first = datagram.first else { return .nothing }
        // RFC 7983 §7: the first byte identifies the protocol.
        switch first {
        case 128...191: return receiveMedia(datagram, on: path)
        case 0...3: receiveSTUN(UnsafeRawBufferPointer(datagram), on: path, now, sink)
        case 20...63: receiveDTLS(UnsafeRawBufferPointer(datagram), on: path, now, sink)
        default: counters.malformed &+= 1
        }
        return .nothing
    }

    private func receiveMedia(_ datagram: UnsafeMutableRawBufferPointer, on path: Path) -> Received {
        guard let receiver else {
            counters.early &+= 1
            return .nothing
        }
        guard path == selectedPath || agent.isValidated(path) else {
            counters.unvalidated &+= 1
            return .nothing
        }
        // RFC 5761 §4: packet types 192 to 223 are RTCP.
        let isControl = datagram.count > 1 && (192...223).contains(datagram[1])
        switch isControl ? receiver.unprotectControl(datagram) : receiver.unprotect(datagram) {
        case .failed(let failure):
            counters.count(failure)
            return .nothing
        case .ok(let length):
            // The peer has the keys, so it will not retransmit its final flight. Release the handshake.
            if let handshake {
                handshake.releaseHandshake()
                self.handshake = nil
                reschedule()
            }
            return isControl ? .rtcp(length) : .rtp(length)
        }
    }

    /// Processes a datagram from a path that is not validated. If it is media or RTCP from this peer, checks whether
    /// the peer is at that address. The peer's answer validates and selects the path. The datagram itself is dropped.
    /// - Returns: whether the datagram is from this peer.
    public func receiveUnvalidated(
        _ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink
    ) -> Bool {
        guard state == .connected, let receiver, !agent.isValidated(path) else { return false }
        let isControl = datagram.count > 1 && (192...223).contains(datagram[1])
        if case .failed(let failure) = isControl ? receiver.unprotectControl(datagram) : receiver.unprotect(datagram) {
            // RTCP may be tried with the keys of several peers, so do not count its failures.
            if !isControl { counters.count(failure) }
            return false
        }
        agent.check(path, now: now, sink: sink, using: &random)
        return true
    }

    private func receiveSTUN(
        _ datagram: UnsafeRawBufferPointer, on path: Path, _ now: MediaTime, _ sink: any DatagramSink
    ) {
        guard !isOver else { return }
        if case .dropped(let drop) = agent.handle(datagram, on: path, now: now, sink: sink, using: &random) {
            counters.count(drop)
            return
        }
        settle(now)
        beginHandshake(now, sink)
    }

    private func receiveDTLS(
        _ datagram: UnsafeRawBufferPointer, on path: Path, _ now: MediaTime, _ sink: any DatagramSink
    ) {
        guard !isOver else { return }
        // Ignore DTLS on paths that are not validated. Otherwise anyone who sends the first ClientHello could start
        // the handshake.
        guard agent.isValidated(path) else { return counters.unvalidated &+= 1 }
        guard let remoteFingerprint else { return counters.early &+= 1 }
        if role == .server, handshake == nil, sender == nil {
            handshake = DTLSConnection(
                .server, certificate: certificate, remote: remoteFingerprint, path: path, now: now)
        }
        guard let handshake else { return counters.late &+= 1 }
        if !handshake.receive(datagram, on: path, now: now, sink: sink) { counters.malformed &+= 1 }
        advance(handshake)
        settle(now)
    }

    /// Starts the handshake as the client, once a path is validated.
    private func beginHandshake(_ now: MediaTime, _ sink: any DatagramSink) {
        guard role == .client, handshake == nil, sender == nil, !isOver, let remoteFingerprint,
            case .controlling(let agent) = agent, let path = agent.validatedPath
        else { return }
        let handshake = DTLSConnection(
            .client, certificate: certificate, remote: remoteFingerprint, path: path, now: now)
        self.handshake = handshake
        handshake.start(now: now, sink: sink)
        advance(handshake)
        settle(now)
    }

    private func advance(_ handshake: DTLSConnection) {
        switch handshake.state {
        case .handshaking: break
        case .established: if sender == nil { agree(handshake) }
        case .released: self.handshake = nil
        case .closed: end(.closed)
        case .failed(let failure): end(.failed(.dtls(failure)))
        }
    }

    /// Creates the SRTP contexts. Each side encrypts with the keys of its DTLS role (RFC 5764 §4.2).
    private func agree(_ handshake: DTLSConnection) {
        guard let profile = handshake.profile, let keys = handshake.exportKeys() else {
            return end(.failed(.dtls(.resources)))
        }
        let ours = role == .server ? (keys.serverKey, keys.serverSalt) : (keys.clientKey, keys.clientSalt)
        let theirs = role == .server ? (keys.clientKey, keys.clientSalt) : (keys.serverKey, keys.serverSalt)
        guard let sender = SRTPSender(profile: profile, key: ours.0, salt: ours.1),
            let receiver = SRTPReceiver(profile: profile, key: theirs.0, salt: theirs.1, maxSources: maxSources)
        else { return end(.failed(.dtls(.resources))) }
        (self.sender, self.receiver, self.profile) = (sender, receiver, profile)
    }

    // MARK: Media

    /// The SRTP sender, for callers that send several packets at once; nil while not connected.
    @inlinable
    public var mediaSender: SRTPSender? { selectedPath == nil ? nil : sender }

    /// Reads the memory that `protect` needs for this source, so that it is in the processor's cache.
    /// - Returns: a meaningless number that keeps the compiler from removing the reads.
    public func prefetch(_ ssrc: UInt32) -> UInt64 { selectedPath == nil ? 0 : sender?.prefetch(ssrc) ?? 0 }

    /// Encrypts one RTP packet; see `SRTPSender.protect`. Also returns nil while not connected.
    @inline(__always)
    public func protect(
        _ packet: UnsafeMutableRawBufferPointer, headerLength: Int, prefix: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer
    ) -> Int? {
        guard selectedPath != nil, let sender else { return nil }
        return sender.protect(packet, headerLength: headerLength, prefix: prefix, payload: payload)
    }

    /// Encrypts one RTCP compound packet; see `SRTPSender.protectControl`. Also returns nil while not connected.
    public func protectControl(_ packet: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard selectedPath != nil, let sender else { return nil }
        return sender.protectControl(packet, length: length)
    }

    // MARK: Time and the end

    /// Updates `nextTimeout`. Must be called after any change to the timers of the agent or the handshake.
    private func reschedule() {
        guard !isOver else { return nextTimeout = nil }
        guard let agent = agent.nextTimeout, let handshake = handshake?.nextTimeout else {
            return nextTimeout = agent.nextTimeout ?? handshake?.nextTimeout
        }
        nextTimeout = min(agent, handshake)
    }

    public func handleTimeout(now: MediaTime, sink: any DatagramSink) {
        guard !isOver else { return }
        agent.handleTimeout(now: now, sink: sink, using: &random)
        if let handshake {
            handshake.handleTimeout(now: now, sink: sink)
            advance(handshake)
        }
        settle(now)
    }

    /// Closes the transport. Sends close_notify if the handshake has not been released, which happens when the first
    /// media arrives or after ten seconds. Once it is released, the peer is notified of the end through signaling, or
    /// detects it because nothing arrives anymore.
    public func close(sink: any DatagramSink) {
        guard !isOver else { return }
        handshake?.close(sink: sink)
        end(.closed)
    }

    /// Whether the transport has ended.
    private var isOver: Bool {
        switch state {
        case .closed, .failed(.dtls): true
        case .new, .connecting, .connected, .disconnected, .failed(.noPath): false
        }
    }

    private func end(_ last: TransportState) {
        state = last
        (selectedPath, nextTimeout) = (nil, nil)
        (handshake, sender, receiver) = (nil, nil, nil)
    }

    private func settle(_ now: MediaTime) {
        guard !isOver else { return }
        defer { reschedule() }
        selectedPath = agent.selectedPath
        if agent.hasFailed {
            state = .failed(.noPath)
        } else if sender != nil, selectedPath != nil {
            state = .connected
        } else if sender == nil, agent.hasPath {
            state = .connecting
        } else if state == .connecting || state == .connected {
            state = .disconnected(since: now)
        }
    }
}
