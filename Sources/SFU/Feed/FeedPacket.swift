import RTC

/// A packet of a feed with what forwarding needs to know about it. Its bytes are in the receive buffer, or in the
/// history if a flush ended before the packet was forwarded.
struct FeedPacket {
    var bytes: UnsafeRawBufferPointer
    var packet: RTPPacket
    /// The extended sequence number at the publisher.
    var sequence: Int64
    /// The index of the packet's codec in the track's `codecs`.
    var codec: Int
    var startsKeyframe: Bool
    var picture: UInt16?
    var layerZero: UInt8?
    /// VP8's temporal layer (`TID` in RFC 7741 §4.2), 0 to 3.
    var temporalLayer = noLayer
    /// Whether a receiver may switch up to this temporal layer at this packet (`Y` in RFC 7741 §4.2).
    var isLayerSync = false
    /// Whether this is the first packet of a frame.
    var startsPicture = false
    /// The VP8 descriptor, if it contains a picture id or a TL0PICIDX, which are rewritten for each subscriber;
    /// otherwise nil.
    var descriptor: VP8Descriptor?
    /// Whether the packet arrived as a retransmission.
    var isRecovered = false
    /// How many bytes after the packet may be overwritten.
    var spare: UInt8 = 0
    /// The bytes of padding after the payload that are sent with it (RFC 3550 §5.1).
    private(set) var padding: UInt8 = 0
    /// The packet's header extensions that are forwarded.
    var extensions = ForwardedExtensions.none

    /// The bytes that each packet adds on the link in addition to the RTP packet: the SRTP tag and the headers of UDP
    /// and IP.
    static let linkOverhead = 44
    /// The value of `temporalLayer` for a packet without a temporal layer.
    static let noLayer: UInt8 = 255

    var payload: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange]) }

    /// Adds padding after the payload, up to a size in bytes. Does nothing if too few bytes may be overwritten. Replaces padding that
    /// the packet arrived with, because another node may have added it. All readers on this event loop share the bytes, so each
    /// reader must pad and send before the next one pads.
    ///
    /// Only for video: in redundant audio, other copies follow the payload.
    mutating func pad(to size: Int) {
        let missing = size - packet.payloadRange.count
        let room = bytes.count - packet.payloadRange.upperBound + Int(spare)
        guard missing > 0, missing <= min(room, 255), let base = bytes.baseAddress else { return }
        let end = UnsafeMutableRawPointer(mutating: base) + packet.payloadRange.upperBound
        for offset in 0..<missing - 1 { end.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self) }
        end.storeBytes(of: UInt8(missing), toByteOffset: missing - 1, as: UInt8.self)
        padding = UInt8(missing)
    }

    /// Makes the packet refer to a copy of its bytes, without the padding that was added.
    mutating func move(to copy: UnsafeRawBufferPointer) { (bytes, spare, padding) = (copy, 0, 0) }
}

extension [FeedPacket] {
    /// Pads the packets of each frame of video to the size of its longest packet, except for the last one. libwebrtc
    /// splits a frame into parts that differ by one byte, but the kernel splits a message only into equal parts, of
    /// which the last may be shorter.
    mutating func equalize() {
        var first = 0
        while first < count {
            var (end, longest) = (first, 0)
            while end < count, self[end].packet.timestamp == self[first].packet.timestamp {
                longest = Swift.max(longest, self[end].packet.payloadRange.count)
                end += 1
            }
            for index in first..<end - 1 { self[index].pad(to: longest) }
            first = end
        }
    }
}

extension FeedPacket {
    /// Collects the information about a packet that forwarding needs.
    @inline(__always)
    init(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, sequence: Int64, codec: Int, of track: FeedTrack) {
        self.init(bytes: bytes, packet: packet, sequence: sequence, codec: codec, startsKeyframe: false)
        inspect(track.codecs[codec].kind)
        guard track.forwardsExtensions else { return }
        packet.forEachHeaderExtension(in: bytes) { id, range in
            if track.forwardsExtension(id) { extensions.add(id, range) }
        }
    }

    /// Reads the information that forwarding needs from the payload: whether a decoder can start here, and the picture
    /// ids.
    private mutating func inspect(_ codec: Codec.Kind) {
        if case .vp8 = codec {
            guard let descriptor = VP8Descriptor(payload) else { return }
            startsKeyframe = descriptor.isKeyframeStart
            picture = descriptor.pictureID
            temporalLayer = descriptor.temporalLayer ?? Self.noLayer
            isLayerSync = descriptor.isLayerSync
            startsPicture = descriptor.isFrameStart
            layerZero = descriptor.temporalLayerZeroIndex
            if picture != nil || layerZero != nil { self.descriptor = descriptor }
        } else if case .h264 = codec {
            // Let subscribers start only with parameter sets, because a decoder cannot use an IDR slice without them.
            startsKeyframe = H264Payload(payload)?.hasSequenceParameterSet ?? false
        } else {
            startsKeyframe = codec.payloadFormat?.isKeyframeStart(payload) ?? false
        }
    }
}

/// The header extensions of a packet that may be forwarded to subscribers. Almost always there is only one, which is
/// then located once for all subscribers.
enum ForwardedExtensions {
    case none
    case one(id: UInt8, range: Range<Int>)
    case several

    mutating func add(_ id: UInt8, _ range: Range<Int>) {
        if case .none = self { self = .one(id: id, range: range) } else { self = .several }
    }
}

extension HeaderExtension {
    /// Whether the extension is forwarded to subscribers. Extensions that describe the media are forwarded; those that
    /// concern only one connection are rewritten or dropped.
    var isForwarded: Bool {
        switch self {
        case .audioLevel, .absCaptureTime: true
        // Do not forward a playout delay. The receiver's transceiver would keep applying it, also to the next source.
        case .playoutDelay: false
        default: false
        }
    }
}

extension Codec.Kind {
    /// The codec's video payload format; nil for audio.
    var payloadFormat: VideoPayloadFormat? {
        switch self {
        case .opus, .red: nil
        case .vp8: .vp8
        case .vp9: .vp9
        case .h264: .h264
        case .av1: .av1
        }
    }
}
