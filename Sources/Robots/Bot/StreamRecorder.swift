import Datagrams
import RTC

/// Writes received media to files, one for the video and one for the audio of each stream. Used only on the connection's
/// thread.
final class StreamRecorder {
    private let directory: String
    /// Receives one line of progress text.
    private let tell: @Sendable (String) -> Void
    /// The videos being recorded, by mid.
    private var videos: [String: Recorded<VideoRecording>] = [:]
    private var audios: [String: Recorded<AudioRecording>] = [:]

    private struct Recorded<Recording> {
        let stream: String
        var recording: Recording
        /// The file, which is created when there is data to write.
        var file: RecordingFile?
        var hasFailed = false
    }

    init(directory: String, tell: @escaping @Sendable (String) -> Void) {
        (self.directory, self.tell) = (directory, tell)
    }

    /// Starts recording a stream, which these mids carry from now on.
    func begin(_ stream: String, audioMid: String?, videoMid: String?) {
        if let videoMid { videos[videoMid] = Recorded(stream: stream, recording: VideoRecording()) }
        if let audioMid {
            // An Ogg serial number must be unique within its file. Each file contains one stream, so use 1.
            audios[audioMid] = Recorded(stream: stream, recording: AudioRecording(serial: 1))
        }
    }

    /// Ends the recording of a stream and writes its remaining data.
    func end(audioMid: String?, videoMid: String?, now: MediaTime) {
        if let videoMid, var video = videos.removeValue(forKey: videoMid) {
            var bytes: [UInt8] = []
            video.recording.finish(at: now, into: &bytes)
            write(bytes, to: &video, suffix: "ivf")
        }
        if let audioMid, var audio = audios.removeValue(forKey: audioMid) {
            var bytes: [UInt8] = []
            audio.recording.finish(at: now, into: &bytes)
            write(bytes, to: &audio, suffix: "ogg")
        }
    }

    func endAll(now: MediaTime) {
        for mid in videos.keys { end(audioMid: nil, videoMid: mid, now: now) }
        for mid in audios.keys { end(audioMid: mid, videoMid: nil, now: now) }
    }

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        var bytes: [UInt8] = []
        switch reception.codec(packet.header.payloadType)?.kind {
        case .vp8:
            guard var video = videos.removeValue(forKey: reception.mid) else { return }
            video.recording.take(PacketOrder.Packet(packet), at: packet.at, into: &bytes)
            write(bytes, to: &video, suffix: "ivf")
            if video.recording.needsKeyframe, !video.hasFailed {
                connection.requestKeyframe(of: reception, now: packet.at)
            }
            videos[reception.mid] = video
        case .opus:
            guard var audio = audios.removeValue(forKey: reception.mid) else { return }
            audio.recording.take(PacketOrder.Packet(packet), at: packet.at, into: &bytes)
            write(bytes, to: &audio, suffix: "ogg")
            audios[reception.mid] = audio
        default: break
        }
    }

    private func write<Recording>(_ bytes: [UInt8], to recorded: inout Recorded<Recording>, suffix: String) {
        guard !bytes.isEmpty, !recorded.hasFailed else { return }
        do throws(RobotError) {
            if recorded.file == nil {
                let file = try RecordingFile.next(in: directory, name: recorded.stream, suffix: suffix)
                recorded.file = file
                tell("Recording \(file.path)")
            }
            try recorded.file?.write(bytes)
        } catch {
            recorded.hasFailed = true
            tell(error.description)
        }
    }
}

extension PacketOrder.Packet {
    init(_ packet: RobotPacket) {
        self.init(
            number: packet.number, timestamp: packet.header.timestamp, marker: packet.header.marker,
            payload: Array(packet.payload))
    }
}
