import CLibAV
import LiveComposing

/// Composes one broadcast: decodes, draws, mixes, encodes and writes fragments.
///
/// `LiveComposition` decides what is decoded and drawn, `CompositorClock` when, and `EncoderPace` how fast. This class connects them
/// with FFmpeg's libraries. It has no clock and no socket: the time is an argument, and the messages are its results.
public final class Compositor {
    private let configuration: CompositorConfiguration
    private var clock: CompositorClock
    private var composition: LiveComposition
    private var pace = EncoderPace()
    private var mixer: AudioMixer

    private let decoders = StreamDecoders()
    private let canvas: Canvas
    private var cells: [UInt32: (image: CellImage, version: Int)] = [:]
    private var video: VideoEncoder
    private var preset: String
    private let audio: AudioEncoder
    private let writer: FragmentWriter

    private var output: [CompositorOutput] = []
    /// When the server's last message ends the output, on its timeline; nil while it continues.
    private var stopTime: Duration?
    private var frames = 0
    private var fragmentBegan = 0
    private var isAtKeyframe = false
    /// When the group of frames began, and how long this process was computing since.
    private var group: (began: Duration, busy: Duration)

    /// - Parameters:
    ///   - start: the present time of the server's timeline.
    ///   - now: the same moment on this machine's monotonic clock.
    /// - Throws: an error with a description if FFmpeg lacks an encoder, or memory.
    public init(_ configuration: CompositorConfiguration, start: Duration, now: Duration) throws {
        self.configuration = configuration
        clock = CompositorClock(start: start, now: now, delay: configuration.delay)
        composition = LiveComposition(configuration)
        mixer = AudioMixer(start: start, delay: configuration.delay)
        canvas = try Canvas(width: configuration.width, height: configuration.height)
        preset = pace.step.preset
        video = try VideoEncoder(configuration, preset: preset)
        audio = try AudioEncoder()
        writer = try FragmentWriter(video: video.context, audio: audio.context)
        group = (now, .zero)
        output.append(.initialization(at: start, writer.take()))
    }

    /// When the next frame is to be composed, on this machine's clock. After the server's last message, at once.
    public var due: Duration { stopTime == nil ? clock.due : .zero }

    /// Whether everything is composed.
    public var isFinished: Bool { stopTime.map { clock.time > $0 } ?? false }

    /// Returns the messages for the server since the last call.
    public func takeOutput() -> [CompositorOutput] {
        defer { output = [] }
        return output
    }

    /// Takes a message of the server.
    public func take(_ input: CompositorInput, now: Duration) {
        perform(composition.take(input, now: clock.timeline(now: now)))
    }

    private func perform(_ effects: [LiveComposition.Effect]) {
        for effect in effects {
            switch effect {
            case .audio(let stream, let time, let bytes):
                mixer.place(decoders.decodeAudio(bytes, of: stream), of: stream, at: time)
            case .send(let message): output.append(message)
            case .stop(let time): stopTime = min(stopTime ?? time, time)
            }
        }
    }

    /// Composes the next frame.
    ///
    /// - Parameter now: the present time, when the frame is due or later.
    /// - Throws: an error with a description if encoding or writing fails. The output cannot continue then.
    public func composeFrame(now: Duration) throws {
        let frame = clock.next
        if frame.isMultiple(of: CompositorClock.framesPerGroup) { try beginGroup(now: now) }
        if frame.isMultiple(of: pace.step.stride) { try encodeImage(frame) }
        try audio.encode(mixer.mixFrame()) { packet throws(LibAVError) in try writer.write(packet, to: .audio) }
        clock.advance()
        if clock.next.isMultiple(of: CompositorClock.framesPerFragment) || isFinished { try endFragment() }
        output += decoders.takeFaults().map { .fault($0) }
        perform(composition.requests(now: clock.timeline(now: now)))
    }

    /// Adds time in which this process was computing, for the choice of the encoder's preset.
    public func addBusy(_ time: Duration) { group.busy += time }

    private func beginGroup(now: Duration) throws(LibAVError) {
        let elapsed = now - group.began
        let load = elapsed > .zero ? min(1_000, Int(group.busy / elapsed * 100)) : 0
        group = (now, .zero)
        let behind = clock.behind(now: now)
        if clock.next > 0 {
            pace.groupBegins(behind: behind, load: load, now: now)
            output.append(.stats(stats(behind: behind, load: load)))
        }
        guard pace.step.preset != preset else { return }
        let other = try VideoEncoder(configuration, preset: pace.step.preset)
        // The file has one header for all.
        guard other.header == video.header else { throw LibAVError("Changing the preset") }
        (video, preset) = (other, pace.step.preset)
    }

    private func stats(behind: Duration, load: Int) -> CompositorStats {
        var stats = CompositorStats()
        stats.frames = frames
        stats.behind = behind
        stats.load = load
        stats.preset = pace.step.preset
        stats.interval = CompositorClock.interval * pace.step.stride
        stats.streams = composition.openStreams
        stats.dropped = composition.dropped
        stats.damaged = decoders.damaged
        return stats
    }

    private func encodeImage(_ frame: Int) throws(LibAVError) {
        let plan = composition.plan(for: clock.time)
        // In a fixed order, so that the same input has the same faults.
        for (stream, items) in plan.decode.sorted(by: { $0.key < $1.key }) where !decoders.decode(items, of: stream) {
            composition.decoderFailed(stream)
        }
        for stream in plan.hidden { decoders.hide(stream) }
        for stream in plan.ended {
            decoders.remove(stream)
            mixer.remove(stream)
        }
        try draw(plan.cells)
        let isKeyframe = frame.isMultiple(of: CompositorClock.framesPerGroup)
        if frame == fragmentBegan { isAtKeyframe = isKeyframe }
        try video.encode(canvas.frame, at: frame, duration: pace.step.stride, isKeyframe: isKeyframe) {
            packet throws(LibAVError) in try writer.write(packet, to: .video)
        }
        frames += 1
    }

    private func draw(_ layout: [CompositorCell]) throws(LibAVError) {
        var drawn: [UInt32: (image: CellImage, version: Int)] = [:]
        try canvas.clear()
        for cell in layout {
            var (image, version) = (CellImage(cell), -1)
            if let known = cells[cell.stream], known.image.fits(cell) { (image, version) = known }
            if let (newest, newestVersion) = decoders.image(of: cell.stream) {
                // A frame that cannot be scaled leaves the previous image.
                if version != newestVersion { try? image.update(newest) }
                canvas.draw(image, in: cell)
                drawn[cell.stream] = (image, newestVersion)
            } else {
                canvas.draw(CellImage(cell), in: cell)
            }
        }
        cells = drawn
    }

    private func endFragment() throws(LibAVError) {
        let count = clock.next - fragmentBegan
        guard count > 0 else { return }
        let bytes = try writer.endFragment()
        let time = clock.start + CompositorClock.interval * fragmentBegan
        output.append(
            .fragment(
                CompositorFragment(
                    time: time, duration: CompositorClock.interval * count, isKeyframe: isAtKeyframe, bytes: bytes)))
        (fragmentBegan, isAtKeyframe) = (clock.next, false)
    }
}
