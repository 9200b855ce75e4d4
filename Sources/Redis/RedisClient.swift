/// What Confab needs of a client for Redis or Valkey. ``NIORedisClient`` is the implementation; another package could take
/// its place in one file.
///
/// Commands are sent on one connection, in the order in which they are submitted, without waiting for earlier answers.
/// Reads of streams have a connection of their own, because they block it.
///
/// ```swift
/// let redis: any RedisClient = try NIORedisClient(configuration, on: loop)
/// let place = try await redis.send(RedisCommand("GET", "place:room:red"))
/// ```
package protocol RedisClient: Sendable {
    /// Sends a request when a connection is ready.
    ///
    /// - Parameters:
    ///   - timeout: the time until the answer must have arrived. If it does not, the request fails, and if the request was
    ///     sent, the connection is given up. A server that sends nothing for 3 s is given up earlier, so do not send commands
    ///     that block longer.
    ///   - onlyOn: the number of the connection on which the request may be sent (``RedisServer/connection``); nil for any.
    ///     Requests whose order matters use it: after a loss, later ones fail too, instead of overtaking the lost ones.
    ///   - completion: called once, on the client's event loop, in the order of the answers. Scripts are executed in their
    ///     order, because a script's text is sent when a connection uses it for the first time. Only if an operator removes the
    ///     scripts from the server during a connection (`SCRIPT FLUSH`), a script has to be sent again, and other requests
    ///     that were sent after it can be executed before it.
    func submit(
        _ request: RedisRequest, timeout: Duration, onlyOn: UInt64?,
        completion: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void)

    /// Waits for entries of streams. Reads are carried out one after the other, from the server to which commands are sent.
    ///
    /// - Parameters:
    ///   - streams: the streams, each with the id of the last entry that is known; `0` for all entries.
    ///   - count: the number of entries from each stream to return at most.
    ///   - block: how long to wait if there are no entries, at least a millisecond.
    ///   - completion: called once, on the client's event loop. Without entries, the list is empty.
    func read(
        _ streams: [RedisStreamPosition], count: Int, block: Duration,
        completion: @escaping @Sendable (Result<[RedisStreamEntry], RedisError>) -> Void)

    /// Sets the function that gets the present state and each later one, on the client's event loop. The state of the
    /// connection for commands is reported before the results that follow from it.
    func observe(_ report: @escaping @Sendable (RedisState) -> Void)

    /// Closes all connections. Requests that wait fail.
    func close() async
}

extension RedisClient {
    /// Sends a command and waits for the answer.
    @discardableResult
    package func send(
        _ command: RedisCommand, timeout: Duration = .seconds(5), onlyOn: UInt64? = nil
    ) async throws(RedisError) -> RESPValue {
        try await result { submit(.command(command), timeout: timeout, onlyOn: onlyOn, completion: $0) }.get()
    }

    /// Runs a script and waits for its answer.
    @discardableResult
    package func run(
        _ script: RedisScript, keys: [RedisCommand.Argument] = [], arguments: [RedisCommand.Argument] = [],
        timeout: Duration = .seconds(5), onlyOn: UInt64? = nil
    ) async throws(RedisError) -> RESPValue {
        let request = RedisRequest.script(script, keys: keys, arguments: arguments)
        return try await result { submit(request, timeout: timeout, onlyOn: onlyOn, completion: $0) }.get()
    }

    /// Waits for entries of streams.
    package func read(
        _ streams: [RedisStreamPosition], count: Int, block: Duration
    ) async throws(RedisError) -> [RedisStreamEntry] {
        try await result { read(streams, count: count, block: block, completion: $0) }.get()
    }

    /// Checks that Redis refuses commands when its memory is full, instead of deleting keys that Confab relies on.
    ///
    /// - Throws: ``RedisError/Code/unsuitable`` if `maxmemory-policy` is not `noeviction`.
    package func requireNoEviction() async throws(RedisError) {
        // CONFIG GET is disabled by hosting services, and needs a permission that Confab does not need otherwise.
        let lines = try await send(RedisCommand("INFO", "memory")).text?.split(whereSeparator: \.isNewline) ?? []
        let name = "maxmemory_policy:"
        guard let policy = lines.first(where: { $0.hasPrefix(name) })?.dropFirst(name.count) else {
            throw RedisError(.protocolViolation, "Redis did not report its maxmemory-policy.")
        }
        guard policy == "noeviction" else {
            throw RedisError(
                .unsuitable,
                "Redis has the maxmemory-policy \(String(printable: policy.utf8, maxBytes: 32)), so it may delete data. "
                    + "Set it to noeviction.")
        }
    }

    private func result<Value: Sendable>(
        _ start: (@escaping @Sendable (Result<Value, RedisError>) -> Void) -> Void
    ) async -> Result<Value, RedisError> {
        await withCheckedContinuation { continuation in start { continuation.resume(returning: $0) } }
    }
}
