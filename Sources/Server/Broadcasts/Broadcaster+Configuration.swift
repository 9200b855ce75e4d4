import Composing
import Foundation
import Logging
import Signaling
import Wire

extension Broadcaster {
    /// The name of the compositor's executable.
    static let compositorName = "confab-compositor"

    /// Creates what composes the broadcasts of a server. Logs a notice if that is not possible.
    ///
    /// - Parameters:
    ///   - recorder: reads media. nil if the server does not route media.
    ///   - ownsFolder: whether this server holds the lock of the data directory, so that it may delete what an earlier run has left.
    /// - Returns: nil if there is no compositor, or no media.
    static func make(
        _ configuration: ConfabConfiguration, recorder: Recorder?, clock: ServerClock, ownsFolder: Bool, logger: Logger,
        report: @escaping @Sendable (BroadcastReport) -> Void
    ) -> Broadcaster? {
        let folder = configuration.broadcastFolder
        // Also if no broadcast can be composed now: these are recordings of people.
        if ownsFolder { clear(folder, logger) }
        guard let recorder else { return nil }
        let broadcasts = configuration.broadcasts
        guard let compositor = locateCompositor(broadcasts.compositor) else {
            logger.notice(
                """
                Broadcasts are not available, because confab-compositor is missing. Build it with scripts/compositor, and put it \
                beside confab or set broadcast.compositor.
                """, metadata: ["compositor": "\(broadcasts.compositor ?? compositorName)"])
            return nil
        }
        let ffmpeg = configuration.archives.ffmpeg
        let settings = Settings(
            compositor: compositor, ffmpeg: FFmpegInstallation.locate(ffmpeg) ?? ffmpeg, folder: folder,
            output: broadcasts, minSpace: Int64(clamping: configuration.recording.minFreeSpace))
        return Broadcaster(
            settings, wallClock: { clock.wallNow }, logger: logger, feed: { recorder.feed($0) }, report: report)
    }

    /// Returns the path of the compositor; nil if it is missing.
    ///
    /// - Parameter name: a path, or the name of a command in `PATH`; nil to look beside this program first.
    static func locateCompositor(_ name: String?) -> String? {
        if let name { return FFmpegInstallation.locate(name) }
        let beside = Bundle.main.executableURL?.resolvingSymlinksInPath().deletingLastPathComponent()
            .appending(path: compositorName).path
        return beside.flatMap(FFmpegInstallation.locate) ?? FFmpegInstallation.locate(compositorName)
    }

    /// Deletes the files of broadcasts that were running, or were kept, when the server stopped.
    private static func clear(_ folder: String, _ logger: Logger) {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else { return }
        // The folder may be shared by mistake, so delete only what has the form of an id.
        for name in names where BroadcastID(name) != nil {
            do {
                try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
            } catch {
                logger.error("Cannot delete an old broadcast", metadata: ["folder": "\(folder)", "error": "\(error)"])
            }
        }
    }
}

extension ConfabConfiguration {
    /// The folder of the broadcasts whose viewers can go back.
    var broadcastFolder: String { broadcasts.folder ?? dataDirectory + "/broadcasts" }
}
