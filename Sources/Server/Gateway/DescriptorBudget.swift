#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Divides the file descriptors that the process may open, so that clients can never use up the last ones.
///
/// Each kind of descriptor has a share, against which the descriptors in use are counted. Invariant: the shares and
/// the reserve together do not exceed the process's limit.
struct DescriptorBudget: Equatable, Sendable {
    /// Maximum number of descriptors to reserve for everything whose number does not depend on clients: about 40 for
    /// the database, sockets, logs and threads; 32 pushes and as many name lookups (`push.concurrency`); 16
    /// connections of the metrics port; and one room file per thread that reads or writes files.
    static let maxReserve = 160

    /// Maximum number of TCP connections to the public port (`ConnectionCounts`).
    let connections: Int
    /// Maximum number of TCP connections for media (`MediaLoop`).
    let mediaConnections: Int

    /// - Parameter limit: the maximum number of descriptors of the process.
    init(limit: Int) {
        let shared = limit - min(Self.maxReserve, limit / 4)
        mediaConnections = min(MediaLoop.maxConnections, shared / 5)
        connections = shared - mediaConnections
    }

    /// Maximum number of concurrent uploads and downloads of files (`Transfers`). Each also takes one of
    /// `connections`, so they may use at most half of those.
    var transfers: Int { connections / 2 }

    /// The budget of this process.
    static let current = DescriptorBudget(limit: processLimit)

    private static var processLimit: Int {
        var limit = rlimit()
        #if canImport(Glibc)
        let status = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        #else
        let status = getrlimit(RLIMIT_NOFILE, &limit)
        #endif
        return status == 0 ? Int(min(limit.rlim_cur, 1 << 24)) : 1024
    }
}
