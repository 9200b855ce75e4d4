import Signaling
import Testing
import Wire

@Suite struct SampleChecksTests {
    private static let start = Timestamp(milliseconds: 1_790_000_000_000)
    private var checks = SampleChecks(
        .init(interval: .seconds(10), timeout: .seconds(2), maxWaiting: 2, maxQuestions: 1))

    private func source(_ number: UInt64) -> SampleSource {
        SampleSource(
            match: MatchID(high: 0, low: number), person: IdentityID(high: 0, low: number), session: SessionID("1_a")!)
    }

    private func ask(_ number: UInt64, about person: UInt64, _ byte: UInt8) -> SampleChecks.Effect {
        .ask(.init(number: number, source: source(person), jpeg: [byte]))
    }

    @Test mutating func oneSampleIsJudgedAfterTheOther() {
        let now = Self.start
        #expect(checks.handle(.sample(source(1), [1]), now: now) == [], "the program has not started")
        #expect(checks.handle(.available(true), now: now) == [ask(1, about: 1, 1)])
        #expect(checks.handle(.sample(source(2), [2]), now: now) == [])
        let effects = checks.handle(.answered(1, .judged(.init(.blur))), now: now)
        #expect(effects == [.count(.blur), .judged(source(1), .init(.blur)), ask(2, about: 2, 2)])
        #expect(checks.handle(.answered(1, .judged(.init(.end))), now: now) == [], "it was answered before")
    }

    @Test mutating func anAnswerThatIsLateIsNotWaitedForAndDoesNothing() {
        let now = Self.start
        _ = checks.handle(.available(true), now: now)
        _ = checks.handle(.sample(source(1), [1]), now: now)
        _ = checks.handle(.sample(source(2), [2]), now: now)
        #expect(checks.nextTimeout == now + .seconds(2))
        #expect(checks.handleTimeout(now: now + .seconds(1)) == [])
        #expect(checks.handleTimeout(now: now + .seconds(2)) == [.abandon(1), .count(.late), ask(2, about: 2, 2)])
        #expect(checks.handle(.answered(1, .judged(.init(.end))), now: now + .seconds(3)) == [])
    }

    @Test mutating func theOldestSampleMakesPlaceForTheNewestOne() {
        let now = Self.start
        for number: UInt64 in 1...2 { _ = checks.handle(.sample(source(number), [UInt8(number)]), now: now) }
        #expect(checks.handle(.sample(source(3), [3]), now: now) == [.count(.dropped)])
        #expect(checks.handle(.available(true), now: now) == [ask(1, about: 2, 2)])
    }

    @Test mutating func aNewerSampleOfTheSameCameraReplacesTheOneThatWaits() {
        let now = Self.start
        _ = checks.handle(.sample(source(1), [1]), now: now)
        #expect(checks.handle(.sample(source(1), [2]), now: now) == [.count(.dropped)])
        #expect(checks.handle(.available(true), now: now) == [ask(1, about: 1, 2)])
    }

    @Test mutating func verdictsAboutACameraComeInTheOrderOfItsSamples() {
        var checks = SampleChecks(
            .init(interval: .seconds(10), timeout: .seconds(2), maxWaiting: 2, maxQuestions: 4))
        let now = Self.start
        _ = checks.handle(.available(true), now: now)
        #expect(checks.handle(.sample(source(1), [1]), now: now) == [ask(1, about: 1, 1)])
        #expect(checks.handle(.sample(source(1), [2]), now: now) == [], "the first one is still judged")
        #expect(checks.handle(.sample(source(2), [3]), now: now) == [ask(2, about: 2, 3)])
        let effects = checks.handle(.answered(1, .invalid), now: now)
        #expect(effects == [.count(.invalid), ask(3, about: 1, 2)])
    }

    @Test mutating func aProgramThatEndsFailsItsQuestionAndGetsTheOthersLater() {
        let now = Self.start
        _ = checks.handle(.available(true), now: now)
        _ = checks.handle(.sample(source(1), [1]), now: now)
        _ = checks.handle(.sample(source(2), [2]), now: now)
        #expect(checks.handle(.available(false), now: now) == [.count(.failed)])
        #expect(checks.handle(.available(true), now: now) == [ask(2, about: 2, 2)])
    }

    @Test(arguments: [(10, 20), (600, 60)])
    func aSampleThatNothingJudgesIsForgotten(_ interval: Int, _ wait: Int) {
        var checks = SampleChecks(
            .init(interval: .seconds(interval), timeout: .seconds(2), maxWaiting: 2, maxQuestions: 1))
        let (now, forgottenAt) = (Self.start, Self.start + .seconds(wait))
        _ = checks.handle(.sample(source(1), [1]), now: now)
        _ = checks.handle(.sample(source(2), [2]), now: now + .seconds(5))
        #expect(checks.nextTimeout == forgottenAt)
        #expect(checks.handleTimeout(now: forgottenAt) == [.count(.dropped)])
        // A newer sample of the same camera waits from its own time on.
        #expect(checks.handle(.sample(source(2), [3]), now: forgottenAt) == [.count(.dropped)])
        #expect(checks.nextTimeout == forgottenAt + .seconds(wait))
        let effects = checks.handle(.available(true), now: forgottenAt + .seconds(wait))
        #expect(effects == [.count(.dropped)], "it is not judged either")
        #expect(checks.nextTimeout == nil)
    }

    @Test mutating func aCameraSendsAtMostTwoSamplesInAnInterval() throws {
        let now = Self.start
        try checks.admit(source(1), now: now)
        try checks.admit(source(2), now: now)
        let error = #expect(throws: WireError.self) { try checks.admit(source(1), now: now + .seconds(4)) }
        #expect(error?.code == .rateLimited && error?.retryAfter == .seconds(1))
        try checks.admit(source(1), now: now + .seconds(5))
    }
}

@Suite struct SampleImageTests {
    /// A JPEG image of this size, with the headers only.
    static func jpeg(width: Int, height: Int) -> [UInt8] {
        let size = [UInt8(height >> 8), UInt8(height & 255), UInt8(width >> 8), UInt8(width & 255)]
        return [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0x4A, 0x46, 0xFF, 0xC0, 0, 11, 8] + size
            + [1, 1, 0x11, 0, 0xFF, 0xDA, 0, 2, 0xFF, 0xD9]
    }

    @Test func theSizeIsReadFromTheHeaders() throws {
        let image = try SampleImage(Self.jpeg(width: 320, height: 240))
        #expect(image.width == 320 && image.height == 240)
    }

    @Test func otherBytesAndLargeImagesAreRefused() {
        let good = Self.jpeg(width: 320, height: 240)
        let bad: [[UInt8]] = [
            [], [0xFF], [0xFF, 0xD8, 0xFF, 0xD9], Array("GIF89a".utf8), Array(good.dropLast()),
            Self.jpeg(width: 20_000, height: 240), Self.jpeg(width: 320, height: 0),
        ]
        for bytes in bad { #expect(throws: WireError.self, "\(bytes)") { try SampleImage(bytes) } }
        // Cut anywhere, or with any byte changed, it is accepted or refused, but never traps.
        for index in good.indices {
            _ = try? SampleImage(Array(good[..<index]) + [0xFF, 0xD9])
            for value: UInt8 in [0, 0xC4, 0xFF] {
                var changed = good
                changed[index] = value
                _ = try? SampleImage(changed)
            }
        }
    }
}
