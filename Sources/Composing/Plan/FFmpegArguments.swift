import Layout
import MediaFiles

/// A command for ffmpeg, run in the archive's folder.
public struct FFmpegCommand: Hashable, Sendable {
    /// All arguments, of which the last one is the output.
    public var arguments: [String]

    /// Returns a number that differs if the arguments or the sizes do: FNV-1a, which is the same in every process.
    ///
    /// - Parameter sizes: for each input, the number of bytes at its beginning on which the output depends.
    public func key(sizes: [Int64]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ text: String) {
            for byte in text.utf8 + [0] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        arguments.dropLast().forEach(add)
        sizes.forEach { add(String($0)) }
        return hash
    }
}

/// The arguments for all commands of a plan.
///
/// The filters were chosen by trying them with ffmpeg 5.1:
///
/// - `-reinit_filter 0` and `scale` first, because otherwise a new size of the video builds the graph again, and everything
///   after it is late. `eval=frame` computes the size again.
/// - `-noaccurate_seek` and `max(PTS, begin)`: the last frame before the chunk's beginning becomes its first one, also if the
///   stream has not sent a frame for a minute, as a shared screen does.
/// - `tpad` before `fps` repeats the last frame to the end of the chunk. So each cell has exactly the chunk's frames.
public struct FFmpegArguments: Sendable {
    /// The size of the video.
    public var canvas: ArchiveCanvas
    /// Of which only the quality and the preset are used.
    public var options: ComposeOptions

    public init(canvas: ArchiveCanvas, options: ComposeOptions) { (self.canvas, self.options) = (canvas, options) }

    /// What every command begins with. Only local files are read, whatever a file refers to.
    private static let common = ["-hide_banner", "-nostdin", "-v", "error", "-protocol_whitelist", "file,pipe"]
    private static let oneThread = ["-filter_complex_threads", "1", "-filter_threads", "1"]
    /// The timescale of the video, in which a frame is a whole number, as `-c copy` needs.
    private static let timescale = "12800"

    // MARK: Video

    /// Encodes a chunk.
    ///
    /// - Parameters:
    ///   - black: files to replace by black, because they cannot be decoded.
    ///   - ranges: the files that are still being recorded, and what to read of them.
    ///   - output: the path to write, of any name.
    public func chunk(
        _ chunk: ComposedChunk, black: Set<String> = [], ranges: [String: RecordedRange] = [:], output: String
    ) -> FFmpegCommand {
        let begin = Int64(chunk.frames.lowerBound) * ComposedFormat.frame
        let sources = chunk.sources.map { source in
            var source = source
            if let file = source.file, black.contains(file) { source.file = nil }
            return source
        }
        var arguments = Self.common + Self.oneThread + ["-copyts"]
        for source in sources {
            if let file = source.file, let range = ranges[file] {
                arguments += input(file, range)
            } else {
                arguments += input(source, from: begin)
            }
        }
        arguments += ["-filter_complex", graph(chunk, sources), "-map", "[out]"]
        arguments += ["-frames:v", String(chunk.frames.count), "-an"] + encoder
        return FFmpegCommand(arguments: arguments + ["-progress", "pipe:1", "-f", "mp4", "-y", output])
    }

    /// Decodes one source of a chunk and prints a line for each frame, to find out which one cannot be decoded.
    public func probe(_ source: DrawnSource, in chunk: ComposedChunk) -> FFmpegCommand {
        let begin = Int64(chunk.frames.lowerBound) * ComposedFormat.frame
        let end = Int64(chunk.frames.upperBound) * ComposedFormat.frame
        let graph = frames(source, begin, end, from: 0, to: "[out]").joined(separator: ";")
        return FFmpegCommand(
            arguments: Self.common + Self.oneThread + ["-copyts"] + input(source, from: begin)
                + ["-filter_complex", graph, "-map", "[out]", "-frames:v", "1", "-f", "framecrc", "pipe:1"])
    }

    private func input(_ source: DrawnSource, from begin: Int64) -> [String] {
        guard let file = source.file else { return [] }
        let seek = begin > source.start ? ["-noaccurate_seek", "-ss", seconds(begin - source.start)] : []
        return ["-threads", "1", "-reinit_filter", "0"] + seek + ["-i", file]
    }

    /// Reads a part of a file that is still being recorded. Such a file has no index, so with `-ss`, ffmpeg would read everything before
    /// the chunk. Names of recorded files (`ArchiveFileName.isValid`) have no characters that these protocols interpret.
    private func input(_ file: String, _ range: RecordedRange) -> [String] {
        let parts = [range.header, range.clusters].map {
            "subfile,,start,\($0.lowerBound),end,\($0.upperBound),,:\(file)"
        }
        return ["-threads", "1", "-reinit_filter", "0", "-protocol_whitelist", "file,concat,subfile"]
            + ["-i", "concat:" + parts.joined(separator: "|")]
    }

    private func graph(_ chunk: ComposedChunk, _ sources: [DrawnSource]) -> String {
        let begin = Int64(chunk.frames.lowerBound) * ComposedFormat.frame
        let end = Int64(chunk.frames.upperBound) * ComposedFormat.frame
        let last = sources.isEmpty ? "[out]" : "[b0]"
        var parts = [black(canvas.width, canvas.height, end - begin) + last]
        var inputs = 0
        for (index, source) in sources.enumerated() {
            let cell = source.cell
            if source.file != nil {
                parts += frames(source, begin, end, from: inputs, to: "[s\(index)]")
                inputs += 1
            } else {
                parts.append(black(cell.width, cell.height, end - begin) + "[s\(index)]")
            }
        }
        if sources.isEmpty { return parts.joined(separator: ";") }
        // One filter for all cells takes half the time of a chain, but cells may not cover each other.
        if chunk.isDisjoint {
            let labels = sources.indices.map { "[s\($0)]" }.joined()
            let places = sources.map { "|\($0.cell.x)_\($0.cell.y)" }.joined()
            parts.append("[b0]\(labels)xstack=inputs=\(sources.count + 1):layout=0_0\(places)[out]")
        } else {
            for (index, source) in sources.enumerated() {
                let next = index == sources.count - 1 ? "[out]" : "[b\(index + 1)]"
                parts.append("[b\(index)][s\(index)]overlay=\(source.cell.x):\(source.cell.y):eof_action=repeat\(next)")
            }
        }
        return parts.joined(separator: ";")
    }

    private func black(_ width: Int, _ height: Int, _ length: Int64) -> String {
        "color=c=black:s=\(width)x\(height):r=\(ComposedFormat.frameRate):d=\(seconds(length)),format=yuv420p"
    }

    /// The filters that turn a file into the frames of its cell.
    private func frames(
        _ source: DrawnSource, _ begin: Int64, _ end: Int64, from input: Int, to output: String
    ) -> [String] {
        let (width, height) = (source.cell.width, source.cell.height)
        let box = source.rotation % 180 == 0 ? "\(width):\(height)" : "\(height):\(width)"
        let turn =
            switch source.rotation {
            case 90: ",transpose=clock"
            case 180: ",hflip,vflip"
            case 270: ",transpose=cclock"
            default: ""
            }
        let times =
            "setpts='max(PTS+\(seconds(source.start))/TB,\(seconds(begin))/TB)'"
            + ",tpad=stop_mode=clone:stop_duration=\(seconds(end - begin + ComposedFormat.frame))"
            + ",fps=\(ComposedFormat.frameRate):start_time=\(seconds(begin))"
            + ",trim=start=\(seconds(begin)):end=\(seconds(end)),setpts=PTS-STARTPTS"
        func scale(_ how: String) -> String {
            "[\(input):v]scale=\(box):force_original_aspect_ratio=\(how):force_divisible_by=2:flags=bilinear:eval=frame,setsar=1"
        }
        switch source.cell.fit {
        case .contain:
            return [
                scale("decrease")
                    + ",pad=\(box):(ow-iw)/2:(oh-ih)/2:black:eval=frame,format=yuv420p\(turn),\(times)\(output)"
            ]
        case .cover:
            // `overlay` cuts off what is outside, whatever size the video has. `crop` would keep the place of the first frame.
            // The alpha channel is what `overlay` wants: otherwise ffmpeg inserts a filter that keeps the first frame's size.
            let label = "[c\(input)]"
            return [
                scale("increase") + ",format=yuva420p\(turn),\(times)\(label)",
                "\(black(width, height, end - begin))[k\(input)]",
                "[k\(input)]\(label)overlay=(W-w)/2:(H-h)/2:eval=frame:eof_action=repeat\(output)",
            ]
        }
    }

    private var encoder: [String] {
        let quality =
            switch options.quality {
            case .constant(let factor): ["-crf", String(factor)]
            case .quantization(let parameter): ["-qp", String(parameter)]
            case .bitrate(let rate): ["-b:v", String(rate), "-maxrate", String(rate), "-bufsize", String(2 * rate)]
            }
        // The same headers in every chunk, because the composed file has those of the first one.
        return ["-c:v", "libx264", "-profile:v", "main", "-preset", options.preset.rawValue] + quality
            + ["-pix_fmt", "yuv420p", "-threads", "1"]
            + ["-x264-params", "keyint=50:min-keyint=1:scenecut=0:open-gop=0:stitchable=1"]
            + ["-video_track_timescale", Self.timescale]
    }

    // MARK: Audio

    /// The maximum number of files that one command mixes.
    public static let maxMixed = 50
    /// The number of files in a group, if there are more.
    static let group = 16

    /// Mixes files into one that is quieter by `group`, so that nothing is clipped.
    public func partialMix(_ sources: [HeardSource], output: String) -> FFmpegCommand {
        let graph = mix(sources, gain: "volume=1/\(Self.group)")
        return FFmpegCommand(
            arguments: Self.common + Self.oneThread + inputs(sources) + ["-filter_complex", graph, "-map", "[out]"]
                + ["-c:a", "flac", "-sample_fmt", "s32", "-ar", "48000", "-f", "flac", "-y", output])
    }

    /// Mixes files and encodes the audio of the composed file. Without any, it is silence.
    ///
    /// - Parameters:
    ///   - partial: the outputs of `partialMix`, to mix instead of `sources`.
    public func audio(
        _ sources: [HeardSource], partial: [String] = [], frames: Int, output: String
    ) -> FFmpegCommand {
        let length = seconds(Int64(frames) * ComposedFormat.frame)
        let limit = "alimiter=limit=0.95:level=disabled:latency=1,apad,atrim=end=\(length)"
        var arguments = Self.common + Self.oneThread
        if !partial.isEmpty {
            for file in partial { arguments += ["-i", file] }
            let labels = partial.indices.map { "[\($0):a]" }.joined()
            let mix = "\(labels)amix=inputs=\(partial.count):normalize=0:dropout_transition=0:duration=longest"
            arguments += ["-filter_complex", "\(mix),volume=\(Self.group),\(limit)[out]"]
        } else if !sources.isEmpty {
            arguments += inputs(sources) + ["-filter_complex", mix(sources, gain: limit)]
        } else {
            arguments += ["-filter_complex", "anullsrc=r=48000:cl=mono,atrim=end=\(length)[out]"]
        }
        arguments += ["-map", "[out]", "-vn", "-c:a", "aac", "-b:a", "128k", "-ac", "1", "-ar", "48000"]
        return FFmpegCommand(arguments: arguments + ["-f", "ipod", "-y", output])
    }

    /// Decodes the audio of one file, to find out which one cannot be decoded.
    public func probe(_ source: HeardSource) -> FFmpegCommand {
        FFmpegCommand(arguments: Self.common + inputs([source]) + ["-map", "0:a", "-f", "null", "pipe:1"])
    }

    /// libopus conceals lost packets, and ffmpeg's own decoder does not.
    private func inputs(_ sources: [HeardSource]) -> [String] {
        sources.flatMap { ["-c:a", "libopus", "-vn", "-i", $0.file] }
    }

    private func mix(_ sources: [HeardSource], gain: String) -> String {
        var parts = sources.enumerated().map { index, source in
            "[\(index):a]aresample=48000:async=1:first_pts=0,aformat=channel_layouts=mono\(silence(source))"
                + ",adelay=delays=\(source.start):all=1[a\(index)]"
        }
        let labels = sources.indices.map { "[a\($0)]" }.joined()
        parts.append(
            "\(labels)amix=inputs=\(sources.count):normalize=0:dropout_transition=0:duration=longest,\(gain)[out]")
        return parts.joined(separator: ";")
    }

    /// The number of times that one filter mutes. An expression is evaluated by recursion.
    private static let mutes = 20

    /// The filters that mute a file while it is not heard.
    private func silence(_ source: HeardSource) -> String {
        var gaps: [String] = []
        var end = source.start
        for range in source.ranges {
            if range.lowerBound > end {
                gaps.append("between(t,\(seconds(end - source.start)),\(seconds(range.lowerBound - source.start)))")
            }
            end = max(end, range.upperBound)
        }
        gaps.append("gte(t,\(seconds(end - source.start)))")
        return stride(from: 0, to: gaps.count, by: Self.mutes).map {
            ",volume=0:enable='\(gaps[$0..<min(gaps.count, $0 + Self.mutes)].joined(separator: "+"))'"
        }.joined()
    }

    // MARK: The composed file

    /// Joins chunks and audio without encoding them again.
    ///
    /// - Parameters:
    ///   - list: a file for ffmpeg's demuxer `concat`; nil without video.
    ///   - audio: nil without audio.
    public func join(list: String?, audio: String?, output: String) -> FFmpegCommand {
        var arguments = Self.common
        if let list { arguments += ["-f", "concat", "-safe", "0", "-i", list] }
        if let audio { arguments += ["-i", audio] }
        if list != nil { arguments += ["-map", "0:v"] }
        if audio != nil { arguments += ["-map", "\(list == nil ? 0 : 1):a"] }
        // The index first, because players over HTTP then start at once, without a request for each fragment.
        arguments += ["-c", "copy", "-movflags", "+faststart", "-video_track_timescale", Self.timescale]
        return FFmpegCommand(arguments: arguments + ["-f", "mp4", "-y", output])
    }

    /// Returns milliseconds as seconds, without trailing zeros.
    private func seconds(_ milliseconds: Int64) -> String {
        let (whole, part) = milliseconds.quotientAndRemainder(dividingBy: 1_000)
        guard part > 0 else { return String(whole) }
        var digits = String(String(1_000 + part).dropFirst())
        while digits.hasSuffix("0") { digits.removeLast() }
        return "\(whole).\(digits)"
    }
}
