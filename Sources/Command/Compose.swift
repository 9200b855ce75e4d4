import ArgumentParser
import Composing
import Dispatch
import Foundation
import Layout
import MediaFiles
import Synchronization

/// The `confab compose` command: makes one video of the files of an archive.
struct ComposeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compose",
        abstract: "Compose the files of an archive into one video.",
        discussion: """
            DIR is the folder of an archive, with its event log and a file for each stream. The command needs ffmpeg. It can
            be stopped at any time: when it is started again, it continues with the first part that is missing.

              confab compose recordings/0123456789abcdef0123456789abcdef
              confab compose DIR --output lesson.mp4 --size 1280x720 --layout verticalPresentation --class STREAM=focus

            The options replace what the archive's event log says. ffmpeg's messages are in DIR/composing.log.
            """)

    @Argument(help: "Folder of the archive.")
    var dir: String

    @Option(help: "File to write (default: DIR/\(ArchiveFileName.composed)).")
    var output: String?

    @Flag(help: "Replace the file if it exists.")
    var overwrite = false

    @Option(help: "Size of the video, such as 1280x720.")
    var size: String?

    @Option(help: "One layout for the whole time: bestFit, pip, verticalPresentation, horizontalPresentation or room.")
    var layout: String?

    @Option(help: "File with a style sheet, for the layout custom.")
    var stylesheet: String?

    @Option(help: "The layout while a screen is shared. Requires --layout bestFit.")
    var screenshareLayout: String?

    @Option(
        name: .customLong("class"),
        help: "Classes of a stream, such as STREAM=focus or STREAM=focus,large. May be repeated.")
    var classes: [String] = []

    @Flag(inversion: .prefixedNo, help: "Whether the file has audio.")
    var audio: Bool?

    @Flag(inversion: .prefixedNo, help: "Whether the file has video.")
    var video: Bool?

    @Option(help: "Quality of the video, 0 (best) to 51 (default: 21).")
    var quality: Int?

    @Option(help: "Maximum bits per second of the video, 100000 to 6000000, instead of --quality.")
    var bitrate: Int?

    @Option(help: "Fixed quantization parameter, 15 to 40, instead of --quality.")
    var quantization: Int?

    @Option(help: "Speed of the encoder: \(ComposeOptions.Preset.allCases.map(\.rawValue).joined(separator: ", ")).")
    var preset = ComposeOptions.Preset.veryfast

    @Option(help: "Command or path of ffmpeg, version \(FFmpegInstallation.oldest) or later.")
    var ffmpeg = "ffmpeg"

    @Option(help: "Parts to encode at the same time. Each uses one core.")
    var jobs = 1

    @Option(help: "Priority of ffmpeg, 0 (that of other programs) to 19 (lowest).")
    var nice = 19

    @Flag(help: "Do not print the progress.")
    var quiet = false

    static let maxJobs = 64

    func validate() throws {
        _ = try options()
        guard (1...Self.maxJobs).contains(jobs) else {
            throw ValidationError("--jobs must be from 1 to \(Self.maxJobs).")
        }
        guard (0...19).contains(nice) else { throw ValidationError("--nice must be from 0 to 19.") }
    }

    private func options() throws -> ComposeOptions {
        var options = ComposeOptions()
        if let size {
            options.canvas = ArchiveCanvas(size)
            guard options.canvas?.isPossible == true else {
                throw ValidationError("--size must be two even numbers from 64 to 4096, such as 1280x720.")
            }
        }
        options.layout = try chosenLayout()
        for text in classes {
            let parts = text.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else {
                throw ValidationError("--class must be a stream and its classes, such as STREAM=focus.")
            }
            options.classes[String(parts[0])] = parts[1].split(separator: ",").map(String.init)
        }
        (options.hasAudio, options.hasVideo, options.preset) = (audio, video, preset)
        guard audio != false || video != false else {
            throw ValidationError("A file without audio and video would be empty.")
        }
        options.quality = try chosenQuality() ?? options.quality
        return options
    }

    private func chosenLayout() throws -> ArchiveLayout? {
        if let stylesheet {
            guard layout == nil, screenshareLayout == nil else {
                throw ValidationError("--stylesheet excludes other layouts.")
            }
            return try ArchiveLayout("custom", stylesheet: readStylesheet(stylesheet))
        }
        guard let layout else {
            guard screenshareLayout == nil else {
                throw ValidationError("--screenshare-layout requires --layout bestFit.")
            }
            return nil
        }
        let chosen = ArchiveLayout(layout, screenshareType: screenshareLayout)
        guard layout != "custom", chosen.isSupported else {
            throw ValidationError(
                "--layout must be bestFit, pip, verticalPresentation, horizontalPresentation or room, and "
                    + "--screenshare-layout one of the first four with --layout bestFit.")
        }
        return chosen
    }

    private func readStylesheet(_ path: String) throws -> String {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw ValidationError("The style sheet \(path) cannot be read.")
        }
        do {
            _ = try Stylesheet(text)
        } catch {
            throw ValidationError("\(path): \(error)")
        }
        return text
    }

    private func chosenQuality() throws -> ComposeOptions.Quality? {
        let chosen: [ComposeOptions.Quality] =
            [quality.map { .constant($0) }, bitrate.map { .bitrate($0) }, quantization.map { .quantization($0) }]
            .compactMap { $0 }
        guard chosen.count <= 1 else {
            throw ValidationError("Specify only one of --quality, --bitrate and --quantization.")
        }
        guard chosen.first?.isValid != false else {
            throw ValidationError(
                "--quality must be from 0 to 51, --bitrate from 100000 to 6000000, and --quantization from 15 to 40.")
        }
        return chosen.first
    }

    func run() async throws {
        var job = ComposeJob(folder: dir, options: try options())
        (job.ffmpeg, job.output, job.overwrites) = (ffmpeg, output, overwrite)
        (job.concurrency, job.nice) = (jobs, nice)
        let meter = ProgressMeter(isQuiet: quiet)
        let work = Task { [job] in try await job.run { meter.show($0) } }
        let signals = Self.onSignals { work.cancel() }
        defer { signals.forEach { $0.cancel() } }
        do {
            report(try await work.value)
        } catch let error as ComposeError {
            throw CommandError(description: error.description)
        } catch is CancellationError {
            throw CommandError(description: "Stopped. Start the command again to continue.")
        }
    }

    private func report(_ result: ComposeJob.Result) {
        for note in result.notes { print(note) }
        for file in result.damaged { print("\(file) cannot be decoded everywhere, so it is black or silent there.") }
        let seconds = Double(result.frames) / Double(ComposedFormat.frameRate)
        let made = result.kept > 0 ? ", \(result.kept) of \(result.made + result.kept) parts from an earlier run" : ""
        print("\(result.path): \(String(format: "%.2f", seconds)) s, \(result.size) bytes\(made)")
    }

    /// Calls `stop` on Ctrl-C and on SIGTERM, as long as the returned sources are kept.
    private static func onSignals(_ stop: @escaping @Sendable () -> Void) -> [any DispatchSourceProtocol] {
        [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler(handler: stop)
            source.activate()
            return source
        }
    }
}

/// Prints each further percent to the standard error.
private final class ProgressMeter: Sendable {
    private let isQuiet: Bool
    private let last = Mutex(-1)

    init(isQuiet: Bool) { self.isQuiet = isQuiet }

    func show(_ progress: ComposeJob.Progress) {
        let percent = progress.frames > 0 ? 100 * progress.encoded / progress.frames : 0
        let isNew = last.withLock { last in
            defer { last = max(last, percent) }
            return percent > last
        }
        guard isNew, !isQuiet else { return }
        FileHandle.standardError.write(
            Data("\(percent) %: \(progress.encoded) of \(progress.frames) frames\n".utf8))
    }
}

extension ComposeOptions.Preset: ExpressibleByArgument {}
