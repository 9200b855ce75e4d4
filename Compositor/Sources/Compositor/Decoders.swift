import CLibAV
import LiveComposing

/// Decodes the video of one stream.
final class VideoDecoder {
    /// The largest frame in pixels, twice the largest canvas of OpenTok's API. Larger ones are damaged. A decoder keeps ten frames of
    /// 1.5 bytes per pixel, which are 62 MB, so that the 16 streams that are drawn fit in the memory of this process.
    static let maxPixels: Int64 = 2 * 1_920 * 1_080

    private let context: CodecBox
    private let packet: PacketBox
    private let received: FrameBox

    /// - Parameter configuration: the codec's parameters, as Matroska has them.
    /// - Throws: if FFmpeg has no decoder for the codec, or refuses the parameters.
    init(_ codec: CompositorCodec, configuration: [UInt8]) throws(LibAVError) {
        let names = codec.decoders
        guard let decoder = names.lazy.compactMap({ avcodec_find_decoder_by_name($0) }).first else {
            throw LibAVError("Finding a decoder (\(names.joined(separator: ", ")))")
        }
        (context, packet, received) = (try CodecBox(decoder), try PacketBox(), try FrameBox())
        context.pointer.pointee.thread_count = 1
        context.pointer.pointee.max_pixels = Self.maxPixels
        context.pointer.pointee.flags |= AV_CODEC_FLAG_LOW_DELAY
        try context.setConfiguration(configuration)
        try LibAVError.check(avcodec_open2(context.pointer, decoder, nil), "Opening the decoder")
    }

    /// Decodes a frame. Returns the newest image, or nil if the frame has none that is shown.
    func decode(_ bytes: [UInt8]) throws(LibAVError) -> FrameBox? {
        try packet.fill(bytes)
        try LibAVError.check(avcodec_send_packet(context.pointer, packet.pointer), "Decoding a frame")
        var newest: FrameBox?
        while true {
            let result = avcodec_receive_frame(context.pointer, received.pointer)
            if confab_needs_more(result) != 0 { return newest }
            try LibAVError.check(result, "Decoding a frame")
            let image = if let newest { newest } else { try FrameBox() }
            av_frame_unref(image.pointer)
            av_frame_move_ref(image.pointer, received.pointer)
            newest = image
        }
    }

    /// Prepares for the next keyframe after a failure.
    func reset() { avcodec_flush_buffers(context.pointer) }
}

extension CompositorCodec {
    /// FFmpeg's names of decoders. The first that is there is used.
    fileprivate var decoders: [String] {
        switch self {
        case .vp8: ["vp8", "libvpx"]
        case .vp9: ["vp9", "libvpx-vp9"]
        case .av1: ["libdav1d", "libaom-av1"]
        case .h264: ["h264"]
        }
    }
}

/// Decodes the Opus packets of one stream to 48 kHz mono. It uses libopus, because FFmpeg's own decoder does not conceal losses.
final class AudioDecoder {
    private let context: CodecBox
    private let packet: PacketBox
    private let received: FrameBox

    init() throws(LibAVError) {
        guard let decoder = avcodec_find_decoder_by_name("libopus") else {
            throw LibAVError("Finding the decoder libopus")
        }
        (context, packet, received) = (try CodecBox(decoder), try PacketBox(), try FrameBox())
        context.pointer.pointee.sample_rate = Int32(AudioMixer.sampleRate)
        context.pointer.pointee.request_sample_fmt = AV_SAMPLE_FMT_FLT
        av_channel_layout_default(&context.pointer.pointee.ch_layout, 1)
        try LibAVError.check(avcodec_open2(context.pointer, decoder, nil), "Opening the decoder libopus")
        guard context.pointer.pointee.ch_layout.nb_channels == 1,
            context.pointer.pointee.sample_fmt == AV_SAMPLE_FMT_FLT
        else { throw LibAVError("Opening the decoder libopus for mono") }
    }

    /// Returns the samples of a packet.
    func decode(_ bytes: [UInt8]) throws(LibAVError) -> [Float] {
        try packet.fill(bytes)
        try LibAVError.check(avcodec_send_packet(context.pointer, packet.pointer), "Decoding an Opus packet")
        var samples: [Float] = []
        while true {
            let result = avcodec_receive_frame(context.pointer, received.pointer)
            if confab_needs_more(result) != 0 { return samples }
            try LibAVError.check(result, "Decoding an Opus packet")
            let count = Int(received.pointer.pointee.nb_samples)
            received.pointer.pointee.data.0?.withMemoryRebound(to: Float.self, capacity: count) {
                samples += UnsafeBufferPointer(start: $0, count: count)
            }
            av_frame_unref(received.pointer)
        }
    }
}
