import RTC

/// What makes the media that a connection sends: a player of files, a load, a camera of a test.
///
/// It belongs to the connection's thread, as everything here does.
public protocol RobotSource: AnyObject {
    /// When `produce` has something to do; nil is never. Asked again after each call of either function.
    var nextDue: MediaTime? { get }
    /// Sends what is due by `RobotConnection.send`. Called only while the connection is connected.
    func produce(over connection: RobotConnection, now: MediaTime)
    /// Somebody asks for a keyframe (PLI or FIR): the next frame of that track should be one.
    func keyframeWanted(of track: RobotTrack)
}

/// What hears of a connection. Called on its thread; it may call the connection, but not end it from `received`.
public protocol RobotHandler: AnyObject {
    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection)
    /// `connection.state` is another one now.
    func stateChanged(of connection: RobotConnection)
}

extension RobotHandler {
    public func stateChanged(of connection: RobotConnection) {}
}

/// An RTP packet that has come, decrypted. A repeated one (RFC 4588) stands here as it would have come the first time.
public struct RobotPacket {
    public let header: RTPPacket
    /// The whole packet, good for the call.
    public let bytes: UnsafeRawBufferPointer
    /// Its sequence number in a count that does not wrap, so that a receiver can put packets into order.
    public let number: Int64
    /// It came because it was asked for again.
    public let isRepeat: Bool
    public let at: MediaTime

    public var payload: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[header.payloadRange]) }
}

/// What one connection sends in one section and encoding: numbers, and what was sent last for those who missed it.
public final class RobotTrack {
    /// In bytes: what fits a datagram of 1500 with headers and tag.
    public static let mostPayload = 1300
    /// Packets that can be asked for again: two seconds of 1 Mbit/s. A power of two.
    static let kept = 256

    public let mid: String
    public let kind: MediaKind
    /// Of a layer of simulcast.
    public let rid: String?
    public let ssrc: UInt32
    public let repairSSRC: UInt32?
    /// As the answer has it; before that, what was offered first.
    public internal(set) var codec: Codec
    public private(set) var packetsSent: UInt32 = 0
    public private(set) var bytesSent: UInt32 = 0
    /// Packets that were sent again.
    public internal(set) var repeatsSent = 0
    public internal(set) var keyframesAsked = 0
    /// What the other end said of it last.
    public internal(set) var lastReport: RTCP.ReportBlock?
    /// For whoever made the track.
    public var tag = 0

    var extensions: [HeaderExtension: UInt8] = [:] { didSet { remember() } }
    private let midLabel: SDESLabel?
    private let ridLabel: SDESLabel?
    private var midID: UInt8?
    private var ridID: UInt8?
    private var repairedRIDID: UInt8?
    private var transportID: UInt8?
    private var levelID: UInt8?

    // An SRTP receiver takes the first packet's rollover counter for 0 (RFC 3711 §3.3.1).
    private(set) var sequence: UInt16
    var repairSequence: UInt16
    private(set) var lastTimestamp: UInt32 = 0
    private(set) var lastAt: MediaTime?
    private var history: RobotHistory?

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
        levelID = extensions[.audioLevel]
    }

    /// The next packet's header.
    func writeHeader(
        to memory: UnsafeMutableRawBufferPointer, marker: Bool, timestamp: UInt32, transportSequence: UInt16,
        level: HeaderExtensions.AudioLevel?
    ) -> Int {
        sequence &+= 1
        var header = RTPHeaderWriter(
            into: memory, payloadType: codec.payloadType, marker: marker, sequenceNumber: sequence,
            timestamp: timestamp, ssrc: ssrc
        )
        if let midLabel, let midID { header.addLabel(midLabel, id: midID) }
        if let ridLabel, let ridID { header.addLabel(ridLabel, id: ridID) }
        if let transportID { header.addTransportSequenceNumber(transportSequence, id: transportID) }
        if let level, let levelID { header.addAudioLevel(level, id: levelID) }
        return header.finish()
    }

    /// The header of a packet that is sent again (RFC 4588 §4).
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
        if history == nil { history = RobotHistory(count: Self.kept, size: Self.mostPayload) }
        history?.keep(payload, sequence: sequence, timestamp: timestamp, marker: marker)
    }

    func packet(_ sequence: UInt16) -> RobotHistory.Packet? { history?.packet(sequence) }

    /// The same moment by the clock of its timestamps.
    func timestamp(at now: MediaTime) -> UInt32 {
        guard let lastAt else { return lastTimestamp }
        let passed = (now - lastAt).nanoseconds / 1000 * Int64(codec.clockRate) / 1_000_000
        return lastTimestamp &+ UInt32(truncatingIfNeeded: passed)
    }
}

/// The last packets of a track, in memory taken once.
final class RobotHistory {
    struct Packet {
        var sequence: UInt16
        var timestamp: UInt32
        var marker: Bool
        var payload: UnsafeRawBufferPointer
    }

    private struct Slot {
        var sequence: UInt16 = 0
        var timestamp: UInt32 = 0
        var marker = false
        var length = 0
    }

    private let size: Int
    private let memory: UnsafeMutableRawBufferPointer
    private var slots: [Slot]

    /// - Parameter count: a power of two.
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

    /// - Returns: its payload lies here until 256 more are kept.
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
