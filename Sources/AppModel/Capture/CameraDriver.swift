import Confab

/// The cameras of a device, as a system offers them.
public protocol CameraDevice: Sendable {
    /// Captures from now on.
    ///
    /// - Returns: the size that is captured, and the camera that is used.
    func run(
        _ request: CameraRequest, _ facing: CameraFacing
    ) async throws(ConfabError) -> (size: VideoSize, used: CameraFacing)
    /// Stops capturing. The camera's light goes out.
    func pause() async
}

/// Carries out what ``CameraMachine`` decides. Wishes may arrive while an operation is under way.
public actor CameraDriver {
    private let device: any CameraDevice
    private var machine = CameraMachine()
    private let captured: @Sendable (VideoSize) -> Void
    private var isDriving = false
    private var failure: ConfabError?
    /// Those who wait until the camera does what is wanted.
    private var waiting: [CheckedContinuation<Void, Never>] = []
    var waitingCount: Int { waiting.count }

    /// - Parameter captured: told the size of the pictures each time that the camera was started.
    public init(_ device: any CameraDevice, captured: @escaping @Sendable (VideoSize) -> Void) {
        (self.device, self.captured) = (device, captured)
    }

    public func start(_ request: CameraRequest) async throws(ConfabError) {
        machine.start(request)
        try await drive()
    }

    public func change(to request: CameraRequest) async throws(ConfabError) {
        machine.change(to: request)
        try await drive()
    }

    /// Uses the other camera, and returns the one that is used then.
    public func flip() async throws(ConfabError) -> CameraFacing {
        machine.flip()
        try await drive()
        return machine.facing
    }

    /// Failing to start leaves the video black. The person sees it in the own picture.
    public func setEnabled(_ enabled: Bool) async {
        machine.setEnabled(enabled)
        try? await drive()
    }

    public func interrupted(_ isInterrupted: Bool) async {
        machine.interrupted(isInterrupted)
        try? await drive()
    }

    /// Follows what the system does to the camera, and tells it, until there is nothing more.
    public func follow(_ interruptions: AsyncStream<Bool>, tell: @Sendable (CaptureChange) -> Void) async {
        for await isInterrupted in interruptions {
            // Before it is told, because a camera that is turned off next behaves otherwise.
            await interrupted(isInterrupted)
            tell(.interrupted(isInterrupted))
        }
    }

    /// Returns when the camera is stopped.
    public func stop() async {
        machine.stop()
        try? await drive()
    }

    /// Carries out operations until nothing is left to do, or waits for the one who does.
    ///
    /// - Throws: why the last operation failed.
    private func drive() async throws(ConfabError) {
        if isDriving {
            await withCheckedContinuation { waiting.append($0) }
        } else {
            isDriving = true
            failure = nil
            while let operation = machine.next() { await carryOut(operation) }
            isDriving = false
            for waiter in waiting { waiter.resume() }
            waiting = []
        }
        if let failure { throw failure }
    }

    private func carryOut(_ operation: CameraMachine.Operation) async {
        switch operation {
        case .pause:
            await device.pause()
            machine.paused()
            failure = nil
        case .run(let request, let facing):
            do throws(ConfabError) {
                let (size, used) = try await device.run(request, facing)
                machine.ran(request, facing, used: used)
                captured(size)
                failure = nil
            } catch {
                machine.failedToRun(request, facing)
                failure = error
            }
        }
    }
}
