import Signaling
import Synchronization
import Wire

/// The time, for what is sent and tried again.
struct PushClock: Sendable {
    var now: @Sendable () -> Timestamp
    var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
}

/// One notice on its way to one person's devices.
///
/// When something newer is to be said of the same call, this is superseded: what is under way ends, nothing is tried
/// again, and the newer one goes out after it. So a device never hears of the end of a call before its beginning.
final class PushJob: Sendable {
    let identity: IdentityID
    let notice: PushNotice
    /// Settled when nothing of it is under way any more; for the one that comes after it.
    let finished = Once<Bool>()

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

    /// Returns early when superseded or cancelled.
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
