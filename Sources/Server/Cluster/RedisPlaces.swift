import Cluster
import Redis
import Wire

/// The table of places in Redis, as one life sees it. The rules are in ``PlaceRegistry``; this carries out its commands.
///
/// Each command is one script, so it is carried out wholly, and in one order with those of other nodes.
struct RedisPlaces: Sendable {
    /// Why a command has no reply.
    enum Failure: Error, Equatable, Sendable {
        /// Redis did not answer, or the command may have been carried out and its answer was lost. ``PlaceRegistry`` repeats it.
        case unanswered(RedisError)
        /// Nothing was done: this life is fenced. It must end.
        case fenced
    }

    /// Time for a command. ``PlaceRegistry`` tries again with its next look at the ledger, once a second.
    private static let answerTime = Duration.seconds(2)

    private let redis: any RedisClient
    private let tag: NodeTag

    /// - Parameter tag: the life that sends the commands.
    init(_ redis: any RedisClient, of tag: NodeTag) { (self.redis, self.tag) = (redis, tag) }

    /// Checks a server after connecting, and finds out what it remembers.
    ///
    /// - Returns: the store, as in ``Epoch/store``.
    /// - Throws: ``RedisError/Code/unsuitable`` if the server may delete keys.
    func identify(onlyOn connection: UInt64? = nil) async throws(RedisError) -> String {
        try await redis.requireNoEviction()
        let answer = try await redis.send(
            RedisCommand("INFO", "server", "replication"), timeout: Self.answerTime, onlyOn: connection)
        let lines = answer.text?.split(whereSeparator: \.isNewline) ?? []
        func value(_ name: String) throws(RedisError) -> Substring {
            let found = lines.first { $0.hasPrefix("\(name):") }?.dropFirst(name.count + 1)
            // Both are 40 hexadecimal digits.
            guard let found, found.utf8.count == 40, found.allSatisfy(\.isHexDigit) else {
                throw RedisError(.unsuitable, "Redis did not report its \(name). Allow the command INFO.")
            }
            return found
        }
        return "\(try value("run_id")):\(try value("master_replid"))"
    }

    /// Carries out a command of ``PlaceRegistry``.
    ///
    /// - Parameters:
    ///   - connection: the connection whose store was identified. On another one, other places might count.
    ///   - completion: called once, on the client's event loop, in the order of the commands.
    func send(
        _ command: PlaceCommand, onlyOn connection: UInt64?,
        completion: @escaping @Sendable (Result<PlaceReply, Failure>) -> Void
    ) {
        let places = command.registeredPlaces
        let request = PlaceScripts.request(command, by: tag, places: places)
        redis.submit(request, timeout: Self.answerTime, onlyOn: connection) { result in
            completion(Self.reply(result, places: places))
        }
    }

    private static func reply(
        _ result: Result<RESPValue, RedisError>, places: [PlaceKey]
    ) -> Result<PlaceReply, Failure> {
        do throws(RedisError) {
            switch try PlaceScripts.reply(result.get(), places: places) {
            case .reply(let reply): return .success(reply)
            case .fenced: return .failure(.fenced)
            }
        } catch {
            return .failure(.unanswered(error))
        }
    }

    // MARK: Records

    /// Stores this life's sealed record for some seconds.
    func publish(_ sealed: [UInt8]) async throws(RedisError) {
        let lasts = RedisCommand.Argument.number(PlaceScripts.recordLasts.wholeMilliseconds)
        try await redis.send(
            RedisCommand("SET", .text(PlaceScripts.recordKey(of: tag)), .bytes(sealed), "PX", lasts),
            timeout: Self.answerTime)
    }

    /// Reads the sealed records of these lives. Those that have none are missing in the result.
    func records(of tags: [NodeTag]) async throws(RedisError) -> [NodeTag: [UInt8]] {
        guard !tags.isEmpty else { return [:] }
        let keys = tags.map { RedisCommand.Argument.text(PlaceScripts.recordKey(of: $0)) }
        let found = try await redis.send(RedisCommand("MGET", keys), timeout: Self.answerTime).elements ?? []
        return zip(tags, found).reduce(into: [:]) { records, pair in records[pair.0] = pair.1.bytes }
    }

    /// Makes Redis refuse a life that the ledger has fenced. It may not know of its end yet.
    func announceDeath(of tag: NodeTag) async throws(RedisError) {
        let lasts = RedisCommand.Argument.number(PlaceScripts.deathLasts.components.seconds)
        try await redis.send(
            RedisCommand("SET", .text(PlaceScripts.deathKey(of: tag)), "", "EX", lasts), timeout: Self.answerTime)
    }
}

extension PlaceCommand {
    /// The places of a registration, sorted so that a request repeats; empty for other commands.
    fileprivate var registeredPlaces: [PlaceKey] {
        guard case .register(let entries, _, _) = self else { return [] }
        return entries.keys.sorted { $0.description < $1.description }
    }
}
