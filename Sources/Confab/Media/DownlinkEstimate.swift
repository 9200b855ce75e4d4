import Wire

/// The bitrate that the connection from the server can carry, as estimated by the server. A client can estimate only
/// the bitrate of its sending direction.
final class DownlinkEstimate: Sendable {
    /// The state that the lock protects.
    private struct State: Sendable {
        var askedAt: Timestamp?
        var isAsking = false
        var bitrate: Int?
        var waiting: [@Sendable (Result<Int?, ConfabError>) -> Void] = []
        var number = 0
    }

    /// How long an answer is reused, so that the statistics of many subscribers cost one request.
    static let freshFor = Duration.seconds(1)
    /// The maximum time that ``read()`` waits for the server's answer. While the connection is interrupted, the answer
    /// may take longer.
    static let maxWait = Duration.seconds(1)

    private let core: ClientCore
    private let state = LockedValue(State())

    init(_ core: ClientCore) { self.core = core }

    /// Returns the bitrate in bits per second; nil if nothing limits the connection, if the client is not online, or
    /// if the server does not report the bitrate in time.
    func read() async -> Int? {
        guard core.connectionState == .online else { return nil }
        let known = try? await awaitResult { (answer: @escaping @Sendable (Result<Int?, ConfabError>) -> Void) in
            ask(at: core.dependencies.clock.now, answer)
        }
        return known ?? nil
    }

    private func ask(at now: Timestamp, _ answer: @escaping @Sendable (Result<Int?, ConfabError>) -> Void) {
        let (number, fresh) = state.withLock { state -> (Int?, Result<Int?, ConfabError>?) in
            if !state.isAsking, let askedAt = state.askedAt, now - askedAt < Self.freshFor {
                return (nil, .success(state.bitrate))
            }
            state.waiting.append(answer)
            if state.isAsking { return (nil, nil) }
            (state.isAsking, state.askedAt) = (true, now)
            state.number += 1
            return (state.number, nil)
        }
        if let fresh { answer(fresh) }
        guard let number else { return }
        let cancel = core.dependencies.clock.schedule(at: now + Self.maxWait) { [weak self] in
            self?.end(number, nil)
        }
        core.send(.media(.estimate)) { [weak self] result in
            cancel()
            // Report no bitrate if the request fails. A server that is older than this SDK rejects it.
            if case .success(.media(.estimate(let estimate))) = result {
                self?.end(number, estimate.bitrate)
            } else {
                self?.end(number, nil)
            }
        }
    }

    private func end(_ number: Int, _ bitrate: Int?) {
        let waiting = state.withLock { state in
            guard state.isAsking, state.number == number else { return state.waiting.prefix(0) }
            defer { (state.isAsking, state.bitrate, state.waiting) = (false, bitrate, []) }
            return state.waiting[...]
        }
        for answer in waiting { answer(.success(bitrate)) }
    }
}

extension ConfabClient {
    /// Requests the server's estimate of the bitrate at which this device can receive routed media.
    ///
    /// - Returns: bits per second for everything that the server sends to this device; nil if nothing limits it, or if
    ///   the server has no estimate.
    /// - Throws: an error of the connection.
    public func estimate() async throws(ConfabError) -> Int? {
        let answer = try await core.request(.media(.estimate))
        guard case .media(.estimate(let estimate)) = answer else { throw .unexpected(answer, for: "media.estimate") }
        return estimate.bitrate
    }
}
