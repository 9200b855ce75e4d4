import RTC

/// One peer connection of a client without a browser: ICE, DTLS, SRTP, RTP and RTCP of one side, as a machine.
///
/// It has no socket, no clock and no thread: whoever owns it hands it datagrams and the time (`RobotLoop` does over
/// real sockets, tests do over a simulated network). Everything here belongs to one thread at a time. Towards a
/// server that is ICE-lite it is the controlling end and the client in DTLS, whoever offers; towards a full one that
/// offers, it is lite.
///
/// ```swift
/// let offer = connection.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)])
/// // … signalling …
/// try connection.accept(answer: text)
/// connection.source = player
/// ```
/// Unchecked: the owner's thread alone uses it, and others only carry it.
public final class RobotConnection: @unchecked Sendable {
    /// Of a datagram, in bytes.
    static let mostDatagram = 1500
    private static let reportInterval = MediaInterval.seconds(1)

    /// What is sent, when there is something to send.
    public var source: (any RobotSource)? { didSet { reschedule() } }
    /// Who takes what comes.
    public weak var handler: (any RobotHandler)?
    /// Whether it asks for packets and keyframes that it misses. A load does not, to stay cheap.
    public var complains = true
    /// For whoever made it.
    public var tag = 0
    /// Where it can be reached, if it offers to an end that is not lite: then it is the lite one itself (RFC 8445 §2.5),
    /// and the server in DTLS. To be set before the first offer.
    public var liteCandidates: [Candidate] = []
    /// Whether it is.
    public internal(set) var isLite = false

    /// The families that its socket reaches.
    public var reachesIPv4 = true
    public var reachesIPv6 = false

    /// In the order of the offer, layers after each other.
    public internal(set) var tracks: [RobotTrack] = []
    public internal(set) var receptions: [RobotReception] = []
    public private(set) var state = TransportState.new
    /// When `handleTimeout` has something to do.
    public private(set) var nextTimeout: MediaTime? {
        didSet { if nextTimeout != oldValue { onTimeoutChange?(nextTimeout) } }
    }
    /// Of its owner.
    var onTimeoutChange: ((MediaTime?) -> Void)?
    /// Packets of sources that nobody announced.
    public private(set) var strayPackets = 0
    /// Malformed RTCP, and datagrams that were not for us.
    public internal(set) var malformed = 0

    let certificate: DTLSCertificate
    let sink: any DatagramSink
    /// The number of its socket in paths.
    public let socket: UInt32
    let clockOrigin: NTPTime
    var random: any RandomNumberGenerator
    /// Made by the first offer or answer.
    public internal(set) var transport: PeerTransport?
    var negotiation: RobotNegotiation
    private var bySSRC: [UInt32: RobotReception] = [:]
    var midExtension: UInt8?
    private var transportSequence: UInt16 = 0
    private var reportAt: MediaTime?
    private var complaintAt: MediaTime?
    let reportSSRC: UInt32

    /// - Parameters:
    ///   - sink: takes what it sends.
    ///   - socket: its socket's number in paths, as the owner of the sockets has it.
    ///   - clockOrigin: what the wall clock showed at the origin of the monotonic one, for sender reports.
    public init(
        certificate: DTLSCertificate, sink: any DatagramSink, socket: UInt32 = 0, clockOrigin: NTPTime,
        random: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        (self.certificate, self.sink, self.socket, self.clockOrigin) = (certificate, sink, socket, clockOrigin)
        self.random = random
        negotiation = RobotNegotiation(using: &self.random)
        reportSSRC = self.random.next()
    }

    public var isConnected: Bool { state == .connected }

    public func track(_ mid: String, rid: String? = nil) -> RobotTrack? {
        tracks.first { $0.mid == mid && $0.rid == rid }
    }
    public func reception(_ mid: String) -> RobotReception? { receptions.first { $0.mid == mid } }

    // MARK: Datagrams

    /// Takes one datagram, which is decrypted in place.
    public func receive(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        guard let transport else { return }
        switch transport.receive(datagram, on: path, now: now, sink: sink) {
        case .rtp(let length):
            take(UnsafeMutableRawBufferPointer(rebasing: datagram[..<length]), now)
        case .rtcp(let length):
            hear(UnsafeRawBufferPointer(rebasing: datagram[..<length]), now)
        case .nothing:
            settle(now)
        }
    }

    private func take(_ bytes: UnsafeMutableRawBufferPointer, _ now: MediaTime) {
        let whole = UnsafeRawBufferPointer(bytes)
        guard let header = RTPPacket(whole) else { return malformed += 1 }
        guard let reception = bySSRC[header.ssrc] ?? bind(header, whole) else { return strayPackets += 1 }
        guard header.ssrc != reception.repairSSRC else { return takeRepeat(header, bytes, reception, now) }
        let number = reception.take(header, length: bytes.count, at: now)
        if reception.nacks != nil { noteComplaints(reception, header, whole, number, now) }
        handler?.received(
            RobotPacket(header: header, bytes: whole, number: number, isRepeat: false, at: now), of: reception,
            over: self
        )
    }

    /// Moves the header over the number that stands before the payload (RFC 4588 §4), and is left with the packet
    /// that was missing.
    private func takeRepeat(
        _ header: RTPPacket, _ bytes: UnsafeMutableRawBufferPointer, _ reception: RobotReception, _ now: MediaTime
    ) {
        guard let sequence = header.originalSequenceNumber(in: UnsafeRawBufferPointer(bytes)),
            let payloadType = reception.original(header.payloadType), let ssrc = reception.ssrc,
            let base = bytes.baseAddress
        else { return malformed += 1 }
        (base + 2).copyMemory(from: base, byteCount: header.headerLength)
        let moved = UnsafeMutableRawBufferPointer(rebasing: bytes[2...])
        moved[1] = moved[1] & 0x80 | payloadType
        moved.storeBytes(of: sequence.bigEndian, toByteOffset: 2, as: UInt16.self)
        moved.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
        let whole = UnsafeRawBufferPointer(moved)
        guard let original = RTPPacket(whole) else { return malformed += 1 }
        let number = reception.takeRepeat(sequence, at: now)
        handler?.received(
            RobotPacket(header: original, bytes: whole, number: number, isRepeat: true, at: now), of: reception,
            over: self
        )
    }

    /// A source that was not announced says in which section it belongs (RFC 8843 §9.2).
    private func bind(_ header: RTPPacket, _ bytes: UnsafeRawBufferPointer) -> RobotReception? {
        guard bySSRC.count < SRTPReceiver.mostSources, let midExtension,
            let range = header.headerExtension(midExtension, in: bytes),
            let label = SDESLabel(UnsafeRawBufferPointer(rebasing: bytes[range])),
            let reception = reception(label.description)
        else { return nil }
        if reception.original(header.payloadType) != nil {
            reception.bindRepair(header.ssrc)
        } else {
            _ = reception.bind(RemoteSource(ssrc: header.ssrc))
        }
        bySSRC[header.ssrc] = reception
        return reception
    }

    /// The sources that the other end announced last.
    func announce(_ sources: [UInt32: RobotReception]) { bySSRC = sources }
    func reception(of ssrc: UInt32) -> RobotReception? { bySSRC[ssrc] }

    // MARK: Sending

    /// Sends one packet of a track.
    ///
    /// - Parameters:
    ///   - payload: at most `RobotTrack.mostPayload` bytes.
    ///   - level: how loud it is, of sound.
    /// - Returns: false when it is not connected, or the payload is too long.
    @discardableResult
    public func send(
        _ payload: UnsafeRawBufferPointer, of track: RobotTrack, timestamp: UInt32, marker: Bool, now: MediaTime,
        level: HeaderExtensions.AudioLevel? = nil
    ) -> Bool {
        guard let transport, let path = transport.selectedPath, payload.count <= RobotTrack.mostPayload else {
            return false
        }
        transportSequence &+= 1
        let memory = sink.prepare(Self.mostDatagram)
        let headerLength = track.writeHeader(
            to: memory, marker: marker, timestamp: timestamp, transportSequence: transportSequence, level: level)
        let prefix = UnsafeRawBufferPointer(start: nil, count: 0)
        guard let length = transport.protect(memory, headerLength: headerLength, prefix: prefix, payload: payload)
        else { return false }
        sink.send(length, on: path)
        track.sent(payload, timestamp: timestamp, marker: marker, at: now)
        return true
    }

    /// Sends a packet again that somebody misses (RFC 4588 §4).
    func sendAgain(_ sequence: UInt16, of track: RobotTrack) {
        guard let transport, let path = transport.selectedPath, let packet = track.packet(sequence),
            let payloadType = track.codec.rtxPayloadType, let ssrc = track.repairSSRC
        else { return }
        transportSequence &+= 1
        let memory = sink.prepare(Self.mostDatagram)
        let headerLength = track.writeRepairHeader(
            to: memory, of: packet, payloadType: payloadType, ssrc: ssrc, transportSequence: transportSequence)
        var original = sequence.bigEndian
        let length = withUnsafeBytes(of: &original) {
            transport.protect(memory, headerLength: headerLength, prefix: $0, payload: packet.payload)
        }
        guard let length else { return }
        track.repeatsSent += 1
        sink.send(length, on: path)
    }

    /// Sends a compound of RTCP packets.
    func sendControl(_ write: (inout ByteWriter) -> Void) {
        guard let transport, let path = transport.selectedPath else { return }
        let memory = sink.prepare(Self.mostDatagram)
        // What encryption adds follows behind.
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<(Self.mostDatagram - 64)]))
        write(&writer)
        guard writer.count > 0, !writer.overflowed,
            let length = transport.protectControl(memory, length: writer.count)
        else { return }
        sink.send(length, on: path)
    }

    // MARK: Time and the end

    public func handleTimeout(now: MediaTime) {
        guard let transport else { return }
        if let due = transport.nextTimeout, due <= now { transport.handleTimeout(now: now, sink: sink) }
        settle(now)
        if isConnected {
            if let source, let due = source.nextDue, due <= now { source.produce(over: self, now: now) }
            if let due = complaintAt, due <= now { complain(now) }
            if let due = reportAt, due <= now {
                reportAt = now + Self.reportInterval
                report(now)
            }
        }
        reschedule()
    }

    /// Ends it. What signalling has to say is the owner's.
    public func close(now: MediaTime) {
        if isConnected { farewell() }
        transport?.close(sink: sink)
        source = nil
        settle(now)
    }

    /// Takes note of what the transport has become.
    func settle(_ now: MediaTime) {
        guard let transport else { return }
        if transport.state != state {
            state = transport.state
            if isConnected {
                // Not all at once, where many connect together.
                let part = Int64(reportSSRC % 1000)
                reportAt = reportAt ?? now + .milliseconds(500 + part)
            }
            handler?.stateChanged(of: self)
        }
        reschedule()
    }

    func reschedule() {
        guard let transport else { return nextTimeout = nil }
        var next = transport.nextTimeout
        func consider(_ time: MediaTime?) {
            if let time { next = min(next ?? time, time) }
        }
        if isConnected {
            consider(source?.nextDue)
            consider(complaintAt)
            consider(reportAt)
        }
        nextTimeout = next
    }

    /// Complaining begins when something is missing.
    func expectComplaint(at time: MediaTime?) {
        complaintAt = time
        reschedule()
    }

    private func noteComplaints(
        _ reception: RobotReception, _ header: RTPPacket, _ bytes: UnsafeRawBufferPointer, _ number: Int64,
        _ now: MediaTime
    ) {
        let payload = UnsafeRawBufferPointer(rebasing: bytes[header.payloadRange])
        if let codec = reception.codec(header.payloadType), codec.isKeyframeStart(payload) {
            reception.nacks?.forget(before: number)
            reception.wantsKeyframe = false
        }
        if reception.nacks?.takeKeyframeNeed() == true { reception.wantsKeyframe = true }
        guard complaintAt == nil else { return }
        if let due = reception.complaintDue {
            expectComplaint(at: due)
        } else if reception.wantsKeyframe {
            // At once.
            expectComplaint(at: now)
        }
    }
}

extension Codec {
    fileprivate func isKeyframeStart(_ payload: UnsafeRawBufferPointer) -> Bool {
        switch kind {
        case .vp8: VideoPayloadFormat.vp8.isKeyframeStart(payload)
        case .vp9: VideoPayloadFormat.vp9.isKeyframeStart(payload)
        case .h264: VideoPayloadFormat.h264.isKeyframeStart(payload)
        case .av1: VideoPayloadFormat.av1.isKeyframeStart(payload)
        case .opus, .red: false
        }
    }
}
