import Composing
import Layout
import MediaFiles
import Testing

@Suite("Arguments for ffmpeg")
struct FFmpegArgumentsTests {
    private let arguments = FFmpegArguments(canvas: ArchiveCanvas(), options: ComposeOptions())

    private func source(
        _ id: String, _ x: Int, _ y: Int, _ width: Int, _ height: Int, start: Int64 = 0, rotation: Int = 0,
        isBlack: Bool = false
    ) -> DrawnSource {
        return DrawnSource(
            cell: LayoutCell(id: id, x: x, y: y, width: width, height: height), file: isBlack ? nil : "\(id).webm",
            start: start, rotation: rotation)
    }

    private func value(of option: String, in command: FFmpegCommand) -> String? {
        command.arguments.firstIndex(of: option).map { command.arguments[$0 + 1] }
    }

    @Test("a chunk of two cells: one stack, and each input from the last keyframe before the chunk")
    func stack() {
        let chunk = ComposedChunk(
            frames: 50..<100, sources: [source("x", 0, 0, 320, 480), source("y", 320, 0, 320, 480, start: 1_234)])
        let graph = """
            color=c=black:s=640x480:r=25:d=2,format=yuv420p[b0];\
            [0:v]scale=320:480:force_original_aspect_ratio=decrease:force_divisible_by=2:flags=bilinear:eval=frame,\
            setsar=1,pad=320:480:(ow-iw)/2:(oh-ih)/2:black:eval=frame,format=yuv420p,setpts='max(PTS+0/TB,2/TB)',\
            tpad=stop_mode=clone:stop_duration=2.04,fps=25:start_time=2,trim=start=2:end=4,setpts=PTS-STARTPTS[s0];\
            [1:v]scale=320:480:force_original_aspect_ratio=decrease:force_divisible_by=2:flags=bilinear:eval=frame,\
            setsar=1,pad=320:480:(ow-iw)/2:(oh-ih)/2:black:eval=frame,format=yuv420p,\
            setpts='max(PTS+1.234/TB,2/TB)',\
            tpad=stop_mode=clone:stop_duration=2.04,fps=25:start_time=2,trim=start=2:end=4,setpts=PTS-STARTPTS[s1];\
            [b0][s0][s1]xstack=inputs=3:layout=0_0|0_0|320_0[out]
            """
        #expect(
            arguments.chunk(chunk, output: "out").arguments == [
                "-hide_banner", "-nostdin", "-v", "error", "-protocol_whitelist", "file,pipe",
                "-filter_complex_threads", "1", "-filter_threads", "1", "-copyts",
                "-threads", "1", "-reinit_filter", "0", "-noaccurate_seek", "-ss", "2", "-i", "x.webm",
                "-threads", "1", "-reinit_filter", "0", "-noaccurate_seek", "-ss", "0.766", "-i", "y.webm",
                "-filter_complex",
                graph,
                "-map", "[out]", "-frames:v", "50", "-an",
                "-c:v", "libx264", "-profile:v", "main", "-preset", "veryfast", "-crf", "21", "-pix_fmt", "yuv420p",
                "-threads", "1", "-x264-params", "keyint=50:min-keyint=1:scenecut=0:open-gop=0:stitchable=1",
                "-video_track_timescale", "12800", "-progress", "pipe:1", "-f", "mp4", "-y", "out",
            ])
    }

    @Test("cells that cover each other are painted one after another")
    func overlay() throws {
        let chunk = ComposedChunk(
            frames: 0..<25, sources: [source("x", 0, 0, 640, 480), source("y", 448, 48, 128, 96, isBlack: true)])
        let graph = try #require(value(of: "-filter_complex", in: arguments.chunk(chunk, output: "out")))
        #expect(graph.contains("color=c=black:s=128x96:r=25:d=1,format=yuv420p[s1]"))
        #expect(
            graph.hasSuffix("[b0][s0]overlay=0:0:eof_action=repeat[b1];[b1][s1]overlay=448:48:eof_action=repeat[out]"))
    }

    @Test("a file that is replaced by black is no input, and a chunk without streams is black")
    func black() throws {
        let chunk = ComposedChunk(frames: 0..<25, sources: [source("x", 0, 0, 640, 480)])
        let command = arguments.chunk(chunk, black: ["x.webm"], output: "out")
        #expect(!command.arguments.contains("-i"))
        let empty = arguments.chunk(ComposedChunk(frames: 0..<25, sources: []), output: "out")
        #expect(value(of: "-filter_complex", in: empty) == "color=c=black:s=640x480:r=25:d=1,format=yuv420p[out]")
    }

    @Test("a turned video is fitted into the turned cell first", arguments: [90, 180, 270])
    func rotation(degrees: Int) throws {
        let chunk = ComposedChunk(frames: 0..<25, sources: [source("x", 0, 0, 640, 480, rotation: degrees)])
        let graph = try #require(value(of: "-filter_complex", in: arguments.chunk(chunk, output: "out")))
        #expect(graph.contains(degrees == 180 ? "scale=640:480" : "scale=480:640"))
        #expect(graph.contains([90: "transpose=clock", 180: "hflip,vflip", 270: "transpose=cclock"][degrees] ?? "?"))
    }

    @Test("the quality is that of the options")
    func quality() {
        var other = arguments
        let chunk = ComposedChunk(frames: 0..<25, sources: [])
        other.options.quality = .bitrate(1_000_000)
        #expect(value(of: "-bufsize", in: other.chunk(chunk, output: "out")) == "2000000")
        other.options.quality = .quantization(30)
        #expect(value(of: "-qp", in: other.chunk(chunk, output: "out")) == "30")
        #expect(
            ComposeOptions.Quality.bitrate(99_999).isValid == false
                && ComposeOptions.Quality.quantization(41).isValid == false)
    }

    @Test("audio is filled, muted while it is not heard, delayed and mixed")
    func audio() {
        let graph = """
            [0:a]aresample=48000:async=1:first_pts=0,aformat=channel_layouts=mono,volume=0:enable='gte(t,4)',\
            adelay=delays=0:all=1[a0];\
            [1:a]aresample=48000:async=1:first_pts=0,aformat=channel_layouts=mono,\
            volume=0:enable='between(t,0,0.5)+between(t,1.5,2)+gte(t,2.5)',adelay=delays=1500:all=1[a1];\
            [a0][a1]amix=inputs=2:normalize=0:dropout_transition=0:duration=longest,\
            alimiter=limit=0.95:level=disabled:latency=1,apad,atrim=end=4[out]
            """
        let command = arguments.audio(
            [
                HeardSource(file: "x.webm", start: 0, ranges: [0..<4_000]),
                HeardSource(file: "y.webm", start: 1_500, ranges: [2_000..<3_000, 3_500..<4_000]),
            ], frames: 100, output: "out")
        #expect(
            command.arguments.drop { $0 != "-c:a" } == [
                "-c:a", "libopus", "-vn", "-i", "x.webm", "-c:a", "libopus", "-vn", "-i", "y.webm",
                "-filter_complex",
                graph,
                "-map", "[out]", "-vn", "-c:a", "aac", "-b:a", "128k", "-ac", "1", "-ar", "48000", "-f", "ipod", "-y",
                "out",
            ])
        #expect(
            value(of: "-filter_complex", in: arguments.audio([], frames: 25, output: "out"))
                == "anullsrc=r=48000:cl=mono,atrim=end=1[out]")
    }

    @Test("the parts are joined without encoding, with the index first")
    func join() {
        let both = arguments.join(list: "list", audio: "sound", output: "out").arguments.dropFirst(6)
        #expect(
            both == [
                "-f", "concat", "-safe", "0", "-i", "list", "-i", "sound", "-map", "0:v", "-map", "1:a", "-c", "copy",
                "-movflags", "+faststart", "-video_track_timescale", "12800", "-f", "mp4", "-y", "out",
            ])
        #expect(value(of: "-map", in: arguments.join(list: nil, audio: "sound", output: "out")) == "0:a")
    }

    @Test("the key of a command differs with its arguments and the sizes of its files, but not with its output")
    func keys() {
        let chunk = ComposedChunk(frames: 0..<25, sources: [source("x", 0, 0, 640, 480)])
        let longer = ComposedChunk(frames: 0..<26, sources: chunk.sources)
        let key = arguments.chunk(chunk, output: "a").key(sizes: [5])
        #expect(key == arguments.chunk(chunk, output: "b").key(sizes: [5]))
        #expect(key != arguments.chunk(chunk, output: "a").key(sizes: [6]))
        #expect(key != arguments.chunk(longer, output: "a").key(sizes: [5]))
    }
}
