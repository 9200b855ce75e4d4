import Logging
import MediaFiles
import RTC
import SFU
import Signaling
import Wire

/// A stream that is being recorded: passes what the routers send to a `MediaRecorder`, and carries out its outputs.
///
/// It belongs to the recorder's thread.
final class StreamRecording: RingStream {
    let number: UInt32
    let stream: StreamID
    let details: RecordedStream
    /// The number of bytes after which they are written without waiting for the next tick.
    private static let maxUnwritten = 1 << 18

    private unowned let archive: ArchiveRecording
    /// nil until the router says which tracks the stream has.
    private var recorder: MediaRecorder?
    /// The number of routers that will send nothing more.
    private(set) var endedRouters = 0
    /// Whether the hub has removed the stream, so that the routers send only what they had sent before.
    var isRemoved = false
    private var file: RecordingFile?
    private var writer: WebMWriter?
    private var fileStart = MediaTime(nanoseconds: 0)
    /// What is to be appended to the file with the next tick, because each write costs more than the bytes of a packet.
    private var unwritten: [UInt8] = []
    /// Whether a router has published the stream.
    private(set) var wasPublished = false
    /// Set when a file could not be written. What follows is dropped.
    private(set) var hasFailed = false

    init(number: UInt32, _ stream: StreamID, _ details: RecordedStream, _ archive: ArchiveRecording) {
        (self.number, self.stream, self.details, self.archive) = (number, stream, details, archive)
    }

    /// The file to sync; nil if none is open.
    var openFile: RecordingFile? { file }

    func receive(_ packet: RecordingRingReader.Packet, now: MediaTime) {
        guard wasPublished else { return }
        archive.noteArrival(packet.arrivedAt)
        recorder?.take(isVideo: packet.isVideo, packet.orderly, now: now)
        perform(now: now)
    }

    func receive(_ message: RecordingMessage, now: MediaTime) {
        switch message {
        case .tracks(let audio, let video):
            guard !wasPublished else { break }
            wasPublished = true
            recorder = MediaRecorder(hasAudio: audio, hasVideo: video)
        case .source(let format, let isNew): _ = recorder?.begin(format, isNew: isNew, now: now)
        case .report(let isVideo, let ntp, let timestamp, let arrivedAt):
            recorder?.report(isVideo: isVideo, ntp: ntp, timestamp: timestamp, arrival: arrivedAt)
        case .forwarded(let isVideo, let isOn, let time):
            archive.log(.forwarded(stream, isVideo: isVideo, isOn), at: time)
            recorder?.setForwarded(isVideo: isVideo, isOn, now: now)
        case .ended: endedRouters += 1
        }
        perform(now: now)
    }

    func tick(now: MediaTime) {
        recorder?.tick(now: now)
        perform(now: now)
        guard !hasFailed, let file else { return }
        do throws(RecordingError) {
            try writeOut(to: file)
        } catch {
            fail(error, now: now)
        }
    }

    func finish(now: MediaTime) {
        recorder?.finish(now: now)
        perform(now: now)
        recorder = nil
    }

    private func perform(now: MediaTime) {
        guard let outputs = recorder?.takeOutputs() else { return }
        for output in outputs where !hasFailed {
            do throws(RecordingError) {
                try perform(output)
            } catch {
                fail(error, now: now)
            }
        }
    }

    private func fail(_ error: RecordingError, now: MediaTime) {
        hasFailed = true
        archive.failed(self, error, now: now)
    }

    private func perform(_ output: MediaRecorder.Output) throws(RecordingError) {
        switch output {
        case .begin(let video, let time): try begin(video, at: time)
        case .block(let block):
            guard let edits = writer?.write(block), let file else { return }
            for edit in edits { try apply(edit, to: file) }
        case .end(let time): try end(at: time)
        case .requestKeyframe: archive.requestKeyframe(of: self)
        case .size(let size, let time):
            archive.log(.size(stream: "\(stream)", width: Int(size.width), height: Int(size.height)), at: time)
        case .lost(let interval, let time):
            archive.log(.lost(stream: "\(stream)", for: .milliseconds(interval.milliseconds)), at: time)
        }
    }

    /// Makes an edit. What is appended is collected until the next tick.
    private func apply(_ edit: FileEdit, to file: RecordingFile) throws(RecordingError) {
        guard case .append(let bytes) = edit else {
            try writeOut(to: file)
            return try file.apply(edit)
        }
        unwritten += bytes
        if unwritten.count >= Self.maxUnwritten { try writeOut(to: file) }
    }

    /// Appends to the file what was collected.
    private func writeOut(to file: RecordingFile) throws(RecordingError) {
        guard !unwritten.isEmpty else { return }
        try file.apply(.append(unwritten))
        archive.count(bytes: unwritten.count)
        // A frame may have megabytes.
        unwritten.removeAll(keepingCapacity: unwritten.count <= Self.maxUnwritten)
    }

    private func begin(_ video: RecordedVideo, at time: MediaTime) throws(RecordingError) {
        let name = archive.nextName(of: stream, video.codec)
        let opened = try archive.folder.create(name)
        (file, fileStart) = (opened, time)
        writer = WebMWriter(
            video: video, date: archive.wallClock(time).nanosecondsSince2001, application: archive.application)
        archive.logBeginning(of: ArchivedFile(stream: "\(stream)", name: name, codec: video.codec), at: time)
    }

    private func end(at time: MediaTime) throws(RecordingError) {
        guard let file, var writer else { return }
        self.writer = nil
        for edit in writer.finish() { try apply(edit, to: file) }
        try writeOut(to: file)
        try file.sync()
        // After an error, `abandon` still needs it.
        self.file = nil
        archive.add(file, of: self, from: fileStart, to: time)
    }

    /// Completes the file as far as it was written, after an error.
    func abandon(now: MediaTime) {
        guard let file else { return }
        (self.file, writer, unwritten) = (nil, nil, [])
        do throws(RecordingError) {
            // The writer does not know which of its last blocks are in the file, so look.
            guard let length = try RecordingRecovery.finish(file) else { return }
            archive.add(file, of: self, from: fileStart, to: fileStart + MediaInterval(length))
        } catch {
            archive.logger.error("A recording is incomplete", metadata: ["error": "\(error.text)"])
        }
    }
}

extension Timestamp {
    /// Matroska's dates count from 2001-01-01 UTC (RFC 9559 §5.1.2.10).
    fileprivate var nanosecondsSince2001: Int64 { (milliseconds &- 978_307_200_000) &* 1_000_000 }
}
