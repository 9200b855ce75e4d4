import Foundation
import Testing
import Wire

/// The programs that make and judge recordings.
private let ffmpeg = "/usr/bin/ffmpeg"
private let ffprobe = "/usr/bin/ffprobe"

extension Hostile {
    /// `kill -9` of a server that records four streams.
    @Suite(
        "A server that is killed while it records",
        .enabled(if: FileManager.default.isExecutableFile(atPath: ffprobe), "ffmpeg is not installed"))
    struct RecordingKillTests {
        private static let rounds = Int(ProcessInfo.processInfo.environment["CONFAB_RECORDING_KILLS"] ?? "") ?? 2
        private static let streams = 4
        /// What a killed server may lose of a stream: what it was putting in order.
        private static let maxLoss = 2_000
        /// What the recovery may cut off of a file that was written: a block that is not whole.
        private static let maxRepaired = 100

        @Test("its archive is complete after the restart, but for the last two seconds", arguments: 1...rounds)
        func killed(round: Int) async throws {
            var dice = Random(ofCase: round)
            let settings = [
                "CONFAB_RECORDING_NOTICE": "0s", "CONFAB_RECORDING_MIN_FREE_SPACE": "1MiB",
                "CONFAB_MEDIA_ADDRESS": "127.0.0.1",
            ]
            try await ServerProcess.run(settings) { server in
                let session = try await Self.text(server, ["session", "create", "--record", "640x480"])
                let token = try await Self.text(server, ["token", "create", "--session", session])
                let bots = try RunningProcess(
                    Executable.confab(),
                    ["bot", "--server", "http://127.0.0.1:\(server.port)", "--session", session, "--token", token]
                        + ["--count", "\(Self.streams)"],
                    environment: ["PATH": "/usr/bin"], logFile: server.dataDirectory + "/bots.log")
                let archive = RecordedFolder(recordings: server.dataDirectory + "/recordings")
                try eventually("not all streams are recorded: \(archive.files)", within: .seconds(60)) {
                    archive.files.count == Self.streams && archive.files.values.allSatisfy { $0 > 0 }
                }
                // The server is killed when a random number of bytes was written.
                let bytes = archive.size + Int(dice.next() % 600_000)
                try eventually("\(archive.files) of \(bytes) bytes", within: .seconds(60)) { archive.size >= bytes }
                server.kill()
                bots.send(SIGKILL)
                #expect(bots.waits(within: .seconds(20)))
                // How long the files are that the server has left, which have no end.
                var left: [String: Int] = [:]
                for name in archive.files.keys { left[name] = try Probe.lastTime("\(archive.path)/\(name)") }
                try server.restart()
                try await Self.waitUntilAvailable(archive.id, server)
                try Self.check(archive, left)
                #expect(
                    try await Self.text(server, ["archive", "delete", "--session", session])
                        == "Deleted 1 of 1 archives.")
                #expect(archive.files.isEmpty)
            }
        }

        private static func text(_ server: ServerProcess, _ arguments: [String]) async throws -> String {
            let result = try await server.command(arguments)
            try #require(result.status == 0, "\(arguments): \(result.errors)")
            return result.output.trimmingCharacters(in: .newlines)
        }

        private static func waitUntilAvailable(_ archive: String, _ server: ServerProcess) async throws {
            let deadline = ContinuousClock.now + .seconds(90)
            while true {
                let text = try await text(server, ["archive", "get", archive])
                #expect(text.contains("reason: server restarted"))
                if text.contains("  available  ") { return }
                try #require(text.contains("  stopped  ") && ContinuousClock.now < deadline, "\(text)")
            }
        }

        /// - Parameter left: by file, the time of the last packet that the killed server had written, in milliseconds.
        private static func check(_ archive: RecordedFolder, _ left: [String: Int]) throws {
            let manifest = try archive.manifest
            #expect(manifest.count == streams)
            var length = 0
            // All streams were recorded until the end. The one that lost least shows for how long at least.
            let recorded = manifest.map(\.stop).max() ?? 0
            for file in manifest {
                #expect(file.stop >= recorded - maxLoss, "\(file) ends early: \(recorded) ms were recorded")
                let kept = file.stop - file.start
                #expect(kept >= (left[file.name] ?? .max) - maxRepaired, "\(file) keeps less than \(left)")
                let duration = try Probe.duration("\(archive.path)/\(file.name)")
                #expect(abs(duration - (file.stop - file.start)) <= 100, "\(file) has \(duration) ms")
                let errors = try Probe.errors("\(archive.path)/\(file.name)")
                #expect(errors.isEmpty, "ffmpeg says about \(file.name): \(errors)")
                length = max(length, file.stop)
            }
            let composed = try Probe.duration("\(archive.path)/archive.mp4")
            #expect(abs(composed - length) <= 200, "\(composed) ms were composed of \(length) ms")
            print("recorded \(recorded) ms, kept \(manifest.map(\.stop)), composed \(composed) ms")
        }
    }
}

/// The folder of the only archive.
private struct RecordedFolder {
    let recordings: String

    var id: String {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: recordings)) ?? []
        return names.first { $0.utf8.count == 32 } ?? ""
    }
    var path: String { "\(recordings)/\(id)" }

    /// The sizes of the recorded files in bytes.
    var files: [String: Int] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        let recorded = names.filter { $0.hasSuffix(".webm") }.map { name -> (String, Int) in
            let attributes = try? FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
            return (name, (attributes?[.size] as? NSNumber)?.intValue ?? 0)
        }
        return Dictionary(uniqueKeysWithValues: recorded)
    }
    var size: Int { files.values.reduce(0, +) }

    struct File {
        var name: String
        /// In milliseconds of recorded time.
        var start: Int
        var stop: Int
    }

    var manifest: [File] {
        get throws {
            let bytes = FileManager.default.contents(atPath: "\(path)/archive.json") ?? Data()
            guard case .object(let manifest) = try JSONReader.parse(Array(bytes)),
                case .array(let files)? = manifest["files"]
            else { throw TimedOut("there is no manifest") }
            return files.compactMap { value in
                guard case .object(let file) = value, case .string(let name)? = file["filename"],
                    case .integer(let start)? = file["startTimeOffset"],
                    case .integer(let stop)? = file["stopTimeOffset"]
                else { return nil }
                return File(name: name, start: Int(start), stop: Int(stop))
            }
        }
    }
}

/// What ffmpeg says about a file.
private enum Probe {
    /// In milliseconds.
    static func duration(_ file: String) throws -> Int {
        let text = try run(ffprobe, ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", file])
        guard let seconds = Double(text) else { throw TimedOut("ffprobe says about the duration of \(file): \(text)") }
        return Int((seconds * 1000).rounded())
    }

    /// The time of the last packet in milliseconds.
    static func lastTime(_ file: String) throws -> Int {
        // The last block may not be whole, so errors matter only if nothing else is printed.
        let text = try run(ffprobe, ["-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", file])
        let times = text.split { $0.isNewline || $0 == "," }.compactMap { Double($0) }
        guard let last = times.max() else { throw TimedOut("\(file) has no packets: \(text)") }
        return Int((last * 1000).rounded())
    }

    /// What is wrong with a file, in ffmpeg's words. Frames keep their times in milliseconds: with a guessed frame rate, two frames that
    /// arrived together would get one time, and ffmpeg would complain.
    static func errors(_ file: String) throws -> String {
        let times = ["-fps_mode", "passthrough", "-enc_time_base", "-1"]
        return try run(ffmpeg, ["-v", "error", "-i", file] + times + ["-f", "null", "-"])
    }

    private static func run(_ program: String, _ arguments: [String]) throws -> String {
        let log = FileManager.default.temporaryDirectory.appending(path: "confab-probe-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: log) }
        let process = try RunningProcess(program, arguments, environment: ["PATH": "/usr/bin"], logFile: log)
        guard process.waits(within: .seconds(60)) else {
            process.send(SIGKILL)
            throw TimedOut("\(program) still runs")
        }
        return try String(contentsOfFile: log, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
