import Foundation
import Synchronization

/// Finds ffmpeg as ``FFmpegInstallation/find(_:)`` does, but does not ask the one that it found last again for its version and its codecs
/// until its file has changed. That would take three processes each time.
public final class FFmpegFinder: Sendable {
    private struct Found {
        var installation: FFmpegInstallation
        /// When the file was changed, before it was asked.
        var modified: Date
    }

    /// Nil if none was found yet. One is enough: a composer uses one ffmpeg.
    private let last = Mutex<Found?>(nil)

    public init() {}

    /// - Parameter name: a path, or the name of a command in one of the folders of `PATH`.
    /// - Throws: `ComposeError` if it is missing, too old, or lacks a codec. Such an answer is not kept.
    func find(_ name: String) async throws -> FFmpegInstallation {
        guard let path = FFmpegInstallation.locate(name), let modified = Self.modified(path) else {
            throw ComposeError.ffmpegMissing(name)
        }
        let found = last.withLock { $0 }
        if let found, found.installation.path == path, found.modified == modified { return found.installation }
        let installation = try await FFmpegInstallation.find(path)
        last.withLock { $0 = Found(installation: installation, modified: modified) }
        return installation
    }

    /// Returns when an executable was changed; nil if it is gone. If the path is a link, the file to which it leads counts.
    private static func modified(_ path: String) -> Date? {
        let file = URL(filePath: path).resolvingSymlinksInPath().path
        return (try? FileManager.default.attributesOfItem(atPath: file))?[.modificationDate] as? Date
    }
}
