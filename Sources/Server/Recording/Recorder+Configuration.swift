import Logging
import RTC
import Signaling

extension Recorder {
    /// Creates the recorder of a server.
    /// - Returns: nil if the server does not record, or does not route media.
    static func make(
        _ configuration: ConfabConfiguration, media: MediaPlane?, clock: ServerClock, logger: Logger,
        report: @escaping @Sendable (RecordingEvent) -> Void
    ) -> Recorder? {
        guard configuration.recording.enabled, let media else { return nil }
        return make(configuration, media, clock: clock, logger: logger, report: report)
    }

    /// Creates a recorder that only feeds broadcasts, for a server that does not record.
    static func forBroadcasts(
        _ configuration: ConfabConfiguration, media: MediaPlane, clock: ServerClock, logger: Logger
    ) -> Recorder {
        make(configuration, media, clock: clock, logger: logger) { _ in }
    }

    private static func make(
        _ configuration: ConfabConfiguration, _ media: MediaPlane, clock: ServerClock, logger: Logger,
        report: @escaping @Sendable (RecordingEvent) -> Void
    ) -> Recorder {
        let recording = configuration.recording
        let settings = Settings(
            folder: configuration.recordingFolder, maxHeight: recording.maxHeight,
            minFreeSpace: Int64(clamping: recording.minFreeSpace), syncInterval: recording.syncInterval,
            application: "Confab \(OperatingMetrics.version)", wallClock: { clock.wallNow })
        return Recorder(settings, source: media, logger: logger, report: report)
    }
}

extension ConfabConfiguration {
    /// The folder of all archives.
    var recordingFolder: String { recording.folder ?? dataDirectory + "/recordings" }
}
