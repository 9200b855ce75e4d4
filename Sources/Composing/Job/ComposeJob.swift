import Foundation
import MediaFiles
import Synchronization

/// Composes the archive in a folder: reads its event log, runs ffmpeg for each chunk that is not finished yet, and joins them.
///
/// It can be stopped at any time, also by killing this process or ffmpeg. Another run continues with the first part that is
/// missing. Files of the archive are only read.
public struct ComposeJob: Sendable {
    /// The archive's folder.
    public var folder: String
    /// What differs from the event log, and the quality.
    public var options: ComposeOptions
    /// A path, or a command in `PATH`.
    public var ffmpeg = "ffmpeg"
    /// The path of the composed file; nil for `archive.mp4` in the folder.
    public var output: String?
    /// Whether a composed file that exists is replaced.
    public var overwrites = false
    /// The number of parts that are encoded at the same time. Each needs one core.
    public var concurrency = 1
    /// The priority of ffmpeg, 0…19, of which 19 is the lowest.
    public var nice = 19

    public init(folder: String, options: ComposeOptions = ComposeOptions()) {
        (self.folder, self.options) = (folder, options)
    }

    /// How far a job is.
    public struct Progress: Hashable, Sendable {
        /// The frames that are encoded, of `frames`.
        public var encoded: Int
        /// The frames of the whole file; 0 without video.
        public var frames: Int
        /// Whether the audio is another part, of which there is no progress.
        public var hasAudio: Bool
    }

    /// What a job has done.
    public struct Result: Hashable, Sendable {
        /// The path of the composed file.
        public var path: String
        /// In bytes.
        public var size: Int64
        /// The length of the composed file in frames of 40 ms.
        public var frames: Int
        /// The number of parts that were made now.
        public var made = 0
        /// The number of parts that an earlier run had finished.
        public var kept = 0
        /// The files that cannot be decoded, and are black or silent somewhere.
        public var damaged: [String] = []
        /// What differs from the event log, in sentences for the operator.
        public var notes: [String] = []
    }

    /// Composes the archive.
    ///
    /// - Parameter progress: called after each second or so, in no particular thread.
    /// - Throws: `ComposeError`, or `CancellationError` if the task is canceled.
    public func run(progress: @escaping @Sendable (Progress) -> Void = { _ in }) async throws -> Result {
        let path = output ?? "\(folder)/\(ArchiveFileName.composed)"
        guard FileManager.default.fileExists(atPath: "\(folder)/\(ArchiveFileName.log)") else {
            throw ComposeError.noArchive(folder: folder)
        }
        guard overwrites || !FileManager.default.fileExists(atPath: path) else { throw ComposeError.outputExists(path) }
        let installation = try await FFmpegInstallation.find(ffmpeg)
        let directory = URL(filePath: folder).standardizedFileURL.path
        let files = try JobFiles(folder: directory)
        defer { files.unlock() }
        files.removeUnfinished()
        let plan = try plan(files)
        let run = ComposeRun(
            job: self, files: files, plan: plan, clusters: files.clusters(of: plan.chunks), ffmpeg: installation,
            progress: progress)
        return try await run.all(to: URL(filePath: path).standardizedFileURL.path)
    }

    private func plan(_ files: JobFiles) throws -> ComposePlan {
        let log = try log(files)
        let facts = facts(of: log, files.facts)
        let plan = ComposePlan(log, facts: facts, options: options)
        guard plan.frames > 0, !facts.isEmpty else { throw ComposeError.nothingRecorded }
        guard plan.canvas.isPossible else { throw ComposeError.badCanvas(plan.canvas.description) }
        return plan
    }

    func log(_ files: JobFiles) throws -> ArchiveLog {
        guard let bytes = files.read(ArchiveFileName.log, max: ArchiveLog.maxSize + 1) else {
            throw ComposeError.noArchive(folder: folder)
        }
        return ArchiveLog(bytes)
    }

    /// Returns the facts of all readable files of a log.
    func facts(of log: ArchiveLog, _ read: (String) -> SourceFacts?) -> [String: SourceFacts] {
        var facts: [String: SourceFacts] = [:]
        for case .file(let file) in log.lines.map(\.event) where facts[file.name] == nil {
            facts[file.name] = read(file.name)
        }
        return facts
    }
}

/// A part that was made, or was there.
enum MadePart: Sendable {
    case made(name: String, damaged: [String])
    case kept(name: String)

    var name: String {
        switch self {
        case .made(let name, _), .kept(let name): name
        }
    }
}

/// One run of a job.
struct ComposeRun: Sendable {
    let job: ComposeJob
    let files: JobFiles
    let plan: ComposePlan
    /// The clusters of the files with video.
    let clusters: [String: MatroskaClusters]
    let ffmpeg: FFmpegInstallation
    let arguments: FFmpegArguments
    private let progress: @Sendable (ComposeJob.Progress) -> Void
    /// The encoded frames of each chunk.
    private let encoded: Encoded

    init(
        job: ComposeJob, files: JobFiles, plan: ComposePlan, clusters: [String: MatroskaClusters],
        ffmpeg: FFmpegInstallation, progress: @escaping @Sendable (ComposeJob.Progress) -> Void = { _ in }
    ) {
        (self.job, self.files, self.plan, self.clusters) = (job, files, plan, clusters)
        (self.ffmpeg, self.progress) = (ffmpeg, progress)
        arguments = FFmpegArguments(canvas: plan.canvas, options: job.options)
        encoded = Encoded(chunks: plan.chunks.count)
    }

    private final class Encoded: Sendable {
        let frames: Mutex<[Int]>
        init(chunks: Int) { frames = Mutex([Int](repeating: 0, count: chunks)) }
    }

    func all(to path: String) async throws -> ComposeJob.Result {
        files.note("Composing \(plan.frames) frames in \(plan.chunks.count) chunks with ffmpeg \(ffmpeg.version).")
        for note in plan.notes { files.note(note) }
        let parts = try await makeParts()
        let audio = plan.hasAudio ? parts.last?.name : nil
        let chunks = parts.prefix(plan.chunks.count).map(\.name)
        try await join(chunks, audio: audio, to: path)
        var result = ComposeJob.Result(
            path: path, size: files.size(path) ?? 0, frames: plan.frames, notes: plan.notes)
        for part in parts {
            switch part {
            case .kept: result.kept += 1
            case .made(_, let damaged):
                result.made += 1
                result.damaged += damaged.filter { !result.damaged.contains($0) }
            }
        }
        files.note("Finished: \(result.size) bytes, \(result.made) parts made, \(result.kept) kept.")
        files.removeWork()
        return result
    }

    /// Makes all chunks and the audio, a few at the same time. The audio is last.
    private func makeParts() async throws -> [MadePart] {
        let count = plan.chunks.count + (plan.hasAudio ? 1 : 0)
        return try await withThrowingTaskGroup(of: (Int, MadePart).self) { group in
            var parts = [MadePart?](repeating: nil, count: count)
            var next = 0
            while next < count || !group.isEmpty {
                if next < count, next - parts.count(where: { $0 != nil }) < max(1, job.concurrency) {
                    let index = next
                    group.addTask { (index, try await part(index)) }
                    next += 1
                } else if let (index, part) = try await group.next() {
                    parts[index] = part
                }
            }
            return parts.compactMap { $0 }
        }
    }

    private func part(_ index: Int) async throws -> MadePart {
        let part = index < plan.chunks.count ? try await chunk(index) : try await audio()
        if index < plan.chunks.count { report(index, plan.chunks[index].frames.count) }
        return part
    }

    func report(_ chunk: Int, _ frames: Int) {
        let sum = encoded.frames.withLock { all in
            all[chunk] = min(frames, plan.chunks[chunk].frames.count)
            return all.reduce(0, +)
        }
        progress(ComposeJob.Progress(encoded: sum, frames: plan.frames, hasAudio: plan.hasAudio))
    }

    private func join(_ chunks: [String], audio: String?, to path: String) async throws {
        var list: String?
        if !chunks.isEmpty {
            let name = JobFiles.path("list.txt")
            // Relative to the list. The names have no characters that must be quoted.
            try files.write(chunks.map { "file '\($0)'\n" }.joined(), to: name)
            list = name
        }
        // In the folder of the output, because only there it can be renamed.
        let unfinished = "\(path).part"
        let command = arguments.join(
            list: list, audio: audio.map { JobFiles.path($0) }, output: unfinished)
        let outcome = try await run(command, frames: plan.frames)
        guard outcome.isSuccess, let tracks = files.tracks(unfinished),
            !plan.hasVideo || tracks.frames == plan.frames
        else {
            files.remove(unfinished)
            try failIfFull(outcome)
            throw ComposeError.failed(part: "the composed file", message: outcome.reason)
        }
        try files.rename(unfinished, to: path)
    }

    /// Runs ffmpeg. What it prints goes to the job's log.
    func run(
        _ command: FFmpegCommand, frames: Int, onLine: @escaping @Sendable (Substring) -> Void = { _ in }
    ) async throws -> ChildProcess.Outcome {
        guard !files.isDiskFull else { throw ComposeError.diskFull }
        let seconds = Double(frames) / Double(ComposedFormat.frameRate)
        let limits = ChildProcess.Limits(
            // Video of 16 cells takes about as long as it lasts; a busy machine takes longer.
            processor: UInt64(60 + 30 * seconds), seconds: 120 + 120 * seconds, nice: Int32(job.nice))
        let outcome = try await ChildProcess.run(
            ffmpeg.path, command.arguments, directory: files.folder, limits: limits, onLine: onLine)
        for line in outcome.standardError.split(whereSeparator: \.isNewline) { files.note("ffmpeg: \(line)") }
        return outcome
    }

    func failIfFull(_ outcome: ChildProcess.Outcome) throws {
        guard files.isDiskFull || outcome.standardError.contains("No space left on device") else { return }
        throw ComposeError.diskFull
    }
}
