import Foundation
import TestSupport
import Testing
import Wire

@testable import Broadcasting

@Suite("RTMP targets")
struct RTMPTests {
    private static func at(_ seconds: Int64) -> Timestamp { Timestamp(milliseconds: seconds * 1_000) }

    @Test("a refused target is offline, is tried again after 1, 2, 4 … 30 s, and is live when media arrives")
    func retries() {
        var target = RTMPTarget()
        var now: Int64 = 0
        for (run, pause) in [1, 2, 4, 8, 16, 30, 30].enumerated() {
            #expect(target.take(.keyframe, at: Self.at(now)) == [.start(run: run + 1)])
            let effects = target.take(.exited(run: run + 1), at: Self.at(now))
            #expect(effects == (run == 0 ? [.report(.offline)] : []))
            #expect(target.deadline == Self.at(now + Int64(pause)))
            #expect(target.take(.keyframe, at: Self.at(now)) == [])
            now += Int64(pause)
            #expect(target.take(.timer, at: Self.at(now)) == [])
        }
        #expect(target.take(.keyframe, at: Self.at(now)) == [.start(run: 8)])
        #expect(target.take(.sent(.seconds(1), run: 8), at: Self.at(now)) == [])
        #expect(target.take(.sent(.seconds(9), run: 7), at: Self.at(now)) == [])
        #expect(target.take(.sent(.seconds(2), run: 8), at: Self.at(now)) == [.report(.live)])
        #expect(target.take(.exited(run: 8), at: Self.at(now)) == [.report(.offline)])
        #expect(target.deadline == Self.at(now + 1))
    }

    @Test("a connection that takes 20 s, and a queue that is full for 10 s, are killed")
    func stalls() {
        var target = RTMPTarget()
        _ = target.take(.keyframe, at: Self.at(0))
        #expect(target.take(.timer, at: Self.at(19)) == [])
        #expect(target.take(.timer, at: Self.at(20)) == [.kill(run: 1), .report(.offline)])
        _ = target.take(.timer, at: Self.at(21))
        _ = target.take(.keyframe, at: Self.at(21))
        _ = target.take(.sent(.seconds(2), run: 2), at: Self.at(23))
        #expect(target.take(.full(since: Self.at(30), run: 2), at: Self.at(39)) == [])
        #expect(target.take(.full(since: Self.at(30), run: 2), at: Self.at(40)) == [.kill(run: 2), .report(.offline)])
    }

    @Test("another start of the encoder waits for the end of the old ffmpeg, and changes no status")
    func encoderRestarts() {
        var target = RTMPTarget()
        _ = target.take(.keyframe, at: Self.at(0))
        _ = target.take(.sent(.seconds(2), run: 1), at: Self.at(2))
        #expect(target.take(.encoderRestarted, at: Self.at(3)) == [.close(run: 1)])
        #expect(target.take(.keyframe, at: Self.at(3)) == [])
        #expect(target.take(.exited(run: 1), at: Self.at(4)) == [])
        #expect(target.take(.keyframe, at: Self.at(4)) == [.start(run: 2)])
        #expect(target.take(.stop, at: Self.at(5)) == [.close(run: 2)])
        #expect(target.take(.timer, at: Self.at(10)) == [.kill(run: 2)])
        #expect(target.take(.keyframe, at: Self.at(11)) == [] && target.status == .live)
    }

    @Test("URLs are checked, and the stream name is in no description")
    func destinations() throws {
        let good = try RTMPDestination(serverURL: "rtmps://a.example:1936/live/", streamName: "key?x=1")
        #expect(good.url == "rtmps://a.example:1936/live/key?x=1" && good.host == "a.example" && good.port == 1_936)
        #expect("\(good)" == "rtmps://a.example:1936" && good.isEncrypted)
        #expect(good.withoutSecret("open key?x=1: refused") == "open (stream name): refused")
        let token = try RTMPDestination(serverURL: "rtmp://a.example/app?token=SECRET/", streamName: "key")
        for line in [
            "Error opening output \(token.url): refused", "\(token.serverURL): refused",
            "rtmp://a.example/app?token=SECRET: refused", "app app?token=SECRET playpath key",
        ] {
            let shown = token.withoutSecret(line)
            #expect(!shown.contains("SECRET") && !shown.contains("key") && shown.count > 8, "\(shown)")
        }
        #expect(token.withoutSecret("Error opening \(token.url).") == "Error opening rtmp://a.example:1935.")
        #expect(try RTMPDestination(serverURL: "rtmp://[::1]/app", streamName: "a").host == "::1")
        let bad: [(String, String, RTMPDestination.Fault)] = [
            ("http://a/live", "k", .badScheme), ("rtmp:a/live", "k", .badScheme), ("rtmp:///live", "k", .badHost),
            ("rtmp://u@a/live", "k", .badHost), ("rtmp://[::1/live", "k", .badHost), ("rtmp://a:0/live", "k", .badPort),
            ("rtmp://a:65536/live", "k", .badPort), ("rtmp://a", "k", .noApplication),
            ("rtmp://a/", "k", .noApplication),
            ("rtmp://a?b/c", "k", .noApplication), ("rtmp://a/live", "", .noStreamName),
            ("rtmp://a/live", "k live=1", .badCharacter), ("rtmp://a/live\n", "k", .badCharacter),
            ("rtmp://a\\b/live", "k", .badCharacter), ("rtmp://a/live", String(repeating: "k", count: 2_048), .tooLong),
        ]
        for (server, name, fault) in bad {
            #expect(throws: fault, "\(server)") { try RTMPDestination(serverURL: server, streamName: name) }
        }
    }

    @Test("a target that the server may not connect to is offline, and ffmpeg is not started for it")
    func refused() async throws {
        let destination = try RTMPDestination(serverURL: "rtmp://127.0.0.1/live", streamName: "key")
        // ffmpeg is missing, so an attempt to start it would be an error.
        let publisher = RTMPPublisher(destination, ffmpeg: "/nonexistent/ffmpeg", problem: { "\($0) is private." }) {
            Timestamp(milliseconds: 0)
        }
        publisher.begin([1])
        publisher.send(StreamFixture.part(0))
        try await until("the target is offline") { publisher.status == .offline }
        await publisher.stop()
        var events: [RTMPPublisher.Event] = []
        for await event in publisher.events { events.append(event) }
        #expect(events == [.failure("rtmp://127.0.0.1:1935 is private."), .status(.offline)])
    }

    @Test("ffmpeg sends each packet of the stream", .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"))
    func arguments() throws {
        let bytes = try FakeCompositor.fragmentedMP4(seconds: 4)
        try TestMedia.withFolder { folder in
            let (input, output) = ("\(folder)/in.mp4", "\(folder)/out.flv")
            try Data(bytes).write(to: URL(filePath: input))
            let destination = try RTMPDestination(serverURL: "rtmp://127.0.0.1/live", streamName: "key")
            // The same arguments, with files in place of the pipe and of the target.
            let arguments = destination.ffmpegArguments.map {
                $0 == "pipe:0" ? input : $0 == destination.url ? output : $0 == "pipe" ? "file" : $0
            }
            let progress = try ChildProgram.run("ffmpeg", arguments)
            #expect(progress.status == 0 && progress.lines.compactMap(RTMPProgress.sent).last ?? .zero >= .seconds(3))
            let packets = try TestMedia.run(
                "ffprobe",
                [
                    "-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets", "-of",
                    "csv=p=0", output,
                ])
            #expect(packets == ["100"])
        }
    }
}
