import Signaling
import Synchronization
import Wire

/// The current time, and a way to wait, for sending push notifications. Tests replace both.
struct PushClock: Sendable {
    var now: @Sendable () -> Timestamp
    var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
}

/// The delivery of one notice to one person's devices.
///
/// A newer notice about the same call supersedes this job: running requests finish, nothing is retried, and the newer
/// notice is sent afterwards. A device is therefore never notified of the end of a call before its start.
final class PushJob: Sendable {
    let identity: IdentityID
    let notice: PushNotice
    /// Set when all requests of this job have finished. The next job for the same call and person waits for it.
    let finished = Once<Bool>()

    /// The pauses in progress, and whether the job is superseded.
    private struct State {
        var isSuperseded = false
        var pauses: [UInt64: Task<Void, Never>] = [:]
        var lastPause: UInt64 = 0
    }

    private let state = Mutex(State())

    init(_ notice: PushNotice, to identity: IdentityID) { (self.notice, self.identity) = (notice, identity) }

    var isSuperseded: Bool { state.withLock { $0.isSuperseded } }

    func supersede() {
        let pauses = state.withLock { state in
            state.isSuperseded = true
            return Array(state.pauses.values)
        }
        for pause in pauses { pause.cancel() }
    }

    /// Sleeps for a duration. Returns early if the job is superseded or the task is canceled.
    func pause(_ duration: Duration, _ clock: PushClock) async {
        let pause = Task { _ = try? await clock.pause(duration) }
        let number = state.withLock { state -> UInt64? in
            guard !state.isSuperseded else { return nil }
            state.lastPause += 1
            state.pauses[state.lastPause] = pause
            return state.lastPause
        }
        guard let number else { return pause.cancel() }
        await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        _ = state.withLock { $0.pauses.removeValue(forKey: number) }
    }
}
