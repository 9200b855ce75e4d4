import Confab
import TestSupport
import Testing

@testable import AppModel

/// A camera that starts and stops when a test says so.
private actor SlowCamera: CameraDevice {
    /// What the driver asked, and for what a test waits.
    private(set) var log: [CameraMachine.Operation] = []
    private var results: [Bool] = []
    private var held: CheckedContinuation<Bool, Never>?
    private(set) var isOverlapping = false
    private let only: CameraFacing?

    init(only: CameraFacing? = nil) { self.only = only }

    private func begin(_ operation: CameraMachine.Operation) async -> Bool {
        if held != nil { isOverlapping = true }
        log.append(operation)
        return await withCheckedContinuation { held = $0 }
    }

    func run(
        _ request: CameraRequest, _ facing: CameraFacing
    ) async throws(ConfabError) -> (size: VideoSize, used: CameraFacing) {
        guard await begin(.run(request, facing)) else { throw ConfabError(.mediaFailed, "It is broken.") }
        return (VideoSize(width: request.width, height: request.height), only ?? facing)
    }

    func pause() async { _ = await begin(.pause) }

    /// Waits for the next operation, and ends it.
    func finish(_ expected: CameraMachine.Operation, _ isSuccess: Bool = true) async throws {
        while held == nil {
            try Task.checkCancellation()
            await Task.yield()
        }
        #expect(log.last == expected)
        held?.resume(returning: isSuccess)
        held = nil
    }
}

@Suite(.timeLimit(.minutes(3))) struct CameraTests {
    private let small = CameraRequest(width: 352, height: 288, frameRate: 30)
    private let large = CameraRequest(width: 1280, height: 720, frameRate: 30)

    // MARK: The machine

    /// A camera that runs.
    private func running() -> CameraMachine {
        var machine = CameraMachine()
        machine.start(small)
        #expect(machine.next() == .run(small, .front))
        machine.ran(small, .front, used: .front)
        #expect(machine.next() == nil)
        return machine
    }

    @Test func oneOperationIsCarriedOutAtATime() {
        var machine = CameraMachine()
        #expect(machine.next() == nil, "it is off")
        machine.start(small)
        #expect(machine.next() == .run(small, .front))
        machine.setEnabled(false)
        machine.flip()
        machine.change(to: large)
        #expect(machine.next() == nil, "it starts")
        machine.ran(small, .front, used: .front)
        #expect(machine.next() == .pause, "it was turned off while it started")
        machine.setEnabled(true)
        machine.paused()
        #expect(machine.next() == .run(large, .back), "the newest wishes count")
    }

    @Test func whatIsThereAlreadyIsNotDoneAgain() {
        var machine = running()
        machine.setEnabled(true)
        machine.change(to: small)
        #expect(machine.next() == nil)
        machine.flip()
        machine.flip()
        #expect(machine.next() == nil)
    }

    @Test func aCameraThatIsOffStaysOffWhenItIsChanged() {
        var machine = running()
        machine.setEnabled(false)
        #expect(machine.next() == .pause)
        machine.paused()
        machine.flip()
        machine.change(to: large)
        #expect(machine.next() == nil && machine.facing == .back)
        machine.setEnabled(true)
        #expect(machine.next() == .run(large, .back))
    }

    @Test func theCameraThatWorkedGoesOnIfTheOtherCannotBeStarted() {
        var machine = running()
        machine.flip()
        #expect(machine.next() == .run(small, .back))
        machine.failedToRun(small, .back)
        #expect(machine.facing == .front && machine.next() == .run(small, .front))
        machine.failedToRun(small, .front)
        #expect(machine.next() == nil, "once is enough")
        machine.setEnabled(true)
        #expect(machine.next() == .run(small, .front))
    }

    @Test func aDeviceWithOneCameraKeepsIt() {
        var machine = running()
        machine.flip()
        #expect(machine.next() == .run(small, .back))
        machine.ran(small, .back, used: .front)
        #expect(machine.facing == .front && machine.next() == nil)
    }

    @Test func aCameraThatIsTakenAwayIsNotStoppedUntilItIsGivenBack() {
        var machine = running()
        machine.interrupted(true)
        machine.setEnabled(false)
        #expect(machine.next() == nil, "a session that is stopped does not tell the end of the interruption")
        machine.interrupted(false)
        #expect(machine.next() == .pause)
        machine.paused()
        machine.interrupted(true)
        machine.setEnabled(true)
        #expect(machine.next() == .run(small, .front))
    }

    @Test func theEndStopsACameraThatIsTakenAway() {
        var machine = running()
        machine.interrupted(true)
        machine.setEnabled(false)
        machine.stop()
        #expect(machine.next() == .pause)
        machine.paused()
        machine.setEnabled(true)
        machine.change(to: large)
        #expect(machine.next() == nil, "it does not begin again")
    }

    @Test func aFailureIsFollowedByAStop() {
        var machine = CameraMachine()
        machine.start(small)
        #expect(machine.next() == .run(small, .front))
        machine.failedToRun(small, .front)
        machine.setEnabled(false)
        #expect(machine.next() == .pause, "nobody knows what the camera does")
    }

    /// After any wishes, the camera does what is wanted, one operation after the other.
    @Test func afterAnyWishesTheCameraDoesWhatIsWanted() {
        let seed = UInt64.random(in: 0 ... .max)
        print("wishes of the camera: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<2000 {
            var machine = CameraMachine()
            machine.start(small)
            var (isOn, isInterrupted, underway) = (true, false, CameraMachine.Operation?.none)
            var done: CameraMachine.Operation? = .pause
            func finish() {
                switch underway {
                case .run(let request, let facing)?: machine.ran(request, facing, used: facing)
                case .pause?: machine.paused()
                case nil: return
                }
                (done, underway) = (underway, nil)
            }
            for _ in 0..<20 {
                switch Int.random(in: 0..<6, using: &random) {
                case 0: machine.flip()
                case 1: machine.change(to: Bool.random(using: &random) ? small : large)
                case 2:
                    isOn.toggle()
                    machine.setEnabled(isOn)
                case 3:
                    isInterrupted.toggle()
                    machine.interrupted(isInterrupted)
                case 4: finish()
                default:
                    let next = machine.next()
                    #expect(next == nil || underway == nil, "two at a time, seed \(seed)")
                    underway = next ?? underway
                }
            }
            machine.interrupted(false)
            for _ in 0..<4 {
                finish()
                underway = machine.next() ?? underway
            }
            #expect(underway == nil, "it settles, seed \(seed)")
            if case .run(_, let facing)? = done {
                #expect(isOn && facing == machine.facing, "seed \(seed)")
            } else {
                #expect(!isOn, "seed \(seed)")
            }
        }
    }

    @Test func theCameraOfADeviceLooksTheRightWayIfItCan() {
        #expect(CameraFacing.front.choose(from: [.back, .front]) == 1)
        #expect(CameraFacing.front.choose(from: [nil, .back]) == 0)
        #expect(CameraFacing.back.choose(from: [nil, .front, .back, .back]) == 2)
        #expect(CameraFacing.back.choose(from: []) == nil)
    }

    // MARK: The driver

    @Test func wishesThatArriveWhileTheCameraStartsDoNotOverlap() async throws {
        let camera = SlowCamera()
        let sizes = AsyncStream.makeStream(of: VideoSize.self)
        let driver = CameraDriver(camera) { sizes.continuation.yield($0) }
        async let start: Void = driver.start(small)
        while await camera.log.isEmpty { await Task.yield() }
        async let off: Void = driver.setEnabled(false)
        async let change: Void = driver.change(to: large)
        // Both wait for the start.
        while await driver.waitingCount < 2 { await Task.yield() }
        try await camera.finish(.run(small, .front))
        try await camera.finish(.pause)
        try await start
        try await change
        await off
        let flipped = try await driver.flip()
        #expect(flipped == .back, "it is off")
        async let on: Void = driver.setEnabled(true)
        try await camera.finish(.run(large, .back))
        await on
        async let stop: Void = driver.stop()
        try await camera.finish(.pause)
        await stop
        let isOverlapping = await camera.isOverlapping
        #expect(!isOverlapping)
        sizes.continuation.finish()
        var widths: [Int] = []
        for await size in sizes.stream { widths.append(size.width) }
        #expect(widths == [352, 1280])
    }

    @Test func aCameraThatCannotBeStartedIsStoppedAndSaysWhy() async throws {
        let camera = SlowCamera()
        let driver = CameraDriver(camera) { _ in }
        let (interruptions, interruption) = AsyncStream.makeStream(of: Bool.self)
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        interruption.onTermination = { _ in end.finish() }
        async let start: Void = driver.start(small, following: interruptions)
        try await camera.finish(.run(small, .front), false)
        try await camera.finish(.pause)
        do {
            try await start
            Issue.record("it started")
        } catch {
            #expect((error as? ConfabError)?.message == "It is broken.")
        }
        // Both end: nothing is followed, and nothing is reported.
        for await _ in ends {}
        for await _ in driver.changes {}
    }

    @Test func aCameraThatFailsAgainIsTriedAfterAnotherWish() async throws {
        let camera = SlowCamera()
        let driver = CameraDriver(camera) { _ in }
        async let start: Void = driver.start(small)
        try await camera.finish(.run(small, .front))
        try await start
        async let flip = driver.flip()
        try await camera.finish(.run(small, .back), false)
        try await camera.finish(.run(small, .front))
        let used = try await flip
        #expect(used == .front, "the old one continues")
    }

    @Test func thoseWhoWaitLearnWhyTheCameraFailed() async throws {
        let camera = SlowCamera()
        let driver = CameraDriver(camera) { _ in }
        async let start: Void = driver.start(small)
        try await camera.finish(.run(small, .front))
        try await start
        async let first: Void = driver.change(to: large)
        while await camera.log.count < 2 { await Task.yield() }
        async let second: Void = driver.change(to: large)
        while await driver.waitingCount < 1 { await Task.yield() }
        try await camera.finish(.run(large, .front), false)
        var reasons: [String?] = []
        do { try await first } catch { reasons.append((error as? ConfabError)?.message) }
        do { try await second } catch { reasons.append((error as? ConfabError)?.message) }
        #expect(reasons == ["It is broken.", "It is broken."])
    }

    @Test func aDeviceWithOneCameraTellsWhichOneItUses() async throws {
        let camera = SlowCamera(only: .back)
        let driver = CameraDriver(camera) { _ in }
        async let start: Void = driver.start(small)
        try await camera.finish(.run(small, .front))
        try await start
        async let flip = driver.flip()
        try await camera.finish(.run(small, .front))
        let used = try await flip
        #expect(used == .back)
    }

    @Test func anInterruptionReachesTheCameraBeforeItIsReported() async throws {
        let camera = SlowCamera()
        let driver = CameraDriver(camera) { _ in }
        let (interruptions, interruption) = AsyncStream.makeStream(of: Bool.self)
        async let start: Void = driver.start(small, following: interruptions)
        try await camera.finish(.run(small, .front))
        try await start
        var changes = driver.changes.makeAsyncIterator()
        interruption.yield(true)
        let taken = await changes.next()
        #expect(taken == .interrupted(true))
        await driver.setEnabled(false)
        let log = await camera.log
        #expect(log == [.run(small, .front)], "a session that is stopped does not tell the end of the interruption")
        interruption.yield(false)
        try await camera.finish(.pause)
        let given = await changes.next()
        #expect(given == .interrupted(false))
        await driver.stop()
        let end = await changes.next()
        #expect(end == nil)
    }
}
