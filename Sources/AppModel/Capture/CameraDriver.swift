import Confab

/// The cameras of a device, as the operating system provides them.
public protocol CameraDevice: Sendable {
    /// Starts capturing, or changes the size, the frame rate or the camera of a running capture.
    ///
    /// - Returns: the size being captured, and the camera in use.
    func run(
        _ request: CameraRequest, _ facing: CameraFacing
    ) async throws(ConfabError) -> (size: VideoSize, used: CameraFacing)
    /// Stops capturing and turns off the camera's light.
    func pause() async
}

/// Performs the operations chosen by ``CameraMachine``. Requests may arrive while an operation is running.
public actor CameraDriver {
    /// Reports when the system interrupts the camera, and when an interruption ends. Only one task may read this
    /// stream.
    public nonisolated let changes: AsyncStream<CaptureChange>
    private let change: AsyncStream<CaptureChange>.Continuation
    private let device: any CameraDevice
    private var following: Task<Void, Never>?
    private var machine = CameraMachine()
    private let captured: @Sendable (VideoSize) -> Void
    private var isDriving = false
    private var failure: ConfabError?
    /// Callers waiting until the camera has reached the requested state. They are resumed with nil, or with the error
    /// if the camera failed.
    private var waiting: [CheckedContinuation<ConfabError?, Never>] = []
    var waitingCount: Int { waiting.count }

    /// - Parameter captured: called with the frame size each time the camera has started.
    public init(_ device: any CameraDevice, captured: @escaping @Sendable (VideoSize) -> Void) {
        (self.device, self.captured) = (device, captured)
        (changes, change) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(EngineRules.maxUnreadChanges))
    }

    /// Starts the camera, and handles the system's interruptions until ``stop()``. If the camera cannot be started,
    /// stops it, because it must not be released before it is stopped.
    ///
    /// - Parameter interruptions: true when the system takes the camera away from the app, false when it gives the
    /// camera back.
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

    /// Switches to the other camera, and returns the one in use afterwards.
    public func flip() async throws(ConfabError) -> CameraFacing {
        machine.flip()
        try await drive()
        return machine.facing
    }

    /// Turns the camera on or off. If it fails to start, the video stays black, which the user sees in their self-view.
    public func setEnabled(_ enabled: Bool) async {
        machine.setEnabled(enabled)
        try? await drive()
    }

    private func follow(_ isInterrupted: Bool) async {
        machine.interrupted(isInterrupted)
        try? await drive()
        // Report the interruption only after the machine has handled it. A reader of `changes` may turn the camera
        // off, and the machine does this differently during an interruption.
        change.yield(.interrupted(isInterrupted))
    }

    /// Stops the camera for good. Returns once it has stopped.
    public func stop() async {
        following?.cancel()
        following = nil
        change.finish()
        machine.stop()
        try? await drive()
    }

    /// Performs operations until none is left, or waits for the invocation that is already doing so.
    ///
    /// - Throws: the error of the last operation, if it failed.
    private func drive() async throws(ConfabError) {
        guard !isDriving else {
            // Take the error from the continuation, not from `failure`: by the time this resumes, another operation
            // may have changed it.
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
