import Cluster
import TestSupport
import Testing

@testable import Redis
@testable import Server

/// The scripts in Redis against ``PlaceStore``, which says what they must do.
@Suite(
    .enabled(if: RunningRedis.executable != nil, "redis-server is not installed, so the scripts are not tested."),
    .timeLimit(.minutes(3)))
struct RedisPlacesTests {
    private static let first = NodeTag(node: 1, life: 1)!
    private static let second = NodeTag(node: 2, life: 2)!
    private static let room = PlaceKey(.room, "kitchen: \u{1F373}")

    private func withRedis(_ body: (any RedisClient, RunningRedis) async throws -> Void) async throws {
        let redis = try await RunningRedis()
        defer { redis.remove() }
        let observed = try ObservedClient(redis)
        do {
            try await body(observed.client, redis)
        } catch {
            await observed.client.close()
            throw error
        }
        await observed.client.close()
    }

    private func send(
        _ command: PlaceCommand, by tag: NodeTag, to redis: any RedisClient
    ) async throws(RedisPlaces.Failure) -> PlaceReply {
        try await withCheckedContinuation { continuation in
            RedisPlaces(redis, of: tag).send(command, onlyOn: nil) { continuation.resume(returning: $0) }
        }.get()
    }

    // MARK: The model

    @Test func `the scripts answer as the model does, whatever happens`() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("RedisPlacesTests: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        try await withRedis { redis, _ in
            var store = PlaceStore()
            var kinds: [String: Int] = [:]
            for index in 0..<3000 {
                if Int.random(in: 0..<200, using: &random) == 0 {
                    try await forget(Bool.random(using: &random), in: &store, redis)
                    continue
                }
                let (command, tag) = RandomPlaceCommands.next(after: store, using: &random)
                let expected = store.handle(command)
                let found = try await send(command, by: tag, to: redis)
                guard found == expected else {
                    Issue.record("seed \(seed), command \(index) \(command): \(found) instead of \(expected)")
                    return
                }
                kinds[RandomPlaceCommands.name(expected), default: 0] += 1
            }
            // Otherwise the comparison says little.
            for name in ["claimed", "held", "free", "released", "registered", "taken", "otherEpoch"] {
                #expect(kinds[name, default: 0] > 20, "\(name): \(kinds)")
            }
            try await compare(store, with: redis)
        }
    }

    @Test func `the scripts answer as the model does, with ids that need care in keys`() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("RedisPlacesTests: seed \(seed)")
        var script = PlaceScript(seed: seed)
        try await withRedis { redis, _ in
            var store = PlaceStore()
            for _ in 0..<1000 {
                let command = script.next()
                let expected = store.handle(command)
                #expect(try await send(command, by: Self.first, to: redis) == expected, "seed \(seed), \(command)")
            }
            try await compare(store, with: redis)
        }
    }

    /// Redis forgets everything, or the places whose ids are odd.
    private func forget(_ all: Bool, in store: inout PlaceStore, _ redis: any RedisClient) async throws {
        if all {
            store = PlaceStore()
            try await redis.send(RedisCommand("FLUSHALL"))
            return
        }
        let lost = store.claims.keys.filter { RandomPlaceCommands.isOdd($0) }
        store.forget(where: RandomPlaceCommands.isOdd)
        for place in lost { try await redis.send(RedisCommand("DEL", .text(PlaceScripts.key(of: place)))) }
    }

    private func compare(_ store: PlaceStore, with redis: any RedisClient) async throws {
        let keys = try await redis.send(RedisCommand("KEYS", "confab:place:*")).elements?.compactMap(\.text) ?? []
        #expect(Set(keys) == Set(store.claims.keys.map(PlaceScripts.key)))
        for (place, claim) in store.claims {
            #expect(
                try await redis.send(RedisCommand("GET", .text(PlaceScripts.key(of: place)))).text == claim.description)
        }
    }

    @Test func `registers many places at once`() async throws {
        try await withRedis { (redis: any RedisClient, _: RunningRedis) async throws in
            var entries: [PlaceKey: PlaceClaim] = [:]
            for index in 0..<500 {
                entries[PlaceKey(.person, "\(index)")] = PlaceClaim(tag: Self.first, number: UInt64(index))
            }
            let command = PlaceCommand.register(entries, epoch: 1, void: [])
            #expect(try await send(command, by: Self.first, to: redis) == .registered(taken: [:]))
            let others = entries.mapValues { PlaceClaim(tag: Self.second, number: $0.number) }
            let again = PlaceCommand.register(others, epoch: 1, void: [])
            #expect(try await send(again, by: Self.second, to: redis) == .registered(taken: entries))
        }
    }

    // MARK: Fenced lives

    @Test func `Redis refuses a life that is fenced, and its places can be claimed by others`() async throws {
        try await withRedis { redis, _ in
            let claim = PlaceClaim(tag: Self.first, number: 1)
            _ = try await send(.register([Self.room: claim], epoch: 1, void: []), by: Self.first, to: redis)
            try await RedisPlaces(redis, of: Self.second).announceDeath(of: Self.first)
            let hall = PlaceKey(.hall)
            for command in [
                PlaceCommand.claim(hall, PlaceClaim(tag: Self.first, number: 2), epoch: 1, void: []),
                .register([hall: PlaceClaim(tag: Self.first, number: 2)], epoch: 2, void: []),
                .register([:], epoch: 2, void: []),
            ] {
                await #expect(throws: RedisPlaces.Failure.fenced) { try await send(command, by: Self.first, to: redis) }
            }
            #expect(try await send(.find(hall, epoch: 1), by: Self.second, to: redis) == .held(nil), "nothing was done")
            let heir = PlaceClaim(tag: Self.second, number: 1)
            #expect(
                try await send(.claim(Self.room, heir, epoch: 1, void: []), by: Self.second, to: redis) == .held(claim))
            let taken = PlaceCommand.claim(Self.room, heir, epoch: 1, void: [Self.first])
            #expect(try await send(taken, by: Self.second, to: redis) == .claimed)
            // The release of the dead life arrives late.
            #expect(try await send(.release(Self.room, claim), by: Self.first, to: redis) == .released)
            #expect(try await send(.find(Self.room, epoch: 1), by: Self.second, to: redis) == .held(heir))
            let left = try await redis.send(RedisCommand("TTL", .text(PlaceScripts.deathKey(of: Self.first)))).integer
            #expect(try (1...86_400).contains(#require(left)))
        }
    }

    // MARK: The server

    @Test func `a server that may delete keys is refused with advice`() async throws {
        try await withRedis { redis, _ in
            let store = try await RedisPlaces(redis, of: Self.first).identify()
            #expect(store.split(separator: ":").map(\.count) == [40, 40])
            try await redis.send(RedisCommand("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"))
            let error = await #expect(throws: RedisError.self) {
                try await RedisPlaces(redis, of: Self.first).identify()
            }
            #expect(error?.code == .unsuitable)
            #expect(error?.message.contains("Set it to noeviction.") == true)
        }
    }

    @Test func `a server that has started again is another store`() async throws {
        try await withRedis { redis, running in
            let places = RedisPlaces(redis, of: Self.first)
            let before = try await places.identify()
            #expect(try await places.identify() == before)
            running.crash()
            try await running.start()
            let after: String
            do {
                after = try await places.identify()
            } catch let error as RedisError where error.code == .connectionLost {
                // The client noticed only now that the connection had ended.
                after = try await places.identify()
            }
            #expect(after != before)
        }
    }

    @Test func `a value that is no claim is reported, and not overwritten`() async throws {
        try await withRedis { redis, _ in
            _ = try await send(.register([:], epoch: 1, void: []), by: Self.first, to: redis)
            for value in ["garbage", "2-17.x", "2-17.05", "0-1.1", ""] {
                try await redis.send(RedisCommand("SET", .text(PlaceScripts.key(of: Self.room)), .text(value)))
                let claim = PlaceCommand.claim(Self.room, PlaceClaim(tag: Self.first, number: 1), epoch: 1, void: [])
                let error = await #expect(throws: RedisPlaces.Failure.self) {
                    try await send(claim, by: Self.first, to: redis)
                }
                guard case .unanswered(let reason)? = error else {
                    Issue.record("\(value) is taken for a claim")
                    continue
                }
                #expect(reason.code == .protocolViolation)
                #expect(!reason.message.contains("garbage"))
            }
        }
    }
}

/// Random commands of a few lives for a few places, with numbers that Lua cannot represent.
private enum RandomPlaceCommands {
    private static let tags = (1...3).map { NodeTag(node: UInt16($0), life: UInt32(10 * $0))! }
    private static let numbers: [UInt64] = [1, 2, 9, 10, 1 << 53, 1 << 53 + 1, .max - 1, .max]
    private static let epochs: [UInt64] = [9, 10, 1 << 53, 1 << 53 + 1]
    private static let places = (0..<6).map { PlaceKey($0 < 3 ? .room : .person, "\($0).\($0)-\($0)") }

    static func isOdd(_ place: PlaceKey) -> Bool { place.id.last.map { "135".contains($0) } ?? false }

    static func next(after store: PlaceStore, using random: inout SeededGenerator) -> (PlaceCommand, NodeTag) {
        func any<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &random)] }
        let tag = any(tags)
        let void = Bool.random(using: &random) ? [] : [any(tags)]
        let claim = PlaceClaim(tag: tag, number: any(numbers))
        // Mostly the current epoch. It only grows until Redis forgets it.
        let epoch = Int.random(in: 0..<20, using: &random) == 0 ? any(epochs) : store.epoch ?? epochs[0]
        switch Int.random(in: 0..<8, using: &random) {
        case 0...2: return (.claim(any(places), claim, epoch: epoch, void: void), tag)
        case 3: return (.find(any(places), epoch: epoch), tag)
        case 4, 5:
            let place = any(places)
            return (.release(place, Bool.random(using: &random) ? store.claims[place] ?? claim : claim), tag)
        default:
            var entries: [PlaceKey: PlaceClaim] = [:]
            for place in places where Bool.random(using: &random) {
                entries[place] = PlaceClaim(tag: tag, number: any(numbers))
            }
            return (.register(entries, epoch: epoch, void: void), tag)
        }
    }

    static func name(_ reply: PlaceReply) -> String {
        switch reply {
        case .claimed: "claimed"
        case .held(nil): "free"
        case .held: "held"
        case .released: "released"
        case .registered(let taken): taken.isEmpty ? "registered" : "taken"
        case .otherEpoch: "otherEpoch"
        }
    }
}
