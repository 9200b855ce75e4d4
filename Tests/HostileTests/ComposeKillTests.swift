import Foundation
import Testing

/// The path of ffmpeg; nil if it is not installed.
private let ffmpeg = ["/usr/bin/ffmpeg", "/usr/local/bin/ffmpeg"].first {
    FileManager.default.isExecutableFile(atPath: $0)
}

extension Hostile {
    /// `kill -9` of `confab compose`, again and again.
    @Suite("Composing that is killed", .enabled(if: ffmpeg != nil, "ffmpeg is not installed"))
    struct ComposeKillTests {
        /// The picture appears and disappears, so there are this many chunks, and the sound.
        private static let chunks = 5

        private static func makeArchive(_ folder: String) throws {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try run(
                try #require(ffmpeg),
                ["-v", "error", "-f", "lavfi", "-i", "testsrc=s=320x240:r=25:d=5", "-f", "lavfi", "-i", "sine=d=5"]
                    + [
                        "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus",
                        "\(folder)/x.webm",
                    ])
            var log = """
                {"t":0,"e":"archive","id":"a","sessionId":"s","resolution":"640x480","layout":{"type":"bestFit"},"hasAudio":true,\
                "hasVideo":true,"fps":25}
                {"t":0,"e":"stream","id":"x","connectionId":"c","connectionData":"","videoType":"camera","name":""}
                {"t":0,"e":"file","stream":"x","file":"x.webm","codec":"vp8"}
                {"t":0,"e":"video","stream":"x","on":false}

                """
            for chunk in 1..<chunks {
                log += #"{"t":\#(chunk * 1_000),"e":"video","stream":"x","on":\#(chunk % 2 == 1)}"# + "\n"
            }
            log += #"{"t":5000,"e":"end","reason":"user initiated"}"# + "\n"
            try log.write(toFile: "\(folder)/events.jsonl", atomically: true, encoding: .utf8)
        }

        private static func run(_ executable: String, _ arguments: [String]) throws {
            let log = FileManager.default.temporaryDirectory.appending(path: "confab-compose-\(UUID())").path
            defer { try? FileManager.default.removeItem(atPath: log) }
            let process = try RunningProcess(
                executable, arguments, environment: ["PATH": "/usr/bin:/usr/local/bin"], logFile: log)
            #expect(process.waits(within: .seconds(60)) && process.status == 0)
        }

        private static func made(_ folder: String) -> [String] {
            let log = (try? String(contentsOfFile: "\(folder)/composing.log", encoding: .utf8)) ?? ""
            return log.split(separator: "\n").filter { $0.contains(" Made ") }.map(String.init)
        }

        /// The processes that work in the folder.
        private static func workers(_ folder: String) -> [String] {
            let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return processes.filter {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\($0)/cwd")) == folder
            }
        }

        private static func frames(_ folder: String) throws -> String {
            try run(
                try #require(ffmpeg),
                ["-v", "error", "-i", "\(folder)/archive.mp4", "-f", "framemd5", "\(folder)/frames"])
            return try String(contentsOfFile: "\(folder)/frames", encoding: .utf8)
        }

        @Test("a composing that is killed at each part makes no part twice, leaves no ffmpeg, and has the same result")
        func killed() throws {
            let root = FileManager.default.temporaryDirectory.appending(path: "confab-compose-\(UUID())").path
            defer { try? FileManager.default.removeItem(atPath: root) }
            let (calm, killed) = ("\(root)/calm", "\(root)/killed")
            try Self.makeArchive(calm)
            // A copy, because the encoder's output differs from run to run.
            try FileManager.default.copyItem(atPath: calm, toPath: killed)
            let confab = try Executable.confab()
            try Self.run(confab, ["compose", calm, "--quiet", "--preset", "ultrafast"])
            var runs = 0
            while !FileManager.default.fileExists(atPath: "\(killed)/archive.mp4") {
                runs += 1
                try #require(runs <= 2 * Self.chunks + 2)
                let before = Self.made(killed).count
                let process = try RunningProcess(
                    confab, ["compose", killed, "--quiet", "--preset", "ultrafast"],
                    environment: ["PATH": "/usr/bin:/usr/local/bin"], logFile: "\(root)/log")
                try eventually("run \(runs) has made nothing", within: .seconds(60)) {
                    Self.made(killed).count > before || !process.isRunning
                }
                process.send(SIGKILL)
                #expect(process.waits(within: .seconds(20)))
                try eventually("ffmpeg still runs: \(Self.workers(killed))") { Self.workers(killed).isEmpty }
            }
            let made = Self.made(killed).map { $0.split(separator: " ").last ?? "" }
            #expect(Set(made).count == made.count && made.count <= Self.chunks + 1, "\(made)")
            #expect(runs > 2)
            #expect(try Self.frames(killed) == Self.frames(calm))
        }
    }
}
