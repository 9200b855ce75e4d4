import MediaFiles
import Signaling
import Wire

extension ArchiveManifest {
    /// The manifest of an archive that the recorder or the recovery has completed.
    init(
        _ id: ArchiveID, _ session: SessionID, _ options: RecordingOptions, _ result: RecordingResult,
        _ reason: RecordingEnd
    ) {
        self.init(
            id: "\(id)", name: options.name ?? "", partnerID: options.project, session: session.text,
            createdAt: result.began ?? options.createdAt, files: result.files.map { ArchiveManifestFile($0) },
            duration: result.duration, reason: reason.rawValue)
    }

    /// The manifest of a stored archive, for its ZIP file.
    init(_ archive: ArchiveRecord) {
        self.init(
            id: "\(archive.id)", name: archive.request.name ?? "", partnerID: archive.project,
            session: archive.session.text, createdAt: archive.beganAt ?? archive.createdAt,
            files: archive.files.map { ArchiveManifestFile($0) }, duration: archive.duration, reason: archive.reason)
    }

    /// What was recorded; nil if the id of a stream is damaged.
    var result: RecordingResult? {
        let files = files.compactMap { RecordedFile($0) }
        guard files.count == self.files.count else { return nil }
        return RecordingResult(
            began: files.isEmpty ? nil : createdAt,
            // Earlier versions wrote whole seconds in another member.
            duration: duration ?? files.map(\.stop).max() ?? .zero, files: files)
    }
}

extension ArchiveManifestFile {
    fileprivate init(_ file: RecordedFile) {
        self.init(
            stream: "\(file.stream)", name: file.name, size: file.size, start: file.start, stop: file.stop,
            connectionData: file.connectionData, videoType: file.videoType)
    }
}

extension RecordedFile {
    /// - Returns: nil if the id of the stream is damaged.
    fileprivate init?(_ file: ArchiveManifestFile) {
        guard let stream = StreamID(file.stream) else { return nil }
        self.init(
            stream: stream, name: file.name, size: file.size, start: file.start, stop: file.stop,
            connectionData: file.connectionData, videoType: file.videoType)
    }
}
