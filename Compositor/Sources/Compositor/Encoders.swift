import CLibAV
import LiveComposing

/// Encodes the canvas with x264.
///
/// All presets have the same parameters in the file's header, so the preset can change at a keyframe: `header` of two encoders is
/// equal if their configuration is.
final class VideoEncoder {
    let context: CodecBox
    private let packet: PacketBox

    init(_ configuration: CompositorConfiguration, preset: String) throws(LibAVError) {
        guard let encoder = avcodec_find_encoder_by_name("libx264") else {
            throw LibAVError("Finding the encoder libx264")
        }
        (context, packet) = (try CodecBox(encoder), try PacketBox())
        let codec = context.pointer
        (codec.pointee.width, codec.pointee.height) = (Int32(configuration.width), Int32(configuration.height))
        codec.pointee.pix_fmt = AV_PIX_FMT_YUV420P
        codec.pointee.time_base = Self.timeBase
        codec.pointee.framerate = AVRational(num: Self.timeBase.den, den: 1)
        codec.pointee.bit_rate = Int64(configuration.bitrate)
        codec.pointee.rc_max_rate = Int64(configuration.bitrate)
        codec.pointee.rc_buffer_size = Int32(configuration.bitrate)
        codec.pointee.gop_size = Int32(CompositorClock.framesPerGroup)
        codec.pointee.max_b_frames = 0
        codec.pointee.thread_count = Int32(configuration.threads)
        codec.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        let options = [
            // No frame waits for later ones, so a fragment is complete with its last frame.
            ("preset", preset), ("tune", "zerolatency"), ("profile", "main"), ("level", Self.level(configuration)),
            ("forced-idr", "1"),
            // What a preset would change in the header. Without `stitchable`, the header depends on the rate control.
            (
                "x264-params",
                "scenecut=0:open-gop=0:stitchable=1:ref=1:cabac=1:8x8dct=0:weightp=0:bframes=0"
                    + ":sliced-threads=\(configuration.threads > 1 ? 1 : 0)"
            ),
        ]
        for (name, value) in options {
            try LibAVError.check(av_opt_set(codec.pointee.priv_data, name, value, 0), "Setting the encoder's \(name)")
        }
        try LibAVError.check(avcodec_open2(codec, encoder, nil), "Opening the encoder libx264")
    }

    /// The unit of times: frames of the clock.
    static let timeBase = AVRational(num: 1, den: 25)

    /// The lowest level that allows the size at 25 frames per second (H.264 table A-1), with one reference frame.
    private static func level(_ configuration: CompositorConfiguration) -> String {
        switch (configuration.width + 15) / 16 * ((configuration.height + 15) / 16) {
        case ...3_600: "3.1"
        case ...8_192: "4.0"
        case ...22_080: "5.0"
        default: "5.2"
        }
    }

    /// The parameters in the file's header.
    var header: [UInt8] { context.configuration }

    /// Encodes a frame, and gives each packet to `output`.
    ///
    /// - Parameters:
    ///   - time, duration: in frames of the clock.
    func encode(
        _ frame: FrameBox, at time: Int, duration: Int, isKeyframe: Bool,
        _ output: (UnsafeMutablePointer<AVPacket>) throws(LibAVError) -> Void
    ) throws(LibAVError) {
        frame.pointer.pointee.pts = Int64(time)
        frame.pointer.pointee.pict_type = isKeyframe ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
        try LibAVError.check(avcodec_send_frame(context.pointer, frame.pointer), "Encoding a frame")
        try receivePackets(context, packet) { packet throws(LibAVError) in
            packet.pointee.duration = Int64(duration)
            try output(packet)
        }
    }
}

/// Encodes mixed audio as AAC.
final class AudioEncoder {
    /// Bits per second, as OpenTok's broadcasts have.
    private static let bitrate: Int64 = 128_000

    let context: CodecBox
    private let packet: PacketBox
    private let frame: FrameBox
    /// Samples that do not fill a frame of the encoder yet.
    private var waiting: [Float] = []
    private var position: Int64 = 0

    init() throws(LibAVError) {
        guard let encoder = avcodec_find_encoder_by_name("aac") else { throw LibAVError("Finding the encoder aac") }
        (context, packet, frame) = (try CodecBox(encoder), try PacketBox(), try FrameBox())
        let codec = context.pointer
        codec.pointee.sample_rate = Int32(AudioMixer.sampleRate)
        codec.pointee.sample_fmt = AV_SAMPLE_FMT_FLTP
        av_channel_layout_default(&codec.pointee.ch_layout, 1)
        codec.pointee.bit_rate = Self.bitrate
        codec.pointee.time_base = AVRational(num: 1, den: Int32(AudioMixer.sampleRate))
        codec.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        try LibAVError.check(avcodec_open2(codec, encoder, nil), "Opening the encoder aac")
    }

    /// Encodes samples, and gives each packet to `output`.
    func encode(
        _ samples: [Float], _ output: (UnsafeMutablePointer<AVPacket>) throws(LibAVError) -> Void
    ) throws(LibAVError) {
        waiting += samples
        let size = Int(context.pointer.pointee.frame_size)
        while waiting.count >= size {
            try fill(Array(waiting.prefix(size)))
            waiting.removeFirst(size)
            try LibAVError.check(avcodec_send_frame(context.pointer, frame.pointer), "Encoding audio")
            try receivePackets(context, packet) { packet throws(LibAVError) in
                // The encoder's first packet is before time 0: it only prepares the decoder, and the times of the others are
                // those of their samples without it.
                if packet.pointee.pts >= 0 { try output(packet) }
            }
        }
    }

    private func fill(_ samples: [Float]) throws(LibAVError) {
        av_frame_unref(frame.pointer)
        frame.pointer.pointee.format = AV_SAMPLE_FMT_FLTP.rawValue
        frame.pointer.pointee.nb_samples = Int32(samples.count)
        frame.pointer.pointee.sample_rate = Int32(AudioMixer.sampleRate)
        av_channel_layout_default(&frame.pointer.pointee.ch_layout, 1)
        try LibAVError.check(av_frame_get_buffer(frame.pointer, 0), "Encoding audio")
        frame.pointer.pointee.pts = position
        position += Int64(samples.count)
        let target = try LibAVError.unwrap(frame.pointer.pointee.data.0, "Encoding audio")
        samples.withUnsafeBytes { bytes in
            if let base = bytes.baseAddress { memcpy(target, base, bytes.count) }
        }
    }
}

/// Gives all packets of an encoder that are ready to `output`.
private func receivePackets(
    _ context: CodecBox, _ packet: PacketBox, _ output: (UnsafeMutablePointer<AVPacket>) throws(LibAVError) -> Void
) throws(LibAVError) {
    while true {
        let result = avcodec_receive_packet(context.pointer, packet.pointer)
        if confab_needs_more(result) != 0 { return }
        try LibAVError.check(result, "Encoding")
        defer { av_packet_unref(packet.pointer) }
        try output(packet.pointer)
    }
}
