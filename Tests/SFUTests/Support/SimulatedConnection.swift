import RTC
import TestSupport
import Testing

@testable import SFU

/// A client's `RTCPeerConnection` with the server. A sending connection sends the media of its sources and responds to
/// feedback. A receiving connection receives media in its slots and reports losses.
final class SimulatedConnection {
    let client: Key
    let side: Side
    let server: SimulatedServer
    let host: SimulatedHost
    let transport: PeerTransport
    var offered: [OfferedMedia]
    /// An offer of a browser, to use instead of `offered`. Only its transport is replaced.
    var template: SessionDescription?
    private(set) var sources: [SimulatedSource] = []
    private(set) var slots: [SimulatedSlot] = []
    private(set) var answered: [NegotiatedMedia] = []
    private var bySSRC: [UInt32: SimulatedSlot] = [:]
    var random: SeededGenerator
    private let sessionID: UInt64
    private var version: UInt64 = 0
    private let clock: NTPTime
    private var mediaAt: MediaTime
    private var reportAt: MediaTime
    private var transportSequence: UInt16 = 0
    private(set) var acknowledged: Set<UInt16> = []
    private(set) var transportSent: Set<UInt16> = []
    private(set) var receptions: [UInt32: RTCP.ReportBlock] = [:]
    private(set) var strayPackets = 0
    /// The number of RTCP packets that began without a report (RFC 5506).
    private(set) var reducedCompounds = 0
    private(set) var receivedBytes: [UInt32: Int] = [:]
    var nacksSent = 0
    /// If true, the subscriber sends no automatic feedback.
    var isMute = false
    /// Whether the subscriber reports arrivals for congestion control.
    var reportsArrivals = true
    /// Returns whether a packet that has arrived is dropped as if the network had lost it. Called after decryption, so
    /// that a recording contains the packet.
    var loses: (UnsafeRawBufferPointer) -> Bool = { _ in false }
    /// The arrivals of packets with transport-wide sequence numbers, and when to report them next.
    private var transportFeedback = TransportFeedback()
    private var transportFeedbackAt: MediaTime?
    private(set) var transportNumbers: [UInt16] = []

    init(
        _ client: Key, _ side: Side, of server: SimulatedServer, at address: TransportAddress, _ offered: [OfferedMedia]
    )
        throws
    {
        (self.client, self.side, self.server, self.offered) = (client, side, server, offered)
        random = SeededGenerator(seed: server.network.random.next())
        let certificate = try #require(Self.certificate)
        transport = PeerTransport(client: ICECredentials(using: &random), certificate: certificate, random: random)
        host = server.network.host(address)
        sessionID = random.next() >> 2
        // A client's clock can be wrong by days.
        clock = NTPTime(0xe000_0000_0000_0000 + UInt64.random(in: 0..<(1 << 50), using: &random))
        (mediaAt, reportAt) = (server.network.now, server.network.now)
        host.receive = { [unowned self] in receive($0, on: $1) }
        host.nextTimeout = { [unowned self] in min(transport.nextTimeout ?? mediaAt, mediaAt) }
        host.handleTimeout = { [unowned self] in handleTimeout() }
    }

    private static let certificate = DTLSCertificate.make()
    var now: MediaTime { server.network.now }
    var isConnected: Bool { transport.state == .connected }
    var isReady: Bool { isConnected || transport.state == .closed }
    var address: TransportAddress { host.addresses[0] }

    /// Stops responding without notifying the server.
    func vanish() {
        host.addresses = []
        (host.receive, host.handleTimeout, host.nextTimeout) = ({ _, _ in }, {}, { nil })
    }

    func add(_ source: SimulatedSource) { sources.append(source) }

    // MARK: Descriptions

    func offer(credentials: ICECredentials? = nil, fingerprint: Fingerprint? = nil) -> SessionDescription {
        let credentials = credentials ?? transport.local
        version += 1
        let local = LocalParameters(
            ufrag: credentials.ufrag, pwd: credentials.password, fingerprint: fingerprint ?? transport.localFingerprint,
            candidates: [], sessionID: sessionID, version: version, cname: "c"
        )
        guard var template else { return RTC.offer(offered, local: local) }
        let own = RTC.offer([.audio(mid: "0", .sendonly)], local: local)
        template.origin = own.origin
        template.transport = TransportDescription()
        for index in template.sections.indices { template.sections[index].transport = own.sections[0].transport }
        return template
    }

    /// Sends an offer with the current tracks.
    func negotiate(restarts: Bool = false) throws {
        let credentials = restarts ? ICECredentials(using: &random) : transport.local
        let offer = offer(credentials: credentials)
        let text = try server.router.offer(client, side, sdp: offer.text, now: now)
        server.recorder?.record(answer: text, to: label, at: now)
        let (remote, media) = try RTC.accept(try SessionDescription(parsing: text), to: offer)
        let theirs = try #require(ICECredentials(ufrag: remote.ufrag, password: remote.pwd))
        if restarts {
            transport.restart(local: credentials, remote: theirs)
        } else {
            transport.setRemote(theirs, fingerprint: remote.fingerprint)
        }
        transport.add(Path(socket: 0, remote: server.address), priority: 10)
        answered = media
        for media in media where side == .receive {
            guard let source = media.remoteSources.first, bySSRC[source.ssrc] == nil else { continue }
            let slot = SimulatedSlot(mid: media.mid, kind: media.kind, source: source)
            slot.h264 = Set(media.codecs.filter(\.isH264).map(\.payloadType))
            slot.redundant = Set(media.codecs.filter { $0.kind == .red }.map(\.payloadType))
            slot.transportIDs = Set([.transportWideCC, .absSendTime].compactMap { media.extensions[$0] })
            slots.append(slot)
            bySSRC[source.ssrc] = slot
            if let repair = source.rtxSSRC { bySSRC[repair] = slot }
        }
    }

    func slot(_ mid: String) throws -> SimulatedSlot { try #require(slots.last { $0.mid == mid }) }
    func extensionID(_ name: HeaderExtension) -> UInt8 { offered.first?.extensions[name] ?? 0 }

    // MARK: Datagrams

    private func receive(_ datagram: UnsafeMutableRawBufferPointer, on path: Path) {
        switch transport.receive(datagram, on: path, now: now, sink: host) {
        case .nothing: server.recorder?.record(transport.state, of: label, at: now)
        case .rtp(let length):
            let bytes = UnsafeRawBufferPointer(rebasing: datagram[..<length])
            record(bytes)
            guard !loses(bytes) else { return }
            guard let packet = RTPPacket(bytes), let slot = bySSRC[packet.ssrc] else { return strayPackets += 1 }
            receivedBytes[packet.ssrc, default: 0] += datagram.count
            noteNumber(packet, bytes, in: slot)
            slot.take(packet, bytes, at: now)
        case .rtcp(let length):
            let bytes = UnsafeRawBufferPointer(rebasing: datagram[..<length])
            server.recorder?.record(control: bytes, to: label, at: now)
            if !loses(bytes) { hear(bytes) }
        }
    }

    /// The name of the connection in recordings.
    private var label: String { "\(client.low)\(side == .send ? "s" : "r")" }

    private func record(_ bytes: UnsafeRawBufferPointer) {
        guard let recorder = server.recorder, let packet = RTPPacket(bytes) else { return }
        let slot = bySSRC[packet.ssrc]
        let stream = slot.map { $0.mid + (packet.ssrc == $0.ssrc ? "" : "x") } ?? "unknown"
        recorder.record(packet, bytes, in: stream, to: label, at: now)
    }

    private func noteNumber(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, in slot: SimulatedSlot) {
        guard let id = answered.first(where: { $0.mid == slot.mid })?.extensions[.transportWideCC],
            let range = packet.headerExtension(id, in: bytes), range.count == 2
        else { return }
        transportNumbers.append(bytes.bigEndian16(at: range.lowerBound))
        transportFeedback.receive(bytes.bigEndian16(at: range.lowerBound), at: now)
    }

    /// Sends feedback as often as libwebrtc does at most. Its interval of 50 to 250 ms is the one at which reports of 68 bytes take
    /// 5 % of what the client may send itself (`RemoteEstimatorProxy::OnBitrateChanged`, called by `Call::OnTargetTransferRate`).
    /// A connection that only receives stays at the 300 kbit/s with which it starts, for which the interval is the shortest.
    private func sendTransportFeedback() {
        guard transportFeedbackAt.map({ now - $0 >= .milliseconds(50) }) ?? true else { return }
        transportFeedbackAt = now
        for _ in 0..<4 where transportFeedback.hasNews {
            sendControl { _ = transportFeedback.writeFeedback(sender: 1, media: 1, to: &$0) }
        }
    }

    private func hear(_ bytes: UnsafeRawBufferPointer) {
        guard let compound = RTCPCompound(bytes) else { return strayPackets += 1 }
        // RFC 3550 §6.1: the packet types of reports.
        if !(200...201).contains(bytes[1]) { reducedCompounds += 1 }
        for packet in compound {
            switch packet {
            case .senderReport(let report): bySSRC[report.info.ssrc]?.take(report.info, at: now)
            case .receiverReport(let report): for block in report.blocks { receptions[block.ssrc] = block }
            case .pli(let request): sources.first { $0.ssrc == request.media }?.askForKeyframe()
            case .fir(let request):
                for entry in request.entries { sources.first { $0.ssrc == entry.ssrc }?.askForKeyframe() }
            case .nack(let nack):
                guard let source = sources.first(where: { $0.ssrc == nack.media }) else { continue }
                for number in nack.lost { if let packet = source.again(number) { send(packet, of: source) } }
            case .transportFeedback(let report):
                report.forEachPacket { number, arrival in if arrival != nil { acknowledged.insert(number) } }
            case .malformed: strayPackets += 1
            default: break
            }
        }
    }

    private func handleTimeout() {
        if let due = transport.nextTimeout, due <= now { transport.handleTimeout(now: now, sink: host) }
        guard mediaAt <= now else { return }
        mediaAt = now + .milliseconds(10)
        guard isConnected else { return }
        for source in sources { for packet in source.produce(now: now) { send(packet, of: source) } }
        for slot in slots where !isMute { complain(of: slot) }
        if side == .receive, reportsArrivals { sendTransportFeedback() }
        guard reportAt <= now else { return }
        reportAt = now + .seconds(1)
        report()
    }

    // MARK: Sending

    func send(_ packet: OutgoingPacket, of source: SimulatedSource) {
        sendRaw(payload: packet.payload) { writeHeader(of: packet, source, to: $0) }
        transportSent.insert(transportSequence)
    }

    func writeHeader(of packet: OutgoingPacket, _ source: SimulatedSource, to memory: UnsafeMutableRawBufferPointer)
        -> Int
    {
        let ids = answered.first { $0.mid == source.mid }?.extensions ?? [:]
        var header = RTPHeaderWriter(
            into: memory, payloadType: packet.payloadType, marker: packet.marker, sequenceNumber: packet.sequence,
            timestamp: packet.timestamp, ssrc: packet.ssrc
        )
        if let id = ids[.mid], let label = SDESLabel(source.mid) { header.addLabel(label, id: id) }
        let name: HeaderExtension = packet.ssrc == source.repairSSRC ? .repairedRtpStreamID : .rtpStreamID
        if let rid = source.rid.flatMap({ SDESLabel($0) }), let id = ids[name] { header.addLabel(rid, id: id) }
        transportSequence &+= 1
        if let id = ids[.transportWideCC] { header.addTransportSequenceNumber(transportSequence, id: id) }
        if source.kind == .audio, let id = ids[.audioLevel] {
            header.addAudioLevel(.init(level: source.level, voice: true), id: id)
        } else if let id = ids[.absCaptureTime] {
            header.addExtension(id: id, value: 3, length: 4)
        }
        return header.finish()
    }

    /// Returns a packet's bytes before encryption.
    func plain(_ packet: OutgoingPacket, of source: SimulatedSource) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 128)
        let length = bytes.withUnsafeMutableBytes { writeHeader(of: packet, source, to: $0) }
        return bytes[..<length] + packet.payload
    }

    /// Encrypts and sends an arbitrary packet. `header` writes the packet's header and returns its length.
    func sendRaw(payload: [UInt8], _ header: (UnsafeMutableRawBufferPointer) -> Int) {
        guard let path = transport.selectedPath else { return }
        let memory = host.prepare(2048)
        let headerLength = header(memory)
        let length = payload.withUnsafeBytes {
            transport.protect(
                memory, headerLength: headerLength, prefix: UnsafeRawBufferPointer(start: nil, count: 0), payload: $0
            )
        }
        if let length { host.send(length, on: path) }
    }

    func sendControl(_ write: (inout ByteWriter) -> Void) {
        guard let path = transport.selectedPath else { return }
        let memory = host.prepare(2048)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<1400]))
        write(&writer)
        guard writer.count > 0, !writer.overflowed,
            let length = transport.protectControl(memory, length: writer.count)
        else { return }
        host.send(length, on: path)
    }

    private func report() {
        let wallClock = NTPTime(now, origin: clock)
        for source in sources {
            let info = RTCP.SenderInfo(
                ssrc: source.ssrc, ntp: wallClock, rtpTimestamp: source.timestamp(now), packetCount: source.packets,
                octetCount: 0
            )
            sendControl { RTCP.writeSenderReport(info, to: &$0) }
        }
        let blocks = slots.compactMap { $0.reportBlock(at: now) }
        if !blocks.isEmpty { sendControl { RTCP.writeReceiverReport(sender: 1, blocks: blocks, to: &$0) } }
    }

    private func complain(of slot: SimulatedSlot) {
        guard slot.kind == .video else { return }
        var lost: [UInt16] = []
        slot.missing.forEachDue(at: now, roundTrip: .milliseconds(60)) { lost.append($0) }
        if slot.missing.takeKeyframeNeed() { slot.needsKeyframe = true }
        if !lost.isEmpty, slot.repairSSRC != nil {
            nacksSent += lost.count
            sendControl { RTCP.writeNACK(sender: 1, media: slot.ssrc, lost: lost, to: &$0) }
        }
        guard slot.isStuck(at: now), slot.complainedAt.map({ now - $0 > .milliseconds(500) }) ?? true else { return }
        slot.complainedAt = now
        sendControl { RTCP.writePLI(sender: 1, media: slot.ssrc, to: &$0) }
    }
}
