import LiveComposing

/// The decoders of all streams, and the last image of each.
final class StreamDecoders {
    private struct Stream {
        var video: VideoDecoder?
        var audio: AudioDecoder?
        var image: FrameBox?
        /// Increases with each image.
        var version = 0
        /// The kinds whose last frame or packet was damaged. Only the first of several of a kind is reported.
        var damaged: Set<Kind> = []
    }

    private enum Kind { case video, audio }

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
                    report(error, .video, id, &stream)
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
                    stream.damaged.remove(.video)
                } catch {
                    decoder.reset()
                    needsKeyframe = true
                    report(error, .video, id, &stream)
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
            let samples = try decoder.decode(bytes)
            stream.damaged.remove(.audio)
            return samples
        } catch {
            report(error, .audio, id, &stream)
            return []
        }
    }

    private func report(_ error: LibAVError, _ kind: Kind, _ id: UInt32, _ stream: inout Stream) {
        damaged += 1
        if stream.damaged.insert(kind).inserted { faults.append(CompositorFault(error.description, stream: id)) }
    }

    /// Returns what to report to the server, once.
    func takeFaults() -> [CompositorFault] {
        defer { faults = [] }
        return faults
    }

    /// Forgets a stream's image and closes its video decoder, whose frames would take memory. `LiveComposition` sends another decoder
    /// before the next frame.
    func hide(_ id: UInt32) {
        streams[id]?.image = nil
        streams[id]?.video = nil
    }

    /// Forgets a stream.
    func remove(_ id: UInt32) { streams[id] = nil }
}
