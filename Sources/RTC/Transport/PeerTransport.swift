/// Everything between one peer's sockets and its media: ICE finds the path, DTLS agrees on keys over it, SRTP protects what
/// flows (RFC 8827 §6). To be used by one thread at a time.
///
/// The owner hands it every datagram that is the peer's, calls `handleTimeout` at `nextTimeout`, and looks at `state` after
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
    // What each packet needs stands first, and so in few of the processor's cache lines.
    private var sender: SRTPSender?
    /// Where media goes; nil while nothing is nominated or everything is lost.
    public private(set) var selectedPath: Path?
    private var receiver: SRTPReceiver?

    private let role: DTLSConnection.Role
    private let certificate: DTLSCertificate
    private var random: any RandomNumberGenerator
    private var agent: TransportAgent
    private var remoteFingerprint: Fingerprint?
    /// Until it has done its work.
    private var handshake: DTLSConnection?

    public private(set) var state = TransportState.new
    /// What media is protected with, once that is agreed on.
    public private(set) var profile: SRTPProfile?
    public private(set) var counters = TransportCounters()
    /// When `handleTimeout` is due. Asked for far more often than it changes.
    public private(set) var nextTimeout: MediaTime?

    /// The server's end: ICE-lite and the server in DTLS. It never sends to anybody first.
    public init(server local: ICECredentials, certificate: DTLSCertificate) {
        role = .server
        self.certificate = certificate
        random = SystemRandomNumberGenerator()
        agent = .lite(ICELiteAgent(local: local))
    }

    /// The client's end: controlling in ICE and the client in DTLS. Its checks begin after `setRemote` and `add`.
    public init(
        client local: ICECredentials, certificate: DTLSCertificate,
        random: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        role = .client
        self.certificate = certificate
        var random = random
        agent = .controlling(ICEControllingAgent(local: local, using: &random))
        self.random = random
    }

    public var local: ICECredentials { agent.local }
    /// Whether the other end has shown its password there.
    public func isValidated(_ path: Path) -> Bool { agent.isValidated(path) }
    public var localFingerprint: Fingerprint { certificate.fingerprint }

    /// What the other end's description says. A fingerprint other than the first would need a new association (RFC 8842
    /// §3.1): that is a new transport here, so it is refused.
    /// - Returns: whether it was taken.
    @discardableResult
    public func setRemote(_ remote: ICECredentials, fingerprint: Fingerprint) -> Bool {
        guard remoteFingerprint == nil || remoteFingerprint == fingerprint else { return false }
        remoteFingerprint = fingerprint
        agent.setRemote(remote)
        reschedule()
        return true
    }

    /// Client only: a pair of one of our sockets and one of the server's candidates.
    public func add(_ path: Path, priority: UInt32) {
        agent.add(path, priority: priority)
        reschedule()
    }

    /// An ICE restart (RFC 8445 §9): the keys stay, and so does the path until there is a new one.
    public func restart(local: ICECredentials, remote: ICECredentials) {
        agent.restart(local: local, remote: remote)
        if state == .failed(.noPath) { state = .connecting }
        reschedule()
    }

    /// A socket is gone, and every path over it.
    public func remove(socket: UInt32, now: MediaTime) {
        agent.remove(socket: socket)
        settle(now)
    }

    // MARK: Datagrams

    /// Takes one datagram. What is decrypted lies in its beginning.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink
    ) -> Received {
        guard let first = datagram.first else { return .nothing }
        // RFC 7983 §7: the first byte tells them apart.
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
        // RFC 5761 §4: packet types 192 to 223 are RTCP's.
        let isControl = datagram.count > 1 && (192...223).contains(datagram[1])
        switch isControl ? receiver.unprotectControl(datagram) : receiver.unprotect(datagram) {
        case .failed(let failure):
            counters.count(failure)
            return .nothing
        case .ok(let length):
            // The other end has the keys: it will not ask for the end of the handshake again.
            if let handshake {
                handshake.releaseHandshake()
                self.handshake = nil
                reschedule()
            }
            return isControl ? .rtcp(length) : .rtp(length)
        }
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
        // Whoever sends the first ClientHello would otherwise be the one we talk with.
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

    /// The client speaks first, as soon as there is somebody to speak to.
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

    /// RFC 5764 §4.2: each end sends with the keys of its role in DTLS.
    private func agree(_ handshake: DTLSConnection) {
        guard let profile = handshake.profile, let keys = handshake.exportKeys() else {
            return end(.failed(.dtls(.resources)))
        }
        let ours = role == .server ? (keys.serverKey, keys.serverSalt) : (keys.clientKey, keys.clientSalt)
        let theirs = role == .server ? (keys.clientKey, keys.clientSalt) : (keys.serverKey, keys.serverSalt)
        guard let sender = SRTPSender(profile: profile, key: ours.0, salt: ours.1),
            let receiver = SRTPReceiver(profile: profile, key: theirs.0, salt: theirs.1)
        else { return end(.failed(.dtls(.resources))) }
        (self.sender, self.receiver, self.profile) = (sender, receiver, profile)
    }

    // MARK: Media

    /// What encrypts media, for whoever sends several packets at once; nil while not connected.
    public var mediaSender: SRTPSender? { selectedPath == nil ? nil : sender }

    /// Reads what protecting a packet of this source begins with, for nothing but to have it in the processor's cache.
    /// - Returns: a number that says nothing, so that reading is not optimised away.
    public func warm(_ ssrc: UInt32) -> UInt64 { selectedPath == nil ? 0 : sender?.warm(ssrc) ?? 0 }

    /// See `SRTPSender.protect`; nil too while not connected.
    @inline(__always)
    public func protect(
        _ packet: UnsafeMutableRawBufferPointer, headerLength: Int, prefix: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer
    ) -> Int? {
        guard selectedPath != nil, let sender else { return nil }
        return sender.protect(packet, headerLength: headerLength, prefix: prefix, payload: payload)
    }

    /// See `SRTPSender.protectControl`; nil too while not connected.
    public func protectControl(_ packet: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard selectedPath != nil, let sender else { return nil }
        return sender.protectControl(packet, length: length)
    }

    // MARK: Time and the end

    /// After everything that changes the agent's timers or the handshake's.
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

    /// Says farewell as long as the handshake is remembered, which is until the first media or ten seconds; later the other
    /// end learns it through signalling, or by silence.
    public func close(sink: any DatagramSink) {
        guard !isOver else { return }
        handshake?.close(sink: sink)
        end(.closed)
    }

    /// Whether nothing can happen any more.
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
