import Foundation
import MediaFiles
import TestSupport
import Testing
import Wire

@testable import Broadcasting

@Suite("Requests for a stream", .enabled(if: TestMedia.hasFFmpeg, "ffmpeg is not installed"))
struct HLSOriginTests {
    private static let now = Timestamp(milliseconds: 0)

    @Test("a request waits for its part, and is refused when it is too far ahead or nothing comes")
    func waits() throws {
        let items = try TestMedia.items(try TestMedia.fragments(seconds: 1), .lowLatency)
        var stream = HLSStream(.lowLatency)
        var reloads = BlockingReloads(maxHeld: 2)
        for case .initialization(let initialization) in items { _ = stream.begin(initialization, at: Self.now) }
        // Four parts in each segment.
        let parts = (0..<6).map { number in
            MediaPart(
                bytes: [1], start: .milliseconds(480 * number), duration: .milliseconds(480),
                isIndependent: number % 4 == 0, startsSegment: number % 4 == 0)
        }
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
}
