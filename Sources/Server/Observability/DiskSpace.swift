import CSockets
import NIOPosix
import Synchronization

/// The free space of the data directory.
///
/// A file system may take a long time to answer, so it is queried on a separate thread and the result is cached for a
/// while. When the result is too old, only one caller queries it again; the others get the old result. `/ready` is
/// public, so many requests for it must not cause many queries.
final class DiskSpace: Sendable {
    /// The latest result, and whether `current` is waiting for a new one.
    private struct State {
        var free: Answer = .unknown
        var readAt: ContinuousClock.Instant?
        var isReading = false
    }

    /// What the file system answered.
    private enum Answer {
        /// Not queried yet.
        case unknown
        /// The file system returned an error.
        case failed
        case bytes(Int)
    }

    private let directory: String
    /// The free space in bytes below which the server is not ready.
    private let minimum: Int
    /// How long a result is reused. A disk takes longer than the default to fill up.
    private let lifetime: Duration
    private let freeBytes: @Sendable (String) -> Int?
    private let state = Mutex(State())

    /// - Parameter measure: returns the free bytes, or nil if they cannot be read.
    init(
        directory: String, minimum: Int, lifetime: Duration = .seconds(3),
        measure: @escaping @Sendable (String) -> Int? = DiskSpace.freeBytes(of:)
    ) {
        (self.directory, self.minimum, self.lifetime, freeBytes) = (directory, minimum, lifetime, measure)
    }

    /// Returns the free bytes: a new measurement, or the cached one if it is recent or another caller is already
    /// measuring. Returns nil if they cannot be read, or if the first measurement is still pending.
    func free() async -> Int? {
        if case .bytes(let bytes) = await current() { bytes } else { nil }
    }

    /// Returns true if there is enough space, or if the first result is still pending. Returns false if there is too
    /// little or if the space cannot be read.
    func hasRoom() async -> Bool {
        switch await current() {
        case .unknown: true
        case .failed: false
        case .bytes(let bytes): bytes >= minimum
        }
    }

    /// Queries the file system now, ignoring the cache. Returns the free bytes; nil if they cannot be read.
    func measure() async -> Int? {
        let (directory, freeBytes) = (directory, freeBytes)
        let bytes = (try? await NIOThreadPool.singleton.runIfActive { freeBytes(directory) }).flatMap { $0 }
        state.withLock { state in
            state.readAt = .now
            state.free = bytes.map(Answer.bytes) ?? .failed
        }
        return bytes
    }

    private func current() async -> Answer {
        let now = ContinuousClock.now
        let isDue = state.withLock { state in
            let isOld = state.readAt.map { now - $0 >= lifetime } ?? true
            guard isOld, !state.isReading else { return false }
            state.isReading = true
            return true
        }
        guard isDue else { return state.withLock { $0.free } }
        _ = await measure()
        return state.withLock { state in
            state.isReading = false
            return state.free
        }
    }

    /// Returns the bytes that a user without privileges may still write; nil if the file system returns an error.
    static func freeBytes(of directory: String) -> Int? {
        let bytes = confab_free_bytes(directory)
        return bytes >= 0 ? Int(bytes) : nil
    }
}
