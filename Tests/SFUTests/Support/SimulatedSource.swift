import RTC
import TestSupport

/// The content of each payload of a `SimulatedSource`, with which the receiver can check a packet.
struct PayloadTag: Equatable {
    static let length = 20
    /// The number that identifies the source.
    var label: UInt32
    var frame: UInt32
    var index: UInt8
    /// The number of packets in the frame.
    var count: UInt8
    var isKeyframe: Bool
    var captured: MediaTime

    init(label: UInt32, frame: UInt32, index: Int, count: Int, isKeyframe: Bool, captured: MediaTime) {
        (self.label, self.frame, self.isKeyframe, self.captured) = (label, frame, isKeyframe, captured)
        (self.index, self.count) = (UInt8(index), UInt8(count))
    }

    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard let label = reader.u32(), let frame = reader.u32(), let index = reader.u8(), let count = reader.u8(),
            let key = reader.u16(), let captured = reader.u64()
        else { return nil }
        self.init(
            label: label, frame: frame, index: Int(index), count: Int(count), isKeyframe: key == 1,
            captured: MediaTime(nanoseconds: Int64(bitPattern: captured))
        )
    }

    func write(to writer: inout ByteWriter) {
        writer.u32(label)
        writer.u32(frame)
        writer.u8(index)
        writer.u8(count)
        writer.u16(isKeyframe ? 1 : 0)
        writer.u64(UInt64(bitPattern: captured.nanoseconds))
    }
}

/// A packet before its header is written.
struct OutgoingPacket {
    var payloadType: UInt8
    var marker = false
    var sequence: UInt16
    var timestamp: UInt32
    var ssrc: UInt32
    var payload: [UInt8]
}

/// A simulated microphone or camera of a client.
final class SimulatedSource {
    let mid: String
    let kind: MediaKind
    var ssrc: UInt32
    let repairSSRC: UInt32
    let label: UInt32
    var codec: Codec
    var rid: String?
    var level: UInt8 = 20
    var isOn = true
    /// Whether packets are wrapped in redundant audio (RFC 2198).
    var isRedundant = false
    /// The number of earlier packets that a packet of redundant audio contains.
    var distance = 1
    private var copies: [(timestamp: UInt32, block: [UInt8])] = []

    /// The picture size in the source's keyframes, if any.
    var size: PictureSize?
    /// The number of packets in a picture that is no keyframe. A packet has about 600 bytes.
    var packetsInPicture = 1...3
    var packetsInKeyframe = 6
    /// The bytes of a video packet, and of audio, in addition to the tag.
    var videoBytes = 100...1000
    var audioBytes = 20
    var frameInterval = MediaInterval.milliseconds(33)
    /// The temporal layers of successive pictures. `threeLayers` is libvpx's pattern: each picture refers to the
    /// previous picture in a lower layer. A picture that allows a switch up (`Y`, `isSync`) refers to no picture in its
    /// own layer.
    var temporalPattern: [(layer: UInt8, isSync: Bool)] = [(0, false)]
    static let threeLayers: [(layer: UInt8, isSync: Bool)] = [(0, false), (2, true), (1, true), (2, false)]
    private var position = 0

    private var random: SeededGenerator
    var sequence: UInt16
    private var repairSequence: UInt16
    private let timestampOrigin: UInt32
    private var picture: UInt16
    private var layerZero: UInt8
    private(set) var frame: UInt32 = 0
    private var nextAt: MediaTime?
    private var wantsKeyframe = true
    private var kept: [UInt16: OutgoingPacket] = [:]
    private(set) var keyframesAsked = 0
    private(set) var keyframesMade = 0
    private(set) var retransmissionsRequested = 0
    private(set) var packets: UInt32 = 0

    init(mid: String, kind: MediaKind, label: UInt32, codec: Codec, random: inout SeededGenerator) {
        (self.mid, self.kind, self.label, self.codec) = (mid, kind, label, codec)
        ssrc = random.next(upperBound: UInt32.max) + 1
        repairSSRC = random.next(upperBound: UInt32.max) + 1
        sequence = UInt16.random(in: 0..<0x8000, using: &random)
        repairSequence = UInt16.random(in: 0..<0x8000, using: &random)
        timestampOrigin = UInt32.random(in: 0...UInt32.max, using: &random)
        picture = UInt16.random(in: 0..<0x8000, using: &random)
        layerZero = UInt8.random(in: 0...255, using: &random)
        self.random = SeededGenerator(seed: random.next())
    }

    /// Returns the packets of a frame if one is due now. Often none is due.
    func produce(now: MediaTime) -> [OutgoingPacket] {
        guard isOn, nextAt.map({ $0 <= now }) ?? true else { return [] }
        let interval = kind == .audio ? .milliseconds(20) : frameInterval
        nextAt = max(nextAt ?? now, now - interval) + interval
        let made = kind == .audio ? [sound(now)] : picture(now)
        for packet in made { kept[packet.sequence] = packet }
        for packet in made { kept[packet.sequence &- 1000] = nil }
        packets += UInt32(made.count)
        return made
    }

    func timestamp(_ now: MediaTime) -> UInt32 {
        let rate: Int64 = kind == .audio ? 48 : 90
        return timestampOrigin &+ UInt32(truncatingIfNeeded: now.nanoseconds / 1000 * rate / 1000)
    }

    private func packet(_ now: MediaTime, marker: Bool, _ payload: [UInt8]) -> OutgoingPacket {
        sequence &+= 1
        return OutgoingPacket(
            payloadType: codec.payloadType, marker: marker, sequence: sequence, timestamp: timestamp(now), ssrc: ssrc,
            payload: payload
        )
    }

    private func sound(_ now: MediaTime) -> OutgoingPacket {
        frame += 1
        let tag = PayloadTag(label: label, frame: frame, index: 0, count: 1, isKeyframe: false, captured: now)
        let block = bytes(tag, before: [], filler: audioBytes)
        guard isRedundant else { return packet(now, marker: false, block) }
        var payload: [UInt8] = []
        for copy in copies {
            let header = (timestamp(now) &- copy.timestamp) << 10 | UInt32(copy.block.count)
            payload += [0x80 | opus] + [16, 8, 0].map { UInt8(truncatingIfNeeded: header >> $0) }
        }
        payload += [opus] + copies.flatMap(\.block) + block
        copies.append((timestamp(now), block))
        if copies.count > distance { copies.removeFirst() }
        return packet(now, marker: false, payload)
    }

    /// The payload type of Opus within redundant audio.
    private var opus: UInt8 { codec.redundantPayloadTypes.first ?? 111 }

    private func picture(_ now: MediaTime) -> [OutgoingPacket] {
        frame += 1
        picture &+= 1
        let isKeyframe = wantsKeyframe
        wantsKeyframe = false
        if isKeyframe { position = 0 }
        let (layer, isSync) = temporalPattern[position % temporalPattern.count]
        position += 1
        if layer == 0 { layerZero &+= 1 }
        if isKeyframe { keyframesMade += 1 }
        let count = isKeyframe ? packetsInKeyframe : Int.random(in: packetsInPicture, using: &random)
        return (0..<count).map { index in
            // The bits X and S, the bits I, L and T, a 15-bit picture ID, TL0PICIDX, TID and Y (RFC 7741 §4.2).
            let first: UInt8 = index == 0 ? 0x90 : 0x80
            let number = 0x8000 | picture
            let descriptor: [UInt8] = [
                first, 0xe0, UInt8(number >> 8), UInt8(truncatingIfNeeded: number), layerZero,
                layer << 6 | (isSync ? 0x20 : 0),
            ]
            let isStart = isKeyframe && index == 0
            // H.264 has no descriptor. The first byte is the type of the NAL unit (RFC 6184 §5.2): a sequence
            // parameter set or a slice.
            let header = codec.isH264 ? [isStart ? 0x67 : 0x41] : descriptor + (isStart ? keyframeHeader : [1])
            let tag = PayloadTag(
                label: label, frame: frame, index: index, count: count, isKeyframe: isKeyframe, captured: now
            )
            let filler = Int.random(in: videoBytes, using: &random)
            return packet(now, marker: index == count - 1, bytes(tag, before: header, filler: filler))
        }
    }

    /// Returns the beginning of a VP8 keyframe (RFC 6386 §9.1).
    private var keyframeHeader: [UInt8] {
        guard let size else { return [0] }
        let (width, height) = (size.width, size.height)
        return [
            0x10, 0, 0, 0x9d, 0x01, 0x2a, UInt8(truncatingIfNeeded: width), UInt8(width >> 8),
            UInt8(truncatingIfNeeded: height), UInt8(height >> 8),
        ]
    }

    private func bytes(_ tag: PayloadTag, before: [UInt8], filler: Int) -> [UInt8] {
        var payload = [UInt8](repeating: 0x55, count: PayloadTag.length + filler)
        payload.withUnsafeMutableBytes {
            var writer = ByteWriter($0)
            tag.write(to: &writer)
        }
        return before + payload
    }

    func askForKeyframe() {
        keyframesAsked += 1
        wantsKeyframe = true
    }

    /// Returns a retransmission of the packet in the format of RFC 4588 §4.
    func again(_ number: UInt16) -> OutgoingPacket? {
        retransmissionsRequested += 1
        guard var packet = kept[number], let payloadType = codec.rtxPayloadType else { return nil }
        packet.payload = [UInt8(number >> 8), UInt8(truncatingIfNeeded: number)] + packet.payload
        repairSequence &+= 1
        (packet.payloadType, packet.sequence, packet.ssrc) = (payloadType, repairSequence, repairSSRC)
        return packet
    }
}

extension Codec {
    var isH264: Bool { if case .h264 = kind { true } else { false } }
}
