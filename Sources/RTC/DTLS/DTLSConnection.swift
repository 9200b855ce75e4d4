import COpenSSL

/// Why a handshake came to nothing.
public enum DTLSFailure: Error, Hashable, Sendable {
    /// The other end has another certificate than signalling announced: somebody is in between, or one of them errs.
    case fingerprint
    /// It shares no protection profile with us (RFC 5764 §4.1.2).
    case noProfile
    /// It took longer than `DTLSConnection.deadline`.
    case timeout
    /// It sent more than a handshake can need.
    case flooded
    /// It refused, or speaks something else. In OpenSSL's words, for a log.
    case handshake(String)
    /// OpenSSL could not: out of memory.
    case resources
}

/// One DTLS 1.2 association, only to agree on keys for SRTP (RFC 5764): application data is thrown away.
///
/// OpenSSL does the handshake over memory. Its own retransmission timer is never due, because it reads the wall clock;
/// instead a flight is kept here and sent again, byte for byte, by the clock that we are given. Whoever missed a record
/// takes it then, and whoever had it drops it as a replay (RFC 6347 §4.1.2.6). One case needs more: the server's last
/// flight, lost. A client's repeated Finished makes OpenSSL answer it if it is in a new record, as every browser's is; if it
/// is the same record, the flight is sent again here. (So a client of ours depends on its server to do that.)
///
/// No cookies (`HelloVerifyRequest`): the owner hands over only what came over a path that ICE has validated.
public final class DTLSConnection {
    public enum Role: Sendable { case server, client }

    /// handshaking → established → released or closed; handshaking → failed or closed. The last three are final.
    public enum State: Hashable, Sendable {
        case handshaking
        /// The keys are agreed, the fingerprint was right.
        case established
        /// The keys are in use and OpenSSL's memory is free: `releaseHandshake()`.
        case released
        /// Somebody closed it.
        case closed
        case failed(DTLSFailure)
    }

    /// A handshake takes two datagrams of a browser for its ClientHello and one to three for its second flight. Ten rounds
    /// of all that are repeated in 30 seconds on the worst of lines.
    public static let mostDatagrams = 200
    /// With certificates of the greatest size, ten times.
    public static let mostBytes = 128 * 1024
    /// Records of the next epoch before it began: OpenSSL keeps each in 16 kB. A flight has one (its Finished).
    public static let mostEarlyRecords = 16
    /// RFC 6347 has none; after so long nobody waits for a picture any more.
    public static let deadline = MediaInterval.seconds(30)
    /// How long a repeated last flight of the client is still answered.
    public static let linger = MediaInterval.seconds(10)
    /// In bytes, for a datagram of ours: less than any network's.
    public static let mtu = 1200
    /// The longest datagram that is looked at.
    public static let mostDatagramBytes = 4096
    /// RFC 6347 §4.2.4.1 has a second, for want of knowing better; real-time peers (browsers too) begin with less, for
    /// a lost record is a second without picture.
    static let firstRetransmission = MediaInterval.milliseconds(100)
    static let longestRetransmission = MediaInterval.milliseconds(1600)
    /// How often the last flight is answered again to the same record: once for every time a client sends it.
    static let mostAnswers = 20

    public let role: Role
    public private(set) var state = State.handshaking
    /// What was agreed on (RFC 5764 §4.1.2), once established.
    public private(set) var profile: SRTPProfile?

    /// An `SSL`; nil once it is not needed any more.
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
    ///   - remote: what signalling said of the other end's certificate.
    ///   - path: where the first flight goes; later ones go where the last datagram came from.
    public init(_ role: Role, certificate: DTLSCertificate, remote: Fingerprint, path: Path, now: MediaTime) {
        self.role = role
        self.remote = remote
        self.path = path
        begun = now
        connection = confab_dtls_open(certificate.context, role == .server ? 1 : 0, Self.mtu)
        if connection == nil { state = .failed(.resources) }
    }

    deinit { SSL_free(connection) }

    /// The client's first flight.
    public func start(now: MediaTime, sink: any DatagramSink) {
        guard role == .client, state == .handshaking, flight.isEmpty else { return }
        advance(now, sink)
    }

    // MARK: Datagrams

    /// One datagram, which the path's owner knows to be the other end's.
    /// - Returns: whether it was looked at.
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

    /// Counts what OpenSSL is about to see.
    /// - Returns: whether the datagram has an encrypted handshake message; nil if it is not to be looked at.
    private func admit(_ datagram: UnsafeRawBufferPointer) -> Bool? {
        guard datagram.count <= Self.mostDatagramBytes else { return nil }
        var (covered, hasFinished, early) = (0, false, 0)
        for record in DTLSRecords(datagram) {
            covered += record.length
            if record.epoch > 0 { early += 1 }
            if record.epoch > 0, record.type == DTLSRecords.handshake { hasFinished = true }
        }
        guard covered == datagram.count, covered > 0 else { return nil }
        datagrams &+= 1
        bytes &+= datagram.count
        guard datagrams <= Self.mostDatagrams, bytes <= Self.mostBytes else {
            // Once established it is only that nothing more is answered.
            if state == .handshaking { fail(.flooded) }
            return nil
        }
        if state == .handshaking {
            guard earlyRecords + early <= Self.mostEarlyRecords else { return nil }
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
                // Before anything else is sent: without our Finished the other end has no association either.
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

    /// The certificate that OpenSSL took unseen is the right one, and there will be keys.
    private func verdict(_ connection: OpaquePointer) -> Result<SRTPProfile, DTLSFailure> {
        guard let certificate = SSL_get0_peer_certificate(connection),
            let theirs = Fingerprint(remote.algorithm, of: certificate), theirs.matches(remote)
        else { return .failure(.fingerprint) }
        guard let profile = SSL_get_selected_srtp_profile(connection),
            let known = UInt16(exactly: profile.pointee.id).flatMap(SRTPProfile.init(rawValue:))
        else { return .failure(.noProfile) }
        return .success(known)
    }

    /// After the handshake: application data is nobody's, but what comes with it is answered.
    private func drain(_ sink: any DatagramSink, repeats: Bool) {
        guard let connection else { return }
        ERR_clear_error()
        let ended = withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 1) { scratch in
            // A record of a datagram of 4096 bytes is read in two pieces; a datagram has at most some hundred records.
            for _ in 0..<(Self.mostDatagramBytes / DTLSRecords.headerLength) {
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
        } else if repeats, !answered, role == .server, answers < Self.mostAnswers {
            answers += 1
            for datagram in flight { sink.send(datagram, on: path) }
        }
    }

    /// Sends what OpenSSL has written, and keeps it.
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

    /// The master keys for SRTP (RFC 5764 §4.2); nil unless established.
    public func exportKeys() -> SRTPProfile.KeyingMaterial? {
        guard let connection, state == .established, let profile else { return nil }
        var keys = [UInt8](repeating: 0, count: profile.exportLength)
        let label = "EXTRACTOR-dtls_srtp"
        let made = keys.withUnsafeMutableBufferPointer {
            SSL_export_keying_material(connection, $0.baseAddress, $0.count, label, label.utf8.count, nil, 0, 0)
        }
        return made == 1 ? SRTPProfile.KeyingMaterial(exported: keys, profile: profile) : nil
    }

    /// Frees OpenSSL's part, some 50 kB: the other end has shown with an authentic SRTP packet that it has the keys, or had
    /// time enough. What comes afterwards is not looked at, not even its farewell.
    public func releaseHandshake() {
        guard state == .established else { return }
        state = .released
        free()
    }

    /// Says farewell if there is still somebody to say it.
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
