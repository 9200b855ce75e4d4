import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The one place where time is read: the wall clock at start, and the monotonic clock from there, so that time never goes
/// back while the server runs.
struct ServerClock: Sendable {
    private let start: ContinuousClock.Instant
    private let wall: Timestamp

    init() {
        start = .now
        wall = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }

    var now: Timestamp { wall + (ContinuousClock.now - start) }
}
