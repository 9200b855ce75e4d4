import ConfabHeadless
import MediaFiles
import Peers

/// Counts the frames of a stream, and writes them to files, one for the video and one for the audio.
actor StreamRecorder {
    /// A file that is created once there is data to write.
    private struct Output {
        let suffix: String
        var file: RecordingFile?
        var hasFailed = false
    }

    private let stream: String
    private let directory: String?
    /// Receives one line of progress text.
    private let tell: @Sendable (String) -> Void
    private var video = VideoRecording()
    private var audio = StreamRecorder.newAudio
    private var videoOutput = Output(suffix: "ivf")
    private var audioOutput = Output(suffix: "ogg")
    private var (frames, packets) = (0, 0)

    /// - Parameter directory: the directory for recordings; nil to only count frames.
    init(_ stream: String, directory: String?, tell: @escaping @Sendable (String) -> Void) {
        (self.stream, self.directory, self.tell) = (stream, directory, tell)
    }

    nonisolated var isRecording: Bool { directory != nil }

    /// The received totals, in one line.
    var summary: String { "Received \(frames) video frames and \(packets) audio packets" }

    /// Starts another file for the media of this codec, because the timestamps of a new source are unrelated to the
    /// previous ones.
    func begin(_ codec: EncodedFrame.Codec) {
        switch codec {
        case .vp8: (video, videoOutput.file) = (VideoRecording(), nil)
        case .opus:
            finish()
            (audio, audioOutput.file) = (Self.newAudio, nil)
        }
    }

    func take(_ frame: EncodedFrame) {
        var bytes: [UInt8] = []
        switch frame.codec {
        case .vp8:
            frames += 1
            guard isRecording else { return }
            video.take(frame.bytes, at: frame.time, into: &bytes)
            write(bytes, to: &videoOutput)
        case .opus:
            packets += 1
            guard isRecording else { return }
            audio.take(frame.bytes, at: frame.time, into: &bytes)
            write(bytes, to: &audioOutput)
        }
    }

    /// Completes the audio file. The video file is complete after each frame.
    func finish() {
        var bytes: [UInt8] = []
        audio.finish(into: &bytes)
        write(bytes, to: &audioOutput)
    }

    // An Ogg serial number must be unique within its file. Each file contains one stream, so use 1.
    private static var newAudio: AudioRecording { AudioRecording(serial: 1) }

    private func write(_ bytes: [UInt8], to output: inout Output) {
        guard let directory, !bytes.isEmpty, !output.hasFailed else { return }
        do throws(RobotError) {
            if output.file == nil {
                let file = try RecordingFile.next(in: directory, name: stream, suffix: output.suffix)
                output.file = file
                tell("Recording \(file.path)")
            }
            try output.file?.write(bytes)
        } catch {
            output.hasFailed = true
            tell(error.description)
        }
    }
}
