import CLibAV

/// Writes fragmented MP4 to memory: one `moof` with both tracks, and one `mdat`, for each fragment.
final class FragmentWriter {
    /// The tracks, in the order of the file.
    enum Track: Int { case video, audio }

    private let context: UnsafeMutablePointer<AVFormatContext>
    private let memory: UnsafeMutablePointer<confab_memory>
    private let timeBases: [AVRational]

    /// Writes the header, which `take` returns.
    init(video: CodecBox, audio: CodecBox) throws(LibAVError) {
        var created: UnsafeMutablePointer<AVFormatContext>?
        try LibAVError.check(avformat_alloc_output_context2(&created, nil, "mp4", nil), "Finding the muxer mp4")
        context = try LibAVError.unwrap(created, "Allocating the muxer")
        memory = .allocate(capacity: 1)
        memory.initialize(to: confab_memory())
        timeBases = [video.pointer.pointee.time_base, audio.pointer.pointee.time_base]
        context.pointee.pb = try LibAVError.unwrap(confab_memory_open(memory), "Allocating the muxer")
        for codec in [video, audio] {
            let track = try LibAVError.unwrap(avformat_new_stream(context, nil), "Adding a track")
            try LibAVError.check(
                avcodec_parameters_from_context(track.pointee.codecpar, codec.pointer), "Adding a track")
            track.pointee.time_base = codec.pointer.pointee.time_base
        }
        let options = [("movflags", "empty_moov+default_base_moof+frag_custom")]
        for (name, value) in options {
            try LibAVError.check(av_opt_set(context.pointee.priv_data, name, value, 0), "Setting the muxer's \(name)")
        }
        try LibAVError.check(avformat_write_header(context, nil), "Writing the header")
    }

    deinit {
        // The muxer frees neither its output nor the output's buffer.
        if let output = context.pointee.pb { av_freep(&output.pointee.buffer) }
        avio_context_free(&context.pointee.pb)
        avformat_free_context(context)
        av_free(memory.pointee.bytes)
        memory.deallocate()
    }

    /// Adds a packet to the fragment.
    func write(_ packet: UnsafeMutablePointer<AVPacket>, to track: Track) throws(LibAVError) {
        guard let stream = context.pointee.streams[track.rawValue] else { throw LibAVError("Writing") }
        packet.pointee.stream_index = Int32(track.rawValue)
        av_packet_rescale_ts(packet, timeBases[track.rawValue], stream.pointee.time_base)
        try LibAVError.check(av_write_frame(context, packet), "Writing")
    }

    /// Ends the fragment, and returns it. Call it once after the header was taken to get the first one.
    func endFragment() throws(LibAVError) -> [UInt8] {
        try LibAVError.check(av_write_frame(context, nil), "Writing a fragment")
        return take()
    }

    /// Returns what was written since the last call.
    func take() -> [UInt8] {
        avio_flush(context.pointee.pb)
        let bytes = Array(UnsafeBufferPointer(start: memory.pointee.bytes, count: memory.pointee.count))
        memory.pointee.count = 0
        return bytes
    }
}
