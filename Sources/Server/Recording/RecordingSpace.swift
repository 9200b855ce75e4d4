import NIOPosix
import Synchronization

/// Whether a disk has space for another recording or broadcast with DVR, and for those that write to it.
struct RecordingSpace: Equatable, Sendable {
    /// How often to look while something is written.
    static let interval: Duration = .seconds(5)

    /// `recording.minFreeSpace`, in bytes.
    let minimum: Int64

    /// Whether another one may start.
    ///
    /// - Parameter free: the free space in bytes; nil if it cannot be measured. Nothing could be written there.
    func admits(free: Int64?) -> Bool { free ?? 0 >= minimum }

    /// Whether those that are being written have to end, so that the disk does not become full.
    func isUsedUp(free: Int64?) -> Bool { free.map { $0 < minimum / 2 } ?? false }
}

/// The free space of a disk, for decisions that must not wait for it: it is measured on another thread, at most once every few seconds.
final class SpaceGauge: Sendable {
    private static let lifetime: Duration = .seconds(3)

    /// The last measurement.
    private struct Measured {
        /// In bytes; nil if unknown.
        var free: Int64?
        var at: ContinuousClock.Instant?
    }

    private let space: RecordingSpace
    private let measure: @Sendable () -> Int64?
    private let measured = Mutex(Measured())

    /// - Parameter measure: returns the free bytes; nil if they cannot be measured. May block.
    init(_ space: RecordingSpace, _ measure: @escaping @Sendable () -> Int64?) {
        (self.space, self.measure) = (space, measure)
        update()
    }

    /// Whether nothing may start, as far as is known. Does not block.
    var isShort: Bool {
        let now = ContinuousClock.now
        let (free, isOld) = measured.withLock { measured in
            let isOld = measured.at.map { now - $0 >= Self.lifetime } ?? true
            if isOld { measured.at = now }
            return (measured.free, isOld)
        }
        if isOld { update() }
        return free.map { !space.admits(free: $0) } ?? false
    }

    private func update() {
        NIOThreadPool.singleton.submit { [self] _ in
            let free = measure()
            measured.withLock { $0.free = free }
        }
    }
}
