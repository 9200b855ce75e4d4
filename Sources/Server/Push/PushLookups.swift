import DequeModule

/// The DNS lookups of an HTTP client. Requests for the same host share one lookup, and lookups wait for a free slot.
///
/// A lookup that takes longer than ``slowAfter`` counts as slow and moves to separate slots, so that hosts whose name
/// servers do not answer delay no other host. The next lookup of such a host starts in these slots.
actor PushLookups {
    /// Maximum concurrent lookups that are not slow. Each takes a thread of the system's resolver.
    static let maxFast = 8
    /// Maximum concurrent slow lookups. A lookup that hangs takes its thread for about 30 s.
    static let maxSlow = 32
    static let slowAfter: Duration = .seconds(1)
    /// Maximum number of hosts that are remembered as slow.
    private static let maxSlowHosts = 1000

    /// A lookup of a host that is queued or running.
    private struct Lookup {
        /// The requests that wait for the addresses.
        var waiting: [Once<[IPAddress]>] = []
        var isRunning = false
        /// Whether it is running in a slot for slow lookups.
        var isSlow = false
        /// Whether it has taken longer than ``slowAfter``.
        var isLate = false
        var timer: Task<Void, Never>?
    }

    private let resolver: any PushResolver
    private let pause: @Sendable (Duration) async throws -> Void
    private var lookups: [String: Lookup] = [:]
    private var queue: Deque<String> = []
    /// The hosts whose last lookup took longer than ``slowAfter``.
    private var slowHosts: Set<String> = []
    private var fast = 0
    private var slow = 0

    init(_ resolver: any PushResolver, pause: @escaping @Sendable (Duration) async throws -> Void) {
        (self.resolver, self.pause) = (resolver, pause)
    }

    /// Returns the addresses of a host; empty if the name does not exist or cannot be looked up.
    ///
    /// - Throws: If the task is canceled, `PushFailure.lookupsBusy` if the lookup has not started, or
    ///   `CancellationError`.
    func addresses(of host: String) async throws -> [IPAddress] {
        let answer = Once<[IPAddress]>()
        if lookups[host] == nil { queue.append(host) }
        lookups[host, default: Lookup()].waiting.append(answer)
        start()
        if let found = await answer.value() { return found }
        lookups[host]?.waiting.removeAll { $0 === answer }
        guard let lookup = lookups[host], !lookup.isRunning else { throw CancellationError() }
        if lookup.waiting.isEmpty {
            lookups[host] = nil
            queue.removeAll { $0 == host }
        }
        throw PushFailure.lookupsBusy
    }

    /// Starts the queued lookups for which a slot is free.
    private func start() {
        while let index = queue.firstIndex(where: { hasSlot($0) }) {
            let host = queue.remove(at: index)
            let isSlow = slowHosts.contains(host)
            if isSlow { slow += 1 } else { fast += 1 }
            lookups[host]?.isRunning = true
            lookups[host]?.isSlow = isSlow
            let (resolver, pause) = (resolver, pause)
            // The lookup is not canceled with a request, because others may wait for it.
            Task { self.finish(host, (try? await resolver.addresses(of: host)) ?? []) }
            lookups[host]?.timer = Task {
                guard (try? await pause(Self.slowAfter)) != nil, !Task.isCancelled else { return }
                self.noteLate(host)
            }
        }
    }

    private func hasSlot(_ host: String) -> Bool {
        slowHosts.contains(host) ? slow < Self.maxSlow : fast < Self.maxFast
    }

    private func noteLate(_ host: String) {
        // The timer may be that of an earlier lookup of this host.
        guard lookups[host]?.isRunning == true else { return }
        lookups[host]?.isLate = true
        if slowHosts.count >= Self.maxSlowHosts { slowHosts.removeAll() }
        slowHosts.insert(host)
        moveLate()
        start()
    }

    /// Moves lookups that are late to free slots for slow lookups. They come before queued lookups, because they hold up
    /// hosts that may be fast.
    private func moveLate() {
        for (host, lookup) in lookups where lookup.isLate && !lookup.isSlow {
            guard slow < Self.maxSlow else { return }
            lookups[host]?.isSlow = true
            (fast, slow) = (fast - 1, slow + 1)
        }
    }

    private func finish(_ host: String, _ found: [IPAddress]) {
        guard let lookup = lookups.removeValue(forKey: host) else { return }
        lookup.timer?.cancel()
        if lookup.isSlow { slow -= 1 } else { fast -= 1 }
        if !lookup.isLate { slowHosts.remove(host) }
        for answer in lookup.waiting { answer.settle(found) }
        moveLate()
        start()
    }
}
