import Foundation
import Layout
import MediaFiles
import TestSupport
import Testing

@testable import Composing

@Suite("A composed crowd", .enabled(if: TestArchive.hasFFmpeg, "ffmpeg is not installed"))
struct ComposedCrowdTests {
    /// `CONFAB_COMPOSE_SECONDS` sets the length of the archive. The long form has ten minutes.
    private static let seconds =
        ProcessInfo.processInfo.environment["CONFAB_COMPOSE_SECONDS"].flatMap { Int($0) }.map { max(4, $0) } ?? 12
    private static let people = 24

    /// People join, leave, turn their video off, share a screen, and the layout and classes change.
    private static func randomLog(_ random: inout SeededGenerator) -> [(Int64, ArchiveEvent)] {
        var lines: [(Int64, ArchiveEvent)] = []
        // Most join at first, so that there are more than can be drawn.
        for index in 0..<people {
            let time = Int64.random(in: 0...Int64(seconds * 150), using: &random)
            lines += [
                (time, ComposePlanTests.stream("s\(index)", isScreen: index == 5)),
                (time, ComposePlanTests.file("s\(index)")),
            ]
        }
        for _ in 0..<max(10, seconds) {
            let time = Int64.random(in: Int64(seconds * 150)...Int64(seconds * 950), using: &random)
            let id = "s\(Int.random(in: 0..<people, using: &random))"
            switch Int.random(in: 0..<5, using: &random) {
            case 0: lines.append((time, .gone(stream: id)))
            case 1: lines.append((time, .video(stream: id, isOn: false)))
            case 2: lines.append((time, .video(stream: id, isOn: true)))
            case 3: lines.append((time, .classes(stream: id, ["focus", "full"])))
            default:
                let kinds = ComposedLayout.Kind.allCases.map(\.rawValue)
                lines.append((time, .layout(ArchiveLayout(kinds.randomElement(using: &random) ?? "pip"))))
            }
        }
        lines.sort { $0.0 < $1.0 }
        return lines + [(Int64(seconds * 1_000), .end(reason: ""))]
    }

    @Test("at each change, every cell shows the stream that the layout puts there")
    func crowd() async throws {
        let seed = UInt64.random(in: 0...(.max))
        var random = SeededGenerator(seed: seed)
        let log = ComposePlanTests.log(Self.randomLog(&random))
        try await TestArchive.with { archive in
            for index in 0..<Self.people {
                try await archive.make(
                    "s\(index).webm", TestArchive.brightness(index), size: "80x60", rate: 5,
                    seconds: Double(Self.seconds))
            }
            var options = ComposeOptions()
            options.hasAudio = false
            let result = try await archive.compose(log, options)
            let plan = ComposePlan(log, facts: Self.facts)
            let pictures = try await archive.pictures()
            #expect(result.frames == Self.seconds * 25 && pictures.count == Self.seconds * 25, "seed \(seed)")
            for chunk in plan.chunks {
                #expect(chunk.sources.count <= ComposedLayout.maxDrawn, "seed \(seed)")
                for frame in [chunk.frames.lowerBound, chunk.frames.upperBound - 1] {
                    Self.check(chunk, pictures, frame, "seed \(seed)")
                }
            }
            print("24 people: \(plan.chunks.count) chunks measured with seed \(seed)")
        }
    }

    private static let facts = Dictionary(
        uniqueKeysWithValues: (0..<people).map { ("s\($0).webm", SourceFacts(hasVideo: true, hasAudio: false)) })

    private static func check(_ chunk: ComposedChunk, _ pictures: ComposedPictures, _ frame: Int, _ seed: Comment) {
        for (index, source) in chunk.sources.enumerated() {
            let cell = source.cell
            let (x, y) = (cell.x + cell.width / 2, cell.y + cell.height / 2)
            // The center of a large cell may be covered by one that is painted later.
            let isCovered = chunk.sources[(index + 1)...].contains {
                ($0.cell.x..<$0.cell.x + $0.cell.width).contains(x)
                    && ($0.cell.y..<$0.cell.y + $0.cell.height).contains(y)
            }
            guard !isCovered, let number = Int(cell.id.dropFirst()) else { continue }
            #expect(
                pictures.shows(TestArchive.brightness(number), frame, x, y),
                "\(seed.rawValue): frame \(frame), \(cell) shows \(pictures.brightness(frame, x, y))")
        }
    }
}
