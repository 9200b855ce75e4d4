@testable import AppModel
import Testing

@Suite struct CaptureTests {
    private func format(
        _ width: Int, _ height: Int, _ rates: ClosedRange<Double> = 1...30, isNV12: Bool = true
    ) -> CameraFormat {
        CameraFormat(width: width, height: height, frameRates: [rates], isNV12: isNV12)
    }

    private func request(_ width: Int, _ height: Int, _ rate: Int) -> CameraRequest {
        CameraRequest(width: width, height: height, frameRate: rate)
    }

    @Test func thePresetsAreThoseOfPerchRTC() {
        let sizes = PictureSize.allCases.map { "\($0.width)x\($0.height)" }
        #expect(sizes == ["352x288", "480x360", "640x480", "960x540", "1280x720", "1280x960"])
        #expect(PictureSize.usual == .size640x480)
    }

    @Test(arguments: [
        (ThermalState.nominal, false, 30), (.fair, false, 30), (.serious, false, 20), (.critical, false, 15),
        (.nominal, true, 20), (.serious, true, 15), (.critical, true, 15),
    ])
    func aHotDeviceCapturesFewerFrames(thermal: ThermalState, isLowPower: Bool, rate: Int) {
        var conditions = CameraConditions()
        (conditions.thermal, conditions.isLowPower) = (thermal, isLowPower)
        #expect(CameraRequest(size: .size1280x720, conditions: conditions) == request(1280, 720, rate))
    }

    @Test(arguments: [(1, false, 640), (2, false, 352), (5, false, 352), (2, true, 640)])
    func aRoomSeesTheSmallestSizeUnlessThereAreLayers(remotes: Int, hasLayers: Bool, width: Int) {
        var conditions = CameraConditions()
        (conditions.remotes, conditions.hasLayers) = (remotes, hasLayers)
        #expect(CameraRequest(size: .usual, conditions: conditions).width == width)
    }

    @Test func theSmallestFormatThatIsLargeEnoughIsChosen() {
        let formats = [format(192, 144), format(1280, 720), format(640, 480), format(640, 360), format(1920, 1080)]
        #expect(request(640, 480, 30).choose(from: formats) == .init(index: 2, frameRate: 30))
        #expect(request(480, 360, 30).choose(from: formats) == .init(index: 3, frameRate: 30))
        #expect(request(1280, 960, 30).choose(from: formats) == .init(index: 4, frameRate: 30))
    }

    @Test func ofEqualsTheOneInNV12IsChosen() {
        let formats = [format(640, 480, isNV12: false), format(640, 480), format(640, 480)]
        #expect(request(640, 480, 30).choose(from: formats)?.index == 1)
    }

    @Test func theRangeOfRatesContainsTheWantedOne() {
        let formats = [format(640, 480, 60...120), format(1280, 720, 1...30)]
        #expect(request(640, 480, 30).choose(from: formats) == .init(index: 1, frameRate: 30))
    }

    @Test func withoutALargeEnoughFormatTheLargestIsChosen() {
        let formats = [format(352, 288), format(640, 480), format(480, 360)]
        #expect(request(1280, 720, 30).choose(from: formats) == .init(index: 1, frameRate: 30))
    }

    @Test func withoutTheRateTheNearestIsChosen() {
        let formats = [format(640, 480, 60...120), format(640, 480, 1...24.5)]
        #expect(request(640, 480, 30).choose(from: formats) == .init(index: 1, frameRate: 24))
    }

    @Test func withoutFormatsThereIsNoCamera() {
        #expect(request(640, 480, 30).choose(from: []) == nil)
        let empty = CameraFormat(width: 640, height: 480, frameRates: [], isNV12: true)
        #expect(request(640, 480, 30).choose(from: [empty]) == nil)
    }

    // MARK: The limiter

    /// Feeds timestamps in milliseconds, and returns those that were accepted.
    private func accepted(_ times: some Sequence<Int64>) -> [Int64] {
        var limiter = FrameLimiter()
        return times.filter { limiter.accepts($0 * 1_000_000) }
    }

    @Test func ordinaryFramesAreAllAccepted() {
        let times = (0..<100).map { Int64($0) * 5 }
        #expect(accepted(times) == times, "200 frames a second is the limit itself")
    }

    @Test func twoFastFramesAreTolerated() {
        #expect(accepted([0, 33, 34, 35, 66, 67, 68, 100]) == [0, 33, 34, 35, 66, 67, 68, 100])
    }

    @Test func ofMoreFastFramesOneInFourIsAccepted() {
        #expect(accepted(0...14) == [0, 1, 2, 6, 10, 14])
        #expect(accepted([0, 1, 2, 3, 4, 40, 41, 42, 43]) == [0, 1, 2, 40, 41, 42])
    }

    @Test func timestampsThatStandStillOrGoBackAreFast() {
        #expect(accepted([5, 5, 5, 5, 5, 5, 5]) == [5, 5, 5, 5])
        var limiter = FrameLimiter()
        let extremes = [Int64.max, .min, .max, .min].map { limiter.accepts($0) }
        #expect(extremes == [true, true, true, true])
    }

    // MARK: Frames of an application

    @Test func framesOfAnApplicationAreSentUntilTheyArePausedOrOver() {
        var frames = CustomFrameInput()
        #expect(frames.received(uptime: 1.5) == .send(1_500_000_000))
        frames.isPaused = true
        #expect(frames.received(uptime: 2) == .drop, "the application may go on")
        frames.isPaused = false
        #expect(frames.received(uptime: 3) == .send(3_000_000_000))
        #expect(frames.received(uptime: .infinity) == .refuse)
        frames.stop()
        #expect(frames.received(uptime: 4) == .refuse)
        frames.isPaused = true
        #expect(frames.received(uptime: 4) == .refuse, "it is over, and not paused")
    }
}
