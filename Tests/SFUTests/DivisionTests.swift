import RTC
import TestSupport
import Testing

@testable import SFU

/// How a subscriber's bitrate is divided among its videos.
@Suite("Division of a subscriber's bitrate")
struct DivisionTests {
    /// A video with steps of these bitrates in kilobits per second.
    struct Video: Sendable {
        var steps: [Int64]
        var current: Int?
        var rank = VideoRequest.Rank()

        init(_ steps: [Int64], current: Int? = nil, speaks: Bool = false, area: Int = 0, priority: Int = 0) {
            (self.steps, self.current) = (steps, current)
            rank = VideoRequest.Rank(priority: priority, isSpeaking: speaks, area: area)
        }
    }

    /// Returns the chosen step of each video, in their order.
    private func divide(
        _ kilobits: Int64, _ videos: [Video], growth: Int64? = nil, resumesOnly: Bool = false,
        tolerance: Double = VideoGrowth.usualTolerance, floor: Int64 = 0, resumesOne: Bool = true
    ) -> [Int?] {
        var steps: [LayerOption] = []
        var demands: [VideoRequest] = []
        for (slot, video) in videos.enumerated() {
            let first = steps.count
            for (layer, bitrate) in video.steps.enumerated() {
                steps.append(LayerOption(layer: layer, temporalLayer: 255, bitrate: .kilobits(bitrate)))
            }
            demands.append(
                VideoRequest(
                    slot: slot, steps: first..<steps.count, current: video.current.map { $0 + first },
                    rank: video.rank))
        }
        let growth = VideoGrowth(
            limit: growth.map { .kilobits($0) }, resumesOnly: resumesOnly, resumesOne: resumesOne, tolerance: tolerance)
        Allocation.distribute(
            .kilobits(kilobits), among: &demands, steps, floor: .kilobits(floor), growth: growth)
        var choices: [Int?] = Array(repeating: nil, count: videos.count)
        for demand in demands { choices[demand.slot] = demand.choice.map { $0 - demand.steps.lowerBound } }
        return choices
    }

    private static let three: [Int64] = [100, 300, 900]

    @Test(
        "one video gets the best step that fits with some headroom",
        arguments: [
            (0, nil), (109, nil), (111, 0), (319, 0), (330, 1), (959, 1), (1000, 2), (100_000, 2),
        ] as [(Int64, Int?)])
    func one(_ budget: Int64, _ expected: Int?) {
        #expect(divide(budget, [Video(Self.three)]) == [expected])
    }

    @Test(
        "what is sent now may stay a little below its bitrate",
        arguments: [
            (890, 2, 2), (860, 2, 2), (850, 2, 1), (290, 1, 1), (280, 1, 0), (96, 0, 0), (94, 0, nil), (950, 1, 1),
        ] as [(Int64, Int, Int?)])
    func stays(_ budget: Int64, _ current: Int, _ expected: Int?) {
        #expect(divide(budget, [Video(Self.three, current: current)]) == [expected])
    }

    @Test(
        "every video gets its lowest layer before any gets a higher one, and those without focus share the rest in turn"
    )
    func shared() {
        let videos = [Video(Self.three), Video(Self.three), Video(Self.three)]
        #expect(divide(335, videos) == [0, 0, 0])
        #expect(divide(600, videos) == [1, 0, 0])
        #expect(divide(1000, videos) == [1, 1, 1])
        #expect(divide(3000, videos) == [2, 2, 2])
    }

    @Test("videos that do not fit are paused, the smallest picture first")
    func paused() {
        let videos = [Video(Self.three, area: 10), Video(Self.three, area: 30), Video(Self.three, area: 20)]
        #expect(divide(330, videos) == [0, 0, 0])
        #expect(divide(230, videos) == [nil, 0, 0])
        #expect(divide(115, videos) == [nil, 0, nil])
        #expect(divide(50, videos) == [nil, nil, nil])
    }

    @Test("a large picture moves rather than a small one of the active speaker, who is heard")
    func large() {
        let videos = [Video(Self.three, speaks: true, area: 57_600), Video(Self.three, area: 230_400)]
        #expect(divide(115, videos) == [nil, 0])
        #expect(divide(230, videos) == [0, 0])
        #expect(divide(430, videos) == [1, 0], "the speaker becomes sharp first")
        #expect(divide(115, [Video(Self.three, speaks: true, area: 10), Video(Self.three, area: 11)]) == [0, nil])
        #expect(divide(115, [Video(Self.three, area: 10, priority: 1), Video(Self.three, area: 99)]) == [0, nil])
    }

    @Test("one video is not paused below what the path has carried lately")
    func floor() {
        let videos = [Video(Self.three, current: 0, area: 10), Video(Self.three, current: 0, area: 90)]
        #expect(divide(60, videos) == [nil, nil])
        #expect(divide(60, videos, floor: 100) == [nil, 0])
        #expect(divide(60, videos, floor: 90) == [nil, nil])
        #expect(divide(60, videos, floor: 900) == [nil, 0], "it is for one only, and for its smallest step")
        #expect(divide(150, videos, floor: 900) == [nil, 0])
        #expect(divide(60, [Video([700], current: 0, area: 90), videos[0]], floor: 200) == [nil, 0])
    }

    @Test("one paused video is resumed within the floor, even while nothing may grow")
    func resumed() {
        let videos = [Video(Self.three), Video(Self.three, area: 90)]
        #expect(divide(60, videos, growth: 0, floor: 120) == [nil, 0])
        #expect(divide(500, videos, growth: 0, floor: 120) == [nil, 0], "while a probe is verified")
        #expect(divide(60, videos, growth: 0, floor: 105) == [nil, nil])
        #expect(divide(60, videos, growth: 0, floor: 120, resumesOne: false) == [nil, nil])
    }

    @Test("the active speaker becomes sharp before larger pictures, and what is pinned before the speaker")
    func focus() {
        let videos = [
            Video(Self.three, area: 1000), Video(Self.three, speaks: true, area: 10),
            Video(Self.three, area: 10, priority: 1),
        ]
        #expect(divide(550, videos) == [0, 0, 1])
        #expect(divide(1200, videos) == [0, 0, 2])
        #expect(divide(1450, videos) == [0, 1, 2])
        #expect(divide(115, videos) == [nil, nil, 0])
    }

    @Test("a video without layers is sent or paused as a whole")
    func single() {
        #expect(divide(800, [Video([700]), Video(Self.three, area: 1)]) == [nil, 1])
        #expect(divide(1000, [Video([700], speaks: true), Video(Self.three, area: 1)]) == [0, 0])
    }

    @Test("a video without layers is not paused by a small fall of the estimate")
    func tolerance() {
        #expect(divide(600, [Video([700], current: 0)]) == [0])
        #expect(divide(520, [Video([700], current: 0)]) == [nil])
        #expect(divide(760, [Video([700])]) == [nil] && divide(780, [Video([700])]) == [0])
    }

    @Test("while the path shows no trouble, a small fall of the estimate lowers nothing")
    func calm() {
        let videos = [Video(Self.three, current: 1)]
        #expect(divide(260, videos) == [0])
        #expect(divide(260, videos, tolerance: VideoGrowth.calmTolerance) == [1])
        #expect(divide(240, videos, tolerance: VideoGrowth.calmTolerance) == [0])
    }

    @Test("while nothing may be raised, videos only fall")
    func held() {
        #expect(divide(5000, [Video(Self.three, current: 1), Video(Self.three)], growth: 0) == [1, nil])
        #expect(divide(500, [Video(Self.three, current: 2)], growth: 0) == [1])
    }

    @Test("while a path is being tried, videos grow step by step")
    func growth() {
        #expect(divide(5000, [Video(Self.three), Video(Self.three)], growth: 50) == [0, nil])
        #expect(divide(5000, [Video(Self.three, current: 0), Video(Self.three)], growth: 50) == [0, 0])
        let moving = [Video(Self.three, current: 0), Video(Self.three, current: 0), Video(Self.three, current: 0)]
        #expect(divide(5000, moving, growth: 50) == [1, 0, 0])
        #expect(divide(5000, moving, growth: 450) == [1, 1, 0])
        #expect(divide(5000, [Video(Self.three, current: 0, speaks: true)], growth: 50) == [1])
        #expect(divide(5000, [Video(Self.three, current: 0, speaks: true)], growth: 800) == [2])
        #expect(divide(5000, [Video(Self.three, current: 0), Video(Self.three)], resumesOnly: true) == [0, 0])
    }

    @Test("a choice is stable: dividing again with it changes nothing", arguments: 1...3 as ClosedRange<UInt64>)
    func stable(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            var videos = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                Video(Self.three, speaks: Bool.random(using: &random), area: Int.random(in: 0...3, using: &random))
            }
            let budget = Int64.random(in: 0...4000, using: &random)
            let first = divide(budget, videos)
            for (index, choice) in first.enumerated() { videos[index].current = choice }
            #expect(divide(budget, videos) == first, "seed \(seed): \(budget) kbit/s, \(videos)")
        }
    }
}
