import CSockets

/// Divides the file descriptors that the process may open, so that clients can never use up the last ones.
///
/// Each kind of descriptor has a share, against which the descriptors in use are counted. Invariant: the shares and
/// the reserve together do not exceed the process's limit.
struct DescriptorBudget: Equatable, Sendable {
    /// The part of the reserve that depends on neither clients nor settings: about 40 for the database, sockets, logs
    /// and threads; 16 connections of the metrics port; and one room file per thread that reads or writes files.
    static let fixedReserve = 96
    /// The descriptors of each media loop after the first: its poller, the two ends of its pipe, and its UDP sockets.
    static let loopReserve = 3 + 1 + MediaAddresses.maxAnswering

    /// The number of descriptors that clients cannot use.
    let reserve: Int
    /// Maximum number of TCP connections to the public port (`ConnectionCounts`).
    let connections: Int
    /// Maximum number of TCP connections for media (`StreamPlaces`).
    let mediaConnections: Int

    /// - Parameters:
    ///   - limit: the maximum number of descriptors of the process. The reserve is at most a quarter of it.
    ///   - requests: the maximum number of descriptors for the server's own requests.
    ///   - loops: the number of media loops.
    init(limit: Int, requests: Int, loops: Int = 1) {
        reserve = min(Self.fixedReserve + requests + (loops - 1) * Self.loopReserve, limit / 4)
        let shared = limit - reserve
        mediaConnections = min(StreamPlaces.maxConnections, shared / 5)
        connections = shared - mediaConnections
    }

    /// Maximum number of concurrent uploads and downloads of files (`Transfers`). Each also takes one of
    /// `connections`, so they may use at most half of those.
    var transfers: Int { connections / 2 }

    /// The budget of this process.
    init(_ configuration: ConfabConfiguration) {
        self.init(
            limit: Self.processLimit, requests: Self.requests(configuration), loops: configuration.media.loopCount)
    }

    /// Returns the maximum number of descriptors for requests to push services and webhooks. Each request has one
    /// connection, and each of the two clients looks up names.
    static func requests(_ configuration: ConfabConfiguration) -> Int {
        let lookups = PushLookups.maxFast + PushLookups.maxSlow
        return configuration.push.concurrency + lookups + configuration.webhooks.concurrency + lookups
    }

    private static var processLimit: Int {
        let limit = confab_descriptor_limit(0)
        return limit >= 0 ? Int(min(limit, 1 << 24)) : 1024
    }
}
