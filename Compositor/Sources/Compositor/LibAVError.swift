import CLibAV

/// A function of FFmpeg's libraries failed.
struct LibAVError: Error, CustomStringConvertible {
    /// What failed, and FFmpeg's text for it.
    let description: String

    init(_ what: String, _ code: Int32 = 0) {
        var text = [CChar](repeating: 0, count: 128)
        if code < 0 { av_strerror(code, &text, text.count) }
        let reason = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        description = reason.isEmpty ? "\(what) failed." : "\(what) failed: \(reason)."
    }

    /// Throws if a result is negative.
    static func check(_ result: Int32, _ what: String) throws(LibAVError) {
        if result < 0 { throw LibAVError(what, result) }
    }

    /// Throws if an allocation failed.
    static func unwrap<Value>(_ value: Value?, _ what: String) throws(LibAVError) -> Value {
        guard let value else { throw LibAVError(what) }
        return value
    }
}

/// An `AVFrame` that is freed with its last reference.
final class FrameBox {
    let pointer: UnsafeMutablePointer<AVFrame>

    init() throws(LibAVError) { pointer = try LibAVError.unwrap(av_frame_alloc(), "Allocating a frame") }

    /// Allocates the planes of a YUV 4:2:0 frame.
    convenience init(width: Int, height: Int) throws(LibAVError) {
        try self.init()
        pointer.pointee.format = AV_PIX_FMT_YUV420P.rawValue
        (pointer.pointee.width, pointer.pointee.height) = (Int32(width), Int32(height))
        try LibAVError.check(av_frame_get_buffer(pointer, 0), "Allocating a frame")
    }

    deinit {
        var pointer: UnsafeMutablePointer<AVFrame>? = pointer
        av_frame_free(&pointer)
    }

    /// The three planes of a YUV 4:2:0 frame: first byte, bytes from one row to the next, width and height.
    var planes: [(bytes: UnsafeMutablePointer<UInt8>, stride: Int, width: Int, height: Int)] {
        let frame = pointer.pointee
        let (width, height) = (Int(frame.width), Int(frame.height))
        guard let luma = frame.data.0, let blue = frame.data.1, let red = frame.data.2 else { return [] }
        return [
            (luma, Int(frame.linesize.0), width, height),
            (blue, Int(frame.linesize.1), (width + 1) / 2, (height + 1) / 2),
            (red, Int(frame.linesize.2), (width + 1) / 2, (height + 1) / 2),
        ]
    }
}

/// An `AVPacket` that is freed with its last reference.
final class PacketBox {
    let pointer: UnsafeMutablePointer<AVPacket>

    init() throws(LibAVError) { pointer = try LibAVError.unwrap(av_packet_alloc(), "Allocating a packet") }

    deinit {
        var pointer: UnsafeMutablePointer<AVPacket>? = pointer
        av_packet_free(&pointer)
    }

    /// Replaces the content by a copy of these bytes, with the padding that decoders read.
    func fill(_ bytes: [UInt8]) throws(LibAVError) {
        av_packet_unref(pointer)
        try LibAVError.check(av_new_packet(pointer, Int32(bytes.count)), "Allocating a packet")
        bytes.withUnsafeBytes { if let base = $0.baseAddress { memcpy(pointer.pointee.data, base, $0.count) } }
    }
}

/// An `AVCodecContext` that is freed with its last reference.
final class CodecBox {
    let pointer: UnsafeMutablePointer<AVCodecContext>

    init(_ codec: UnsafePointer<AVCodec>) throws(LibAVError) {
        pointer = try LibAVError.unwrap(avcodec_alloc_context3(codec), "Allocating a codec")
    }

    deinit {
        var pointer: UnsafeMutablePointer<AVCodecContext>? = pointer
        avcodec_free_context(&pointer)
    }

    /// Sets the codec's parameters from its container.
    func setConfiguration(_ bytes: [UInt8]) throws(LibAVError) {
        guard !bytes.isEmpty else { return }
        let padded = bytes.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
        let memory = try LibAVError.unwrap(av_mallocz(padded), "Allocating a configuration")
        bytes.withUnsafeBytes { if let base = $0.baseAddress { memcpy(memory, base, $0.count) } }
        pointer.pointee.extradata = memory.assumingMemoryBound(to: UInt8.self)
        pointer.pointee.extradata_size = Int32(bytes.count)
    }

    /// The codec's parameters for its container.
    var configuration: [UInt8] {
        guard let bytes = pointer.pointee.extradata else { return [] }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(pointer.pointee.extradata_size)))
    }
}
