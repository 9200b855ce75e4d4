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
    /// What the system does to the camera. There is one reader.
    public nonisolated let changes: AsyncStream<CaptureChange>
    private let change: AsyncStream<CaptureChange>.Continuation
    private let device: any CameraDevice
    private var following: Task<Void, Never>?
    private var machine = CameraMachine()
    private let captured: @Sendable (VideoSize) -> Void
    private var isDriving = false
    private var failure: ConfabError?
    /// Those who wait until the camera does what is wanted, and are told why it does not.
    private var waiting: [CheckedContinuation<ConfabError?, Never>] = []
    var waitingCount: Int { waiting.count }

    /// - Parameter captured: told the size of the pictures each time that the camera was started.
    public init(_ device: any CameraDevice, captured: @escaping @Sendable (VideoSize) -> Void) {
        (self.device, self.captured) = (device, captured)
        (changes, change) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(EngineRules.maxUnreadChanges))
    }

    /// Starts the camera, and follows what the system does to it until ``stop()``. A camera that cannot be started is stopped: it
    /// must not be released before that.
    ///
    /// - Parameter interruptions: whether the system has taken the camera away.
    public func start(
        _ request: CameraRequest, following interruptions: AsyncStream<Bool> = AsyncStream { $0.finish() }
    ) async throws(ConfabError) {
        following = Task { [weak self] in
            for await isInterrupted in interruptions { await self?.follow(isInterrupted) }
        }
        machine.start(request)
        do throws(ConfabError) {
            try await drive()
        } catch {
            await stop()
            throw error
        }
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

    private func follow(_ isInterrupted: Bool) async {
        machine.interrupted(isInterrupted)
        try? await drive()
        // Told afterwards, because a camera that is turned off next behaves otherwise.
        change.yield(.interrupted(isInterrupted))
    }

    /// Returns when the camera is stopped.
    public func stop() async {
        following?.cancel()
        following = nil
        change.finish()
        machine.stop()
        try? await drive()
    }

    /// Carries out operations until nothing is left to do, or waits for the one who does.
    ///
    /// - Throws: why the last operation failed.
    private func drive() async throws(ConfabError) {
        guard !isDriving else {
            // The reason comes with the wake-up: before this goes on, another operation may have begun and ended.
            if let reason = await withCheckedContinuation({ waiting.append($0) }) { throw reason }
            return
        }
        isDriving = true
        failure = nil
        while let operation = machine.next() { await carryOut(operation) }
        isDriving = false
        let (reason, waiters) = (failure, waiting)
        waiting = []
        for waiter in waiters { waiter.resume(returning: reason) }
        if let reason { throw reason }
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
