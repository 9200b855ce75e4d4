import COpenSSL

/// The reason why a handshake failed.
public enum DTLSFailure: Error, Hashable, Sendable {
    /// The peer's certificate does not match the signaled fingerprint: the connection is being intercepted, or one
    /// side signaled a wrong fingerprint.
    case fingerprint
    /// The peer supports none of the local SRTP protection profiles (RFC 5764 §4.1.2).
    case noProfile
    /// The handshake took longer than `DTLSConnection.deadline`.
    case timeout
    /// The peer sent more datagrams or bytes than a handshake can need.
    case flooded
    /// The peer refused the handshake or does not speak DTLS. Contains OpenSSL's message for the log.
    case handshake(String)
    /// OpenSSL ran out of memory.
    case resources
}

/// A DTLS 1.2 association that only negotiates keys for SRTP (RFC 5764). Application data is discarded.
///
/// OpenSSL does the handshake in memory. Its retransmission timer is disabled, because it reads the wall clock.
/// Instead, this class keeps the most recent flight and retransmits it unchanged, timed by the caller's clock. A peer
/// that missed a record accepts the copy, and a peer that already has the record drops the copy as a replay (RFC 6347
/// §4.1.2.6).
///
/// The loss of the server's final flight needs additional handling. Browsers then retransmit their Finished in a new
/// record, and OpenSSL answers it by sending the flight again. If a client retransmits the same record, OpenSSL drops
/// it as a replay, so this class retransmits the flight. Confab's own client retransmits the same record, so it relies
/// on its server to do this.
///
/// Cookies (`HelloVerifyRequest`) are not used: the owner passes only datagrams from paths that ICE has validated.
public final class DTLSConnection {
    /// The role of one side in the handshake.
    public enum Role: Sendable { case server, client }

    /// The state of the association: handshaking → established → released → closed. An established association can
    /// also be closed directly, and a handshake can end as failed or closed.
    public enum State: Hashable, Sendable {
        case handshaking
        /// The keys are negotiated and the peer's fingerprint matched.
        case established
        /// The keys are in use, and OpenSSL's memory was freed by `releaseHandshake()`.
        case released
        /// Either side closed the association.
        case closed
        case failed(DTLSFailure)
    }

    /// The maximum number of received datagrams. This is enough for the ten flights that a peer sends in 30 seconds on the
    /// worst paths. A browser sends two datagrams for its ClientHello and one to three for its second flight.
    public static let maxDatagrams = 200
    /// The maximum number of received bytes, enough for ten flights with certificates of maximum size.
    public static let maxBytes = 128 * 1024
    /// The maximum number of records that may arrive before their epoch starts. OpenSSL uses 16 kB to buffer each of them. A
    /// flight contains only one such record, its Finished.
    public static let maxEarlyRecords = 16
    /// The handshake timeout. RFC 6347 specifies none, but no user waits longer than this.
    public static let deadline = MediaInterval.seconds(30)
    /// How long after the handshake this side still answers retransmissions of the client's final flight.
    public static let linger = MediaInterval.seconds(10)
    /// The maximum size of a sent datagram, below the MTU of any network.
    public static let mtu = 1200
    /// The maximum size of a received datagram. Longer ones are ignored.
    public static let maxDatagramBytes = 4096
    /// The time until a flight is retransmitted for the first time. RFC 6347 §4.2.4.1 recommends a second. Real-time peers,
    /// including browsers, start with less, because a lost record would delay the video by a second.
    static let firstRetransmission = MediaInterval.milliseconds(100)
    static let longestRetransmission = MediaInterval.milliseconds(1600)
    /// The maximum number of times that the final flight is retransmitted to a client that repeats the same record.
    static let maxAnswers = 20

    public let role: Role
    public private(set) var state = State.handshaking
    /// The negotiated profile (RFC 5764 §4.1.2); nil until established.
    public private(set) var profile: SRTPProfile?

    /// OpenSSL's connection, an `SSL`; nil once the handshake no longer needs it.
    private var connection: OpaquePointer?
    private let remote: Fingerprint
    private var flight: [[UInt8]] = []
    private var retransmission = DTLSConnection.firstRetransmission
    private var nextRetransmission: MediaTime?
    private let begun: MediaTime
    private var establishedAt: MediaTime?
    private var datagrams = 0
    private var bytes = 0
    private var earlyRecords = 0
    private var answers = 0
    private var path: Path

    /// - Parameters:
    ///   - remote: the fingerprint of the peer's certificate, received through signaling.
    ///   - path: the destination of the first flight. Later flights go to the path of the most recently received datagram.
    public init(_ role: Role, certificate: DTLSCertificate, remote: Fingerprint, path: Path, now: MediaTime) {
        self.role = role
        self.remote = remote
        self.path = path
        begun = now
        connection = confab_dtls_open(certificate.context, role == .server ? 1 : 0, Self.mtu)
        if connection == nil { state = .failed(.resources) }
    }

    deinit { SSL_free(connection) }

    /// Sends the client's first flight. Does nothing for a server, and after the first call.
    public func start(now: MediaTime, sink: any DatagramSink) {
        guard role == .client, state == .handshaking, flight.isEmpty else { return }
        advance(now, sink)
    }

    // MARK: Datagrams

    /// Processes a datagram that the owner has attributed to this peer.
    /// - Returns: true if the datagram was processed; false if it was ignored.
    @discardableResult
    public func receive(
        _ datagram: UnsafeRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink
    ) -> Bool {
        guard let connection, state == .handshaking || state == .established,
            let repeats = admit(datagram)
        else { return false }
        self.path = path
        guard confab_dtls_give(connection, datagram.baseAddress, Int32(truncatingIfNeeded: datagram.count)) == 1 else {
            fail(.resources)
            return true
        }
        if state == .handshaking {
            advance(now, sink)
        } else {
            drain(sink, repeats: repeats)
        }
        return true
    }

    /// Checks and counts a datagram before OpenSSL gets it.
    /// - Returns: whether the datagram contains an encrypted handshake message; nil to ignore the datagram.
    private func admit(_ datagram: UnsafeRawBufferPointer) -> Bool? {
        guard datagram.count <= Self.maxDatagramBytes else { return nil }
        var (covered, hasFinished, early) = (0, false, 0)
        for record in DTLSRecords(datagram) {
            covered += record.length
            if record.epoch > 0 { early += 1 }
            if record.epoch > 0, record.type == DTLSRecords.handshake { hasFinished = true }
        }
        guard covered == datagram.count, covered > 0 else { return nil }
        datagrams &+= 1
        bytes &+= datagram.count
        guard datagrams <= Self.maxDatagrams, bytes <= Self.maxBytes else {
            // An established association continues, but retransmissions are no longer answered.
            if state == .handshaking { fail(.flooded) }
            return nil
        }
        if state == .handshaking {
            guard earlyRecords + early <= Self.maxEarlyRecords else { return nil }
            earlyRecords += early
        }
        return hasFinished
    }

    private func advance(_ now: MediaTime, _ sink: any DatagramSink) {
        guard let connection else { return }
        ERR_clear_error()
        let result = SSL_do_handshake(connection)
        let reason = SSL_get_error(connection, result)
        if result == 1 {
            switch verdict(connection) {
            case .success(let profile):
                self.profile = profile
                state = .established
                establishedAt = now
                nextRetransmission = nil
                drain(sink, repeats: false)
            case .failure(let failure):
                // Fail before sending this side's Finished, so that the peer does not complete the handshake either.
                fail(failure)
            }
            return
        }
        if sendFlight(sink) {
            retransmission = Self.firstRetransmission
            nextRetransmission = now + retransmission
        }
        if reason != SSL_ERROR_WANT_READ, reason != SSL_ERROR_WANT_WRITE { fail(.handshake(Self.lastError())) }
    }

    /// Checks the peer's certificate, which OpenSSL accepts without verification, and the negotiated profile.
    private func verdict(_ connection: OpaquePointer) -> Result<SRTPProfile, DTLSFailure> {
        guard let certificate = SSL_get0_peer_certificate(connection),
            let theirs = Fingerprint(remote.algorithm, of: certificate), theirs.matches(remote)
        else { return .failure(.fingerprint) }
        guard let profile = SSL_get_selected_srtp_profile(connection),
            let known = UInt16(exactly: profile.pointee.id).flatMap(SRTPProfile.init(rawValue:))
        else { return .failure(.noProfile) }
        return .success(known)
    }

    /// Reads records after the handshake: discards application data, and answers retransmissions and alerts.
    private func drain(_ sink: any DatagramSink, repeats: Bool) {
        guard let connection else { return }
        ERR_clear_error()
        let ended = withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 1) { scratch in
            // A datagram has at most 4096 bytes, so it contains at most a few hundred records, and each record takes at most
            // two reads.
            for _ in 0..<(Self.maxDatagramBytes / DTLSRecords.headerLength) {
                let count = SSL_read(connection, scratch.baseAddress, Int32(truncatingIfNeeded: scratch.count))
                guard count <= 0 else { continue }
                let reason = SSL_get_error(connection, count)
                return reason == SSL_ERROR_ZERO_RETURN || reason == SSL_ERROR_SSL || reason == SSL_ERROR_SYSCALL
            }
            return false
        }
        ERR_clear_error()
        let answered = sendFlight(sink)
        if ended {
            state = .closed
            free()
        } else if repeats, !answered, role == .server, answers < Self.maxAnswers {
            answers += 1
            for datagram in flight { sink.send(datagram, on: path) }
        }
    }

    /// Sends what OpenSSL has written, and keeps it for retransmission. Returns false if there was nothing to send.
    @discardableResult
    private func sendFlight(_ sink: any DatagramSink) -> Bool {
        guard let connection else { return false }
        let pending = Int(confab_dtls_pending(connection))
        guard pending > 0, let most = Int32(exactly: pending) else { return false }
        var stream = [UInt8](repeating: 0, count: pending)
        let taken = stream.withUnsafeMutableBytes { confab_dtls_take(connection, $0.baseAddress, most) }
        guard taken > 0 else { return false }
        stream.removeLast(pending - Int(taken))
        flight = DTLSRecords.datagrams(of: stream, most: Self.mtu)
        for datagram in flight { sink.send(datagram, on: path) }
        return true
    }

    private static func lastError() -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { text in
            confab_last_error(text.baseAddress, text.count)
            guard let base = text.baseAddress else { return "" }
            return String(cString: base)
        }
    }

    // MARK: Time

    public var nextTimeout: MediaTime? {
        switch state {
        case .handshaking: min(nextRetransmission ?? begun + Self.deadline, begun + Self.deadline)
        case .established: establishedAt.map { $0 + Self.linger }
        case .released, .closed, .failed: nil
        }
    }

    public func handleTimeout(now: MediaTime, sink: any DatagramSink) {
        switch state {
        case .handshaking:
            if begun + Self.deadline <= now { return fail(.timeout) }
            guard let nextRetransmission, nextRetransmission <= now else { return }
            for datagram in flight { sink.send(datagram, on: path) }
            retransmission = min(retransmission * 2, Self.longestRetransmission)
            self.nextRetransmission = now + retransmission
        case .established:
            if let establishedAt, establishedAt + Self.linger <= now { releaseHandshake() }
        case .released, .closed, .failed: break
        }
    }

    // MARK: Keys and the end

    /// Returns the master keys for SRTP (RFC 5764 §4.2). Returns nil if the state is not `established` or OpenSSL
    /// fails.
    public func exportKeys() -> SRTPProfile.KeyingMaterial? {
        guard let connection, state == .established, let profile else { return nil }
        var keys = [UInt8](repeating: 0, count: profile.exportLength)
        let label = "EXTRACTOR-dtls_srtp"
        let made = keys.withUnsafeMutableBufferPointer {
            SSL_export_keying_material(connection, $0.baseAddress, $0.count, label, label.utf8.count, nil, 0, 0)
        }
        return made == 1 ? SRTPProfile.KeyingMaterial(exported: keys, profile: profile) : nil
    }

    /// Frees OpenSSL's memory, about 50 kB. `handleTimeout` calls this after `linger`. The owner may call it earlier,
    /// once the peer has sent an authentic SRTP packet, which proves that the peer has the keys. Later datagrams are
    /// ignored, even a close_notify.
    public func releaseHandshake() {
        guard state == .established else { return }
        state = .released
        free()
    }

    /// Closes the association. Sends close_notify if the association is established and its memory has not been released.
    public func close(sink: any DatagramSink) {
        if let connection, state == .established {
            ERR_clear_error()
            _ = SSL_shutdown(connection)
            ERR_clear_error()
            sendFlight(sink)
        }
        switch state {
        case .handshaking, .established, .released: state = .closed
        case .closed, .failed: break
        }
        free()
    }

    private func fail(_ failure: DTLSFailure) {
        state = .failed(failure)
        free()
    }

    private func free() {
        SSL_free(connection)
        connection = nil
        flight = []
        nextRetransmission = nil
    }
}
