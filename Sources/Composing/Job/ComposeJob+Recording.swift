import Foundation
import MediaFiles
import Wire

extension ComposeJob {
    /// What a look at an archive that may still be recorded has found.
    public enum Step: Hashable, Sendable {
        /// The chunk was composed, or has to wait for the end of the archive. Continue with the next one.
        case done
        /// The chunk is not settled yet. Look again later.
        case tooEarly
        /// The archive has ended, or does not exist. ``ComposeJob/run(progress:)`` composes what is left.
        case ended
    }

    /// Composes one chunk of an archive that is still being recorded, if nothing can change it any more.
    ///
    /// ``run(progress:)`` finds it by its name, and the composed file is the same as without it. The chunk is not used if what was written
    /// later does change it. Call this one chunk after another, from 0 on.
    ///
    /// - Parameters:
    ///   - index: the number of the chunk.
    ///   - now: the time of day, by the clock of the recorder.
    ///   - finder: finds ffmpeg. Use the same one for all chunks.
    /// - Throws: `ComposeError`, or `CancellationError` if the task is canceled.
    public func compose(
        chunk index: Int, at now: Timestamp, finder: FFmpegFinder = FFmpegFinder()
    ) async throws -> Step {
        let directory = URL(filePath: folder).standardizedFileURL.path
        let recorded = JobFiles(reading: directory)
        // An archive with a manifest is complete. If the disk was full, its log may have no last line.
        guard recorded.exists(ArchiveFileName.log), !recorded.exists(ArchiveFileName.manifest) else { return .ended }
        let log = try log(recorded)
        guard !log.isComplete else { return .ended }
        let soFar = log.recordedTime(at: now).wholeMilliseconds
        let plan = ComposePlan(log, facts: facts(of: log, recorded.factsSoFar), options: options, soFar: soFar)
        guard plan.canvas.isPossible, index < plan.settled(at: soFar) else { return .tooEarly }
        let chunk = plan.chunks[index]
        let clusters = recorded.clusters(of: [chunk])
        let complete = log.completeFiles
        var ranges: [String: RecordedRange] = [:]
        for source in chunk.sources {
            guard let file = source.file, !complete.contains(file) else { continue }
            guard let range = clusters[file].flatMap({ chunk.range(of: source, $0) }) else { return .tooEarly }
            ranges[file] = range
        }
        let installation = try await finder.find(ffmpeg)
        // Not earlier: most looks find nothing to do, and should leave the folder as it is.
        let files = try JobFiles(folder: directory)
        defer { files.unlock() }
        files.removeUnfinished()
        let run = ComposeRun(job: self, files: files, plan: plan, clusters: clusters, ffmpeg: installation)
        try await run.settledChunk(index, ranges: ranges)
        return .done
    }
}
