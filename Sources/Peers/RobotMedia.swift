import RTC

/// A source of media for a connection, such as a clip player, a load generator or a test camera.
///
/// All types in this file are used only on the connection's thread.
public protocol RobotSource: AnyObject {
    /// The time at which to call `produce` next; nil for never. The connection reads it again after each `produce` or
    /// `keyframeWanted` call.
    var nextDue: MediaTime? { get }
    /// Sends the media that is due, with `RobotConnection.send`. Called only while the connection is connected.
    func produce(over connection: RobotConnection, now: MediaTime)
    /// Called when a receiver requests a keyframe (PLI or FIR). The track's next frame should be a keyframe.
    func keyframeWanted(of track: RobotTrack)
}

/// Receives packets and state changes from a connection, on the connection's thread. The handler may call the
/// connection's functions, but must not end the connection in `received`.
public protocol RobotHandler: AnyObject {
    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection)
    /// Called after `connection.state` has changed.
    func stateChanged(of connection: RobotConnection)
}

extension RobotHandler {
    public func stateChanged(of connection: RobotConnection) {}
}

/// A received RTP packet, decrypted. If it was retransmitted (RFC 4588), this is the restored original packet.
public struct RobotPacket {
    public let header: RTPPacket
    /// The bytes of the whole packet, valid only during the call of `received`.
    public let bytes: UnsafeRawBufferPointer
    /// The sequence number, extended so that it does not wrap. Receivers use it to reorder packets.
    public let number: Int64
    /// Whether the packet arrived in an RTX stream (RFC 4588).
    public let isRetransmission: Bool
    /// When the packet arrived.
    public let at: MediaTime

    public var payload: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[header.payloadRange]) }
}

/// One encoding sent in one section: its counters, and recent packets for retransmission.
public final class RobotTrack {
    /// The maximum size of a payload in bytes. With headers and the authentication tag, it fits into a datagram of 1500 bytes.
    public static let maxPayload = 1300
    /// The number of packets stored for retransmission, two seconds at 1 Mbit/s. A power of two.
    static let kept = 256

    public let mid: String
    public let kind: MediaKind
    /// The RID of the simulcast layer; nil without simulcast.
    public let rid: String?
    public let ssrc: UInt32
    public let repairSSRC: UInt32?
    /// The negotiated codec. Before the answer arrives, this is the first offered codec.
    public internal(set) var codec: Codec
    public private(set) var packetsSent: UInt32 = 0
    public private(set) var bytesSent: UInt32 = 0
    /// The number of packets retransmitted in an RTX stream because the receiver requested them.
    public internal(set) var retransmissionsSent = 0
    public internal(set) var keyframesRequested = 0
    /// The number of whole video frames sent, counted by the source.
    package var framesSent = 0
    package var keyframesSent = 0
    /// The most recent report block from the remote side; nil before the first.
    public internal(set) var lastReport: RTCP.ReportBlock?
    /// The round-trip time from the most recent report that refers to a sender report; nil before the first such
    /// report.
    package internal(set) var roundTripTime: MediaInterval?
    /// A number that the track's creator may use for any purpose. The track does not use it.
    public var tag = 0
    /// Whether packets have the abs-send-time extension, if it was negotiated.
    package var sendsAbsoluteTime = false

    var extensions: [HeaderExtension: UInt8] = [:] { didSet { remember() } }
    private let midLabel: SDESLabel?
    private let ridLabel: SDESLabel?
    private var midID: UInt8?
    private var ridID: UInt8?
    private var repairedRIDID: UInt8?
    private var transportID: UInt8?
    private var levelID: UInt8?
    private var sendTimeID: UInt8?

    // Start in the lower half, so that the sequence number does not wrap before the receiver gets the first packet. The
    // receiver assumes rollover counter 0 for that packet (RFC 3711 §3.3.1).
    private(set) var sequence: UInt16
    var repairSequence: UInt16
    private(set) var lastTimestamp: UInt32 = 0
    private(set) var lastAt: MediaTime?
    private var history: RobotHistory?
    private var redundancy = RobotRedundancy()

    init(
        mid: String, kind: MediaKind, rid: String?, codec: Codec, source: LocalSource,
        using random: inout some RandomNumberGenerator
    ) {
        (self.mid, self.kind, self.rid, self.codec) = (mid, kind, rid, codec)
        (ssrc, repairSSRC) = (source.ssrc, source.rtxSSRC)
        (midLabel, ridLabel) = (SDESLabel(mid), rid.flatMap { SDESLabel($0) })
        sequence = UInt16.random(in: 0..<0x8000, using: &random)
        repairSequence = UInt16.random(in: 0..<0x8000, using: &random)
    }

    private func remember() {
        (midID, ridID) = (extensions[.mid], extensions[.rtpStreamID])
        (repairedRIDID, transportID) = (extensions[.repairedRtpStreamID], extensions[.transportWideCC])
        (levelID, sendTimeID) = (extensions[.audioLevel], extensions[.absSendTime])
    }

    /// Writes the header of the next packet, and returns its length in bytes.
    func writeHeader(
        to memory: UnsafeMutableRawBufferPointer, marker: Bool, timestamp: UInt32, transportSequence: UInt16,
        level: HeaderExtensions.AudioLevel?, sentAt: NTPTime
    ) -> Int {
        sequence &+= 1
        var header = RTPHeaderWriter(
            into: memory, payloadType: codec.payloadType, marker: marker, sequenceNumber: sequence,
            timestamp: timestamp, ssrc: ssrc
        )
        if let midLabel, let midID { header.addLabel(midLabel, id: midID) }
        if let ridLabel, let ridID { header.addLabel(ridLabel, id: ridID) }
        if let transportID { header.addTransportSequenceNumber(transportSequence, id: transportID) }
        if sendsAbsoluteTime, let sendTimeID { header.addAbsoluteSendTime(sentAt.absoluteSendTime, id: sendTimeID) }
        if let level, let levelID { header.addAudioLevel(level, id: levelID) }
        return header.finish()
    }

    /// Writes the header of a retransmission (RFC 4588 §4), and returns its length in bytes.
    func writeRepairHeader(
        to memory: UnsafeMutableRawBufferPointer, of packet: RobotHistory.Packet, payloadType: UInt8, ssrc: UInt32,
        transportSequence: UInt16
    ) -> Int {
        repairSequence &+= 1
        var header = RTPHeaderWriter(
            into: memory, payloadType: payloadType, marker: packet.marker, sequenceNumber: repairSequence,
            timestamp: packet.timestamp, ssrc: ssrc
        )
        if let midLabel, let midID { header.addLabel(midLabel, id: midID) }
        if let ridLabel, let repairedRIDID { header.addLabel(ridLabel, id: repairedRIDID) }
        if let transportID { header.addTransportSequenceNumber(transportSequence, id: transportID) }
        return header.finish()
    }

    func sent(_ payload: UnsafeRawBufferPointer, timestamp: UInt32, marker: Bool, at now: MediaTime) {
        packetsSent &+= 1
        bytesSent &+= UInt32(truncatingIfNeeded: payload.count)
        (lastTimestamp, lastAt) = (timestamp, now)
        guard repairSSRC != nil, codec.rtxPayloadType != nil else { return }
        if history == nil { history = RobotHistory(count: Self.kept, size: Self.maxPayload) }
        history?.keep(payload, sequence: sequence, timestamp: timestamp, marker: marker)
    }

    /// Returns the bytes before the payload in its packet: the previous payload if redundant audio was negotiated,
    /// otherwise nothing.
    func redundancy(before payload: UnsafeRawBufferPointer, timestamp: UInt32) -> [UInt8] {
        guard codec.kind == .red else { return [] }
        return redundancy.prefix(of: payload, timestamp: timestamp, in: codec)
    }

    func packet(_ sequence: UInt16) -> RobotHistory.Packet? { history?.packet(sequence) }

    /// Converts a time to an RTP timestamp of this track, counted from the last packet sent; 0 before the first.
    package func timestamp(at now: MediaTime) -> UInt32 {
        guard let lastAt else { return lastTimestamp }
        let passed = (now - lastAt).nanoseconds / 1000 * Int64(codec.clockRate) / 1_000_000
        return lastTimestamp &+ UInt32(truncatingIfNeeded: passed)
    }
}

/// The most recent packets of a track, in preallocated memory.
final class RobotHistory {
    /// A stored packet, before encryption.
    struct Packet {
        var sequence: UInt16
        var timestamp: UInt32
        var marker: Bool
        var payload: UnsafeRawBufferPointer
    }

    /// The header fields of one stored packet; its payload is in `memory`.
    private struct Slot {
        var sequence: UInt16 = 0
        var timestamp: UInt32 = 0
        var marker = false
        var length = 0
    }

    private let size: Int
    private let memory: UnsafeMutableRawBufferPointer
    private var slots: [Slot]

    /// - Parameter count: the number of packets to store, a power of two.
    init(count: Int, size: Int) {
        self.size = size
        memory = .allocate(byteCount: count * size, alignment: 16)
        slots = Array(repeating: Slot(), count: count)
    }

    deinit { memory.deallocate() }

    func keep(_ payload: UnsafeRawBufferPointer, sequence: UInt16, timestamp: UInt32, marker: Bool) {
        guard payload.count <= size else { return }
        let index = Int(sequence) & (slots.count - 1)
        slots[index] = Slot(sequence: sequence, timestamp: timestamp, marker: marker, length: payload.count)
        UnsafeMutableRawBufferPointer(rebasing: memory[index * size..<(index + 1) * size]).copyMemory(from: payload)
    }

    /// Looks up a packet.
    ///
    /// - Returns: the packet with this sequence number, if it is stored. Its payload stays valid until another packet
    ///   is stored in its slot, `count` packets later.
    func packet(_ sequence: UInt16) -> Packet? {
        let index = Int(sequence) & (slots.count - 1)
        let slot = slots[index]
        guard slot.length > 0, slot.sequence == sequence else { return nil }
        let start = index * size
        return Packet(
            sequence: sequence, timestamp: slot.timestamp, marker: slot.marker,
            payload: UnsafeRawBufferPointer(rebasing: memory[start..<start + slot.length])
        )
    }
}
