import Foundation
import MediaFiles
import TestSupport
import Testing
import Wire

@testable import Broadcasting

/// Sends to nginx's RTMP module, which Debian has in libnginx-mod-rtmp.
@Suite("RTMP targets that are real servers", .serialized, .timeLimit(.minutes(3)))
struct RTMPServerTests {
    private static let module = "/usr/lib/nginx/modules/ngx_rtmp_module.so"
    private static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }
    static let isInstalled = nginx != nil && FileManager.default.fileExists(atPath: module) && TestMedia.hasFFmpeg

    private static func clock() -> Timestamp {
        Timestamp(milliseconds: Int64(ProcessInfo.processInfo.systemUptime * 1_000))
    }

    private static func configuration(_ folder: String, port: UInt16) -> String {
        """
        load_module \(module);
        daemon off;
        master_process off;
        pid \(folder)/nginx.pid;
        error_log \(folder)/error.log;
        events {}
        rtmp {
          access_log off;
          server {
            listen 127.0.0.1:\(port);
            application live { live on; record all; record_path \(folder); }
          }
        }
        """
    }

    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "confab-rtmp-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }

    private static func publisher(port: UInt16) throws -> RTMPPublisher {
        let destination = try RTMPDestination(serverURL: "rtmp://127.0.0.1:\(port)/live", streamName: "secret-name")
        return RTMPPublisher(destination, ffmpeg: try #require(ChildProgram.path("ffmpeg")), clock: clock)
    }

    /// Begins with 8 s of media, and returns its parts.
    private static func begin(_ publisher: RTMPPublisher) throws -> [MediaPart] {
        var parts: [MediaPart] = []
        for item in try TestMedia.items(try FakeCompositor.fragmentedMP4(seconds: 8), .standard) {
            switch item {
            case .initialization(let initialization): publisher.begin(initialization.bytes)
            case .part(let part): parts.append(part)
            }
        }
        return parts
    }

    @Test(
        "nginx records video and audio of a broadcast, whole",
        .enabled(if: isInstalled, "nginx, libnginx-mod-rtmp or ffmpeg is not installed"))
    func nginxRecords() async throws {
        try await Self.withFolder { folder in
            let port = UInt16(try TestPorts.next())
            let file = "\(folder)/nginx.conf"
            try Data(Self.configuration(folder, port: port).utf8).write(to: URL(filePath: file))
            let server = try ChildProgram(try #require(Self.nginx), ["-p", folder, "-c", file])
            defer {
                kill(server.id, SIGKILL)
                server.waitForEnd()
            }
            try await until("nginx listens") {
                FileManager.default.fileExists(atPath: "\(folder)/nginx.pid")
            }
            let publisher = try Self.publisher(port: port)
            #expect(publisher.status == .connecting)
            var parts = try Self.begin(publisher)[...]
            let start = Self.clock()
            // In real time: ffmpeg reports its progress only while it reads.
            try await until("the target is live") {
                if let part = parts.first, Self.clock() >= start + part.start { publisher.send(parts.removeFirst()) }
                return publisher.status == .live
            }
            for part in parts { publisher.send(part) }
            await publisher.stop()
            var events: [RTMPPublisher.Event] = []
            for await event in publisher.events { events.append(event) }
            #expect(events == [.status(.live)] && publisher.dropped == 0)
            // nginx has closed the file when the publisher's connection has ended.
            try await until("the recording has all frames") {
                let name = try FileManager.default.contentsOfDirectory(atPath: folder).first { $0.hasSuffix(".flv") }
                let arguments = [
                    "-v", "error", "-count_packets", "-show_entries", "stream=codec_name,nb_read_packets", "-of",
                    "csv=p=0", "\(folder)/\(name ?? "none")",
                ]
                let lines = try ChildProgram.run("ffprobe", arguments).lines.sorted()
                // 8 s of AAC are 375 packets, and the encoder begins with one more.
                return lines.count == 2 && lines[0].hasPrefix("aac,37") && lines[1] == "h264,200"
            }
        }
    }

    @Test(
        "a closed port makes the target offline, and the reason does not have the stream name",
        .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"))
    func closedPort() async throws {
        let port = try RefusingPort()
        let publisher = try Self.publisher(port: UInt16(port.number))
        for part in try Self.begin(publisher) { publisher.send(part) }
        try await until("the target is offline") { publisher.status == .offline }
        withExtendedLifetime(port) {}
        await publisher.stop()
        var events: [RTMPPublisher.Event] = []
        for await event in publisher.events { events.append(event) }
        #expect(events.contains(.status(.offline)) && !events.contains(.status(.live)))
        let reasons = events.compactMap { if case .failure(let reason) = $0 { reason } else { nil } }
        #expect(!reasons.isEmpty && !reasons.contains { $0.contains("secret-name") }, "\(reasons)")
    }
}
