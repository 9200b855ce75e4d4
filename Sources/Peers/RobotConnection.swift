import RTC

/// One peer connection without a browser. It implements ICE, DTLS, SRTP, RTP and RTCP as a state machine.
///
/// The connection has no socket, clock or thread. Its owner passes in datagrams and the time: `RobotLoop` with real
/// sockets, or tests with a simulated network. A connection must be used on one thread at a time. If the server is
/// ICE-lite, this side is controlling and the DTLS client, whichever side makes the offer. If a full ICE agent makes
/// the offer, this side is ICE-lite.
///
/// ```swift
/// let offer = connection.offer([.audio(mid: "a", .sendonly), .video(mid: "v", .sendonly)])
/// // … signaling …
/// try connection.accept(answer: text)
/// connection.source = player
/// ```
///
/// The class is `@unchecked Sendable` because only the owner's thread uses it. Other threads only pass the reference on.
public final class RobotConnection: @unchecked Sendable {
    /// The maximum size of a datagram in bytes.
    static let maxDatagram = 1500
    /// The maximum number of SSRCs that the remote side may send: media and retransmissions in each section. In a large room,
    /// all streams arrive over one connection.
    static let maxSources = 2 * SessionDescription.maxSections
    private static let reportInterval = MediaInterval.seconds(1)

    /// The source of the media to send; nil to send nothing.
    public var source: (any RobotSource)? { didSet { reschedule() } }
    /// Receives packets and state changes.
    public weak var handler: (any RobotHandler)?
    /// Whether the connection sends NACKs, keyframe requests and reports of arrivals by itself. Load tests turn this
    /// off to save CPU time.
    public var sendsFeedback = true
    /// A number that the owner may use for any purpose. The connection does not use it.
    public var tag = 0
    /// The candidates to offer to a full ICE agent, to be set before the first offer. If not empty, this side is ICE-lite (RFC
    /// 8445 §2.5) and the DTLS server.
    public var liteCandidates: [Candidate] = []
    /// The candidates to offer as a full ICE agent and DTLS client, so that a remote side whose candidates are unknown can
    /// find this side. If empty, the remote side must be an ICE-lite server.
    package var fullCandidates: [Candidate] = []
    /// Whether this side is ICE-lite.
    public internal(set) var isLite = false

    /// Whether the connection's socket can reach IPv4 and IPv6 addresses.
    public var reachesIPv4 = true
    public var reachesIPv6 = false

    /// All tracks, in the order of the offer. The layers of a section are next to each other.
    public internal(set) var tracks: [RobotTrack] = []
    public internal(set) var receptions: [RobotReception] = []
    public private(set) var state = TransportState.new
    /// The time at which to call `handleTimeout` next; nil if nothing is scheduled.
    public private(set) var nextTimeout: MediaTime? {
        didSet { if nextTimeout != oldValue { onTimeoutChange?(nextTimeout) } }
    }
    /// Called with the new value when `nextTimeout` has changed; nil if the owner needs no notification.
    var onTimeoutChange: ((MediaTime?) -> Void)?
    /// The arrival time of the datagram being processed.
    private var arrivedAt = MediaTime(nanoseconds: 0)
    /// The number of packets whose SSRC could not be assigned to a section.
    public private(set) var strayPackets = 0
    /// The number of malformed RTP and RTCP packets.
    public internal(set) var malformed = 0

    let certificate: DTLSCertificate
    let sink: any DatagramSink
    /// The index of the connection's socket, which identifies the socket in each `Path`.
    public let socket: UInt32
    let clockOrigin: NTPTime
    package var random: any RandomNumberGenerator
    /// The sections as the most recent answer describes them.
    package internal(set) var negotiated: [NegotiatedMedia] = []
    /// The transport; nil until the first offer or answer creates it.
    public internal(set) var transport: PeerTransport?
    var negotiation: RobotNegotiation
    private var bySSRC: [UInt32: RobotReception] = [:]
    var midExtension: UInt8?
    /// The id of the header extension with transport-wide sequence numbers.
    var transportExtension: UInt8?
    /// The packet arrivals to report.
    var arrivals: TransportFeedback?
    private var arrivalsAt: MediaTime?
    private var transportSequence: UInt16 = 0
    private var reportAt: MediaTime?
    private var feedbackAt: MediaTime?
    let reportSSRC: UInt32

    /// - Parameters:
    ///   - sink: sends the connection's datagrams.
    ///   - socket: the index of the connection's socket, which identifies the socket in each `Path`.
    ///   - clockOrigin: the wall-clock time at the origin of the monotonic clock, for sender reports.
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

    /// Handles one datagram, which is decrypted in place.
    ///
    /// - Parameter arrivedAt: when the datagram arrived, if that was before `now`. Handlers receive this time.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, arrivedAt: MediaTime? = nil
    ) {
        guard let transport else { return }
        self.arrivedAt = arrivedAt ?? now
        switch transport.receive(datagram, on: path, now: now, sink: sink) {
        case .rtp(let length):
            take(UnsafeMutableRawBufferPointer(rebasing: datagram[..<length]), now)
        case .rtcp(let length):
            receiveControl(UnsafeRawBufferPointer(rebasing: datagram[..<length]), now)
        case .nothing:
            settle(now)
        }
    }

    private func take(_ bytes: UnsafeMutableRawBufferPointer, _ now: MediaTime) {
        let whole = UnsafeRawBufferPointer(bytes)
        guard let header = RTPPacket(whole) else { return malformed += 1 }
        noteArrival(header, whole, now)
        guard let reception = bySSRC[header.ssrc] ?? bind(header, whole) else { return strayPackets += 1 }
        guard header.ssrc != reception.repairSSRC else { return takeRetransmission(header, bytes, reception, now) }
        let number = reception.take(header, length: bytes.count, at: now)
        if reception.nacks != nil { updateFeedback(reception, header, whole, number, now) }
        handler?.received(
            RobotPacket(header: header, bytes: whole, number: number, isRetransmission: false, at: arrivedAt),
            of: reception, over: self
        )
    }

    /// Records the arrival of a packet for the sender's congestion control.
    private func noteArrival(_ header: RTPPacket, _ bytes: UnsafeRawBufferPointer, _ now: MediaTime) {
        guard sendsFeedback, let transportExtension, let range = header.headerExtension(transportExtension, in: bytes),
            let number = HeaderExtensions.transportSequenceNumber(UnsafeRawBufferPointer(rebasing: bytes[range]))
        else { return }
        if arrivals == nil { arrivals = TransportFeedback() }
        arrivals?.receive(number, at: now)
        guard arrivalsAt == nil else { return }
        arrivalsAt = now + Self.arrivalInterval
        reschedule()
    }

    /// The time between two reports of arrivals, as in libwebrtc.
    private static let arrivalInterval = MediaInterval.milliseconds(50)

    /// Restores the original packet from a retransmission. Moves the header over the original sequence number, which precedes
    /// the payload (RFC 4588 §4).
    private func takeRetransmission(
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
        let number = reception.takeRetransmission(sequence, at: now)
        handler?.received(
            RobotPacket(header: original, bytes: whole, number: number, isRetransmission: true, at: arrivedAt),
            of: reception, over: self
        )
    }

    /// Assigns an unannounced SSRC to the section that the packet's MID header extension names (RFC 8843 §9.2). Returns
    /// nil if the extension is missing or names no known section, or if there are too many SSRCs.
    private func bind(_ header: RTPPacket, _ bytes: UnsafeRawBufferPointer) -> RobotReception? {
        guard bySSRC.count < Self.maxSources, let midExtension,
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

    /// Replaces the known SSRCs, and the sections that they belong to, after a negotiation.
    func announce(_ sources: [UInt32: RobotReception]) { bySSRC = sources }
    func reception(of ssrc: UInt32) -> RobotReception? { bySSRC[ssrc] }

    // MARK: Sending

    /// Sends one packet over a track.
    ///
    /// - Parameters:
    ///   - payload: the payload, at most `RobotTrack.maxPayload` bytes.
    ///   - level: the audio level to send with the packet.
    /// - Returns: false if the packet was not sent: there is no path, the payload is too long, or it could not be
    ///   encrypted.
    @discardableResult
    public func send(
        _ payload: UnsafeRawBufferPointer, of track: RobotTrack, timestamp: UInt32, marker: Bool, now: MediaTime,
        level: HeaderExtensions.AudioLevel? = nil
    ) -> Bool {
        guard let transport, let path = transport.selectedPath, payload.count <= RobotTrack.maxPayload else {
            return false
        }
        transportSequence &+= 1
        let memory = sink.prepare(Self.maxDatagram)
        let headerLength = track.writeHeader(
            to: memory, marker: marker, timestamp: timestamp, transportSequence: transportSequence, level: level,
            sentAt: NTPTime(now, origin: clockOrigin))
        let prefix = track.redundancy(before: payload, timestamp: timestamp)
        let length = prefix.withUnsafeBytes {
            transport.protect(memory, headerLength: headerLength, prefix: $0, payload: payload)
        }
        guard let length else { return false }
        sink.send(length, on: path)
        track.sent(payload, timestamp: timestamp, marker: marker, at: now)
        return true
    }

    /// Retransmits a packet that the receiver requested (RFC 4588 §4), if it is still stored and RTX was negotiated.
    func retransmit(_ sequence: UInt16, of track: RobotTrack) {
        guard let transport, let path = transport.selectedPath, let packet = track.packet(sequence),
            let payloadType = track.codec.rtxPayloadType, let ssrc = track.repairSSRC
        else { return }
        transportSequence &+= 1
        let memory = sink.prepare(Self.maxDatagram)
        let headerLength = track.writeRepairHeader(
            to: memory, of: packet, payloadType: payloadType, ssrc: ssrc, transportSequence: transportSequence)
        var original = sequence.bigEndian
        let length = withUnsafeBytes(of: &original) {
            transport.protect(memory, headerLength: headerLength, prefix: $0, payload: packet.payload)
        }
        guard let length else { return }
        track.retransmissionsSent += 1
        sink.send(length, on: path)
    }

    /// Sends a compound RTCP packet.
    func sendControl(_ write: (inout ByteWriter) -> Void) {
        guard let transport, let path = transport.selectedPath else { return }
        let memory = sink.prepare(Self.maxDatagram)
        // Reserve room for the SRTCP trailer.
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<(Self.maxDatagram - 64)]))
        write(&writer)
        guard writer.count > 0, !writer.overflowed,
            let length = transport.protectControl(memory, length: writer.count)
        else { return }
        sink.send(length, on: path)
    }

    // MARK: Timeouts and closing

    public func handleTimeout(now: MediaTime) {
        guard let transport else { return }
        if let due = transport.nextTimeout, due <= now { transport.handleTimeout(now: now, sink: sink) }
        settle(now)
        if isConnected {
            if let source, let due = source.nextDue, due <= now { source.produce(over: self, now: now) }
            if let due = feedbackAt, due <= now { sendFeedback(now) }
            if let due = arrivalsAt, due <= now {
                arrivalsAt = nil
                sendArrivals()
            }
            if let due = reportAt, due <= now {
                reportAt = now + Self.reportInterval
                report(now)
            }
        }
        reschedule()
    }

    /// Closes the connection, after sending BYE if it is connected. The owner is responsible for signaling.
    public func close(now: MediaTime) {
        if isConnected { sendBye() }
        transport?.close(sink: sink)
        source = nil
        settle(now)
    }

    /// Updates `state` from the transport, and reports a change to the handler. Then reschedules the timeout.
    func settle(_ now: MediaTime) {
        guard let transport else { return }
        if transport.state != state {
            state = transport.state
            if isConnected {
                // Spread the first reports, because many connections can start at the same time.
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
            consider(feedbackAt)
            consider(arrivalsAt)
            consider(reportAt)
        }
        nextTimeout = next
    }

    /// Schedules the next `sendFeedback` call. Passing nil, which means that no packet is missing, cancels it.
    func scheduleFeedback(at time: MediaTime?) {
        feedbackAt = time
        reschedule()
    }

    private func updateFeedback(
        _ reception: RobotReception, _ header: RTPPacket, _ bytes: UnsafeRawBufferPointer, _ number: Int64,
        _ now: MediaTime
    ) {
        let payload = UnsafeRawBufferPointer(rebasing: bytes[header.payloadRange])
        if let codec = reception.codec(header.payloadType), codec.isKeyframeStart(payload) {
            reception.nacks?.forget(before: number)
            reception.wantsKeyframe = false
        }
        if reception.nacks?.takeKeyframeNeed() == true { reception.wantsKeyframe = true }
        guard feedbackAt == nil else { return }
        if let due = reception.feedbackDue {
            scheduleFeedback(at: due)
        } else if reception.wantsKeyframe {
            // Send the request immediately.
            scheduleFeedback(at: now)
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
