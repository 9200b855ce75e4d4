import LiveComposing

/// The decoders of all streams, and the last image of each.
final class StreamDecoders {
    private struct Stream {
        var video: VideoDecoder?
        var audio: AudioDecoder?
        var image: FrameBox?
        /// Increases with each image.
        var version = 0
        /// Whether its last frame or packet was damaged. Only the first of several is reported.
        var isDamaged = false
    }

    private var streams: [UInt32: Stream] = [:]
    /// Frames and packets that could not be decoded.
    private(set) var damaged = 0
    /// What to report to the server.
    private(set) var faults: [CompositorFault] = []

    /// Returns a stream's last image, and a number that changes with it.
    func image(of id: UInt32) -> (FrameBox, version: Int)? {
        streams[id]?.image.map { ($0, streams[id]?.version ?? 0) }
    }

    /// Decodes what is due. Returns false if the stream can only continue at a keyframe.
    func decode(_ items: [VideoQueue.Item], of id: UInt32) -> Bool {
        var stream = streams[id] ?? Stream()
        var needsKeyframe = false
        for item in items {
            switch item {
            case .decoder(let codec, let configuration):
                stream.video = nil
                do throws(LibAVError) {
                    stream.video = try VideoDecoder(codec, configuration: configuration)
                } catch {
                    report(error, id, &stream)
                }
                needsKeyframe = false
            case .frame(let frame):
                guard let decoder = stream.video, !needsKeyframe || frame.isKeyframe else { continue }
                needsKeyframe = false
                do throws(LibAVError) {
                    if let image = try decoder.decode(frame.bytes) {
                        stream.image = image
                        stream.version += 1
                    }
                    stream.isDamaged = false
                } catch {
                    decoder.reset()
                    needsKeyframe = true
                    report(error, id, &stream)
                }
            }
        }
        streams[id] = stream
        return !needsKeyframe
    }

    /// Decodes an Opus packet. Returns silence for nothing: a damaged packet has no samples.
    func decodeAudio(_ bytes: [UInt8], of id: UInt32) -> [Float] {
        var stream = streams[id] ?? Stream()
        defer { streams[id] = stream }
        do throws(LibAVError) {
            let decoder = if let audio = stream.audio { audio } else { try AudioDecoder() }
            stream.audio = decoder
            return try decoder.decode(bytes)
        } catch {
            report(error, id, &stream)
            return []
        }
    }

    private func report(_ error: LibAVError, _ id: UInt32, _ stream: inout Stream) {
        damaged += 1
        if !stream.isDamaged { faults.append(CompositorFault(error.description, stream: id)) }
        stream.isDamaged = true
    }

    /// Returns what to report to the server, once.
    func takeFaults() -> [CompositorFault] {
        defer { faults = [] }
        return faults
    }

    /// Forgets a stream's image.
    func hide(_ id: UInt32) { streams[id]?.image = nil }

    /// Forgets a stream.
    func remove(_ id: UInt32) { streams[id] = nil }
}
