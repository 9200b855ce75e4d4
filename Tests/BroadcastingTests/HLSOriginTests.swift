import Foundation
import MediaFiles
import TestSupport
import Testing
import Wire

@testable import Broadcasting

@Suite("Requests for a stream")
struct HLSOriginTests {
    private static let now = Timestamp(milliseconds: 0)

    @Test("a request waits for its part, and is refused when it is too far ahead or nothing comes")
    func waits() throws {
        var stream = HLSStream(.lowLatency)
        var reloads = BlockingReloads(maxHeld: 2)
        _ = stream.begin(try StreamFixture.initialization(), at: Self.now)
        let parts = (0..<6).map(StreamFixture.part)
        for part in parts.prefix(5) { _ = stream.append(part, at: Self.now, wall: Self.now) }
        #expect(stream.last == HLSPosition(segment: 1, part: 0) && stream.playlist.contains("part-000005.m4s"))
        func ask(_ segment: Int, _ part: Int?, _ id: UInt64) -> BlockingReloads.Answer {
            reloads.playlist(.init(segment: segment, part: part), id: id, of: stream, at: Self.now)
        }
        #expect(ask(0, nil, 1) == .send && ask(1, 0, 2) == .send && ask(0, 9, 3) == .send)
        #expect(ask(4, nil, 4) == .refuse(.badRequest) && ask(1, 8, 5) == .refuse(.badRequest))
        #expect(ask(1, 1, 6) == .wait)
        #expect(reloads.file(.part(5), exists: false, id: 7, of: stream, at: Self.now) == .wait)
        #expect(reloads.file(.part(6), exists: false, id: 8, of: stream, at: Self.now) == .refuse(.notFound))
        #expect(ask(1, nil, 9) == .refuse(.unavailable), "two requests wait")
        #expect(reloads.advance(stream).isEmpty)
        _ = stream.append(parts[5], at: Self.now, wall: Self.now)
        #expect(reloads.advance(stream).map(\.id) == [6, 7])
        #expect(ask(1, nil, 10) == .wait && reloads.deadline == Self.now + .seconds(6))
        #expect(reloads.expire(at: Self.now + .milliseconds(5_999)).isEmpty)
        let expired = reloads.expire(at: Self.now + .seconds(6))
        #expect(expired.map(\.answer) == [.refuse(.unavailable)] && reloads.held == 0)
    }

    @Test("players may begin when the playlist has three target durations, with and without low latency")
    func ready() throws {
        // By settings: how many parts of 480 ms a segment has, and after how many the playlist is long enough.
        let cases: [(HLSSettings, inSegment: Int, needed: Int)] = [(.standard, 8, 33), (.lowLatency, 4, 13)]
        for (settings, inSegment, needed) in cases {
            var stream = HLSStream(settings)
            _ = stream.begin(try StreamFixture.initialization(), at: Self.now)
            for number in 0..<40 {
                var part = StreamFixture.part(number)
                part.startsSegment = number % inSegment == 0
                _ = stream.append(part, at: Self.now, wall: Self.now)
                #expect(stream.isReady == (number + 1 >= needed), "\(inSegment) in a segment, part \(number)")
                guard number + 1 == needed else { continue }
                // Of segments, and of the parts after the last one.
                let lines = stream.playlist.split(separator: "\n")
                let last = lines.lastIndex { $0.hasPrefix("#EXTINF:") } ?? 0
                let segments = lines.compactMap { $0.hasPrefix("#EXTINF:") ? Double($0.dropFirst(8).dropLast()) : nil }
                let parts = lines[last...].filter { $0.hasPrefix("#EXT-X-PART:") }
                let length = segments.reduce(0, +) + 0.48 * Double(parts.count)
                #expect(length >= Double(3 * settings.targetDuration), "\(stream.playlist)")
            }
        }
    }

    private static func origin(
        _ place: HLSOrigin.Place, clock: @escaping @Sendable () -> Timestamp = { HLSOriginTests.now }
    ) throws -> HLSOrigin {
        let origin = HLSOrigin(.lowLatency, in: place, clock: clock)
        try origin.begin(try StreamFixture.initialization())
        return origin
    }

    private static func names(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    @Test("files are in the folder, and a request is answered with the path of its file or with the playlist")
    func folder() async throws {
        try await Self.withFolder { folder in
            let origin = try Self.origin(.folder(folder))
            #expect(await origin.respond(to: "live.m3u8") == .notReady)
            for number in 0...12 { try origin.append(StreamFixture.part(number), wall: Self.now) }
            #expect(origin.isReady)
            #expect(try Self.names(folder).count == 1 + 13 + 3)
            #expect(await origin.respond(to: "init-1.mp4") == .file("\(folder)/init-1.mp4"))
            #expect(await origin.respond(to: "seg-000002.m4s") == .file("\(folder)/seg-000002.m4s"))
            let segment = try Data(contentsOf: URL(filePath: "\(folder)/seg-000002.m4s"))
            #expect([UInt8](segment) == [8, 9, 10, 11])
            for name in ["seg-000003.m4s", "part-000099.m4s", "../x", "x"] {
                #expect(await origin.respond(to: name) == .refused(.notFound), "\(name)")
            }
            guard case .playlist(let text, let isFinal) = await origin.respond(to: "live.m3u8") else {
                Issue.record("there is no playlist")
                return
            }
            #expect(text.contains("part-000012.m4s") && !isFinal)
            guard case .playlist(let index, _) = await origin.respond(to: "index.m3u8") else {
                Issue.record("there is no index")
                return
            }
            #expect(index.contains("RESOLUTION=160x120"))
        }
    }

    @Test("a request that waits is answered by the next part, and one whose task is canceled is forgotten")
    func waiting() async throws {
        let origin = try Self.origin(.memory)
        for number in 0...12 { try origin.append(StreamFixture.part(number), wall: Self.now) }
        let part = Task { await origin.respond(to: "part-000013.m4s") }
        let gone = Task { await origin.respond(to: "part-000013.m4s") }
        try await until("two requests wait") { origin.held == 2 }
        gone.cancel()
        #expect(await gone.value == .refused(.unavailable))
        #expect(origin.held == 1)
        try origin.append(StreamFixture.part(13), wall: Self.now)
        #expect(await part.value == .media([[13]]))
        #expect(origin.held == 0)
    }

    @Test("removing refuses requests that wait, and what is fed later changes nothing")
    func removed() async throws {
        try await Self.withFolder { folder in
            let origin = try Self.origin(.folder(folder))
            for number in 0...12 { try origin.append(StreamFixture.part(number), wall: Self.now) }
            let waiting = Task { await origin.respond(to: "part-000013.m4s") }
            try await until("a request waits") { origin.held == 1 }
            try origin.remove()
            #expect(await waiting.value == .refused(.notFound))
            #expect(origin.held == 0 && !FileManager.default.fileExists(atPath: folder))
            // Another stream may get a folder of this path.
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try origin.append(StreamFixture.part(13), wall: Self.now)
            try origin.finish()
            #expect(try Self.names(folder).isEmpty)
            #expect(await origin.respond(to: "live.m3u8") == .refused(.notFound))
            try origin.remove()
        }
    }

    @Test("a part that is being written while the files are removed leaves no file behind", .timeLimit(.minutes(3)))
    func removedWhileWriting() async throws {
        for _ in 0..<10 {
            try await Self.withFolder { folder in
                let (asked, continuation) = AsyncStream<Void>.makeStream()
                let origin = try Self.origin(.folder(folder)) {
                    continuation.yield()
                    return Self.now
                }
                let writing = Task.detached {
                    for number in 0...40 { try? origin.append(StreamFixture.part(number), wall: Self.now) }
                }
                for await _ in asked.dropFirst(10) { break }
                try origin.remove()
                await writing.value
                #expect(!FileManager.default.fileExists(atPath: folder))
            }
        }
    }

    #if os(Linux)
    @Test("a folder that cannot be removed is an error")
    func notRemovable() throws {
        let origin = HLSOrigin(.lowLatency, in: .folder("/proc/self/fdinfo")) { Self.now }
        #expect(throws: (any Error).self) { try origin.remove() }
    }
    #endif

    private static func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "confab-origin-\(UUID())").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await body(folder)
    }
}
