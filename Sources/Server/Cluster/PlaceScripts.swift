import Cluster
import Redis

/// The scripts that carry out a ``PlaceCommand`` in Redis, and what they answer.
///
/// All keys begin with `confab:`, so that an access control list can limit Confab to them:
///
/// | key | value |
/// | --- | --- |
/// | `confab:epoch` | the number of the epoch in which claims are accepted |
/// | `confab:place:<kind>:<id>` | the claim that has the place, such as `2-17.5` |
/// | `confab:node:<tag>` | what the life publishes about itself, sealed (``NodeRecordSeal``). Kept for ``recordLasts`` |
/// | `confab:dead:<tag>` | exists if the life is fenced. Kept for ``deathLasts`` |
///
/// Numbers have 64 bits, and those of Lua only 53. So the scripts compare them as digits.
enum PlaceScripts {
    static let epochKey = "confab:epoch"

    static func key(of place: PlaceKey) -> String { "confab:place:\(place)" }

    static func deathKey(of tag: NodeTag) -> String { "confab:dead:\(tag)" }

    static func recordKey(of tag: NodeTag) -> String { "confab:node:\(tag)" }

    /// How long a node's record is kept. It is written again with each renewal.
    static let recordLasts = Duration.seconds(10)

    /// How long Redis refuses a life that was fenced. Much longer than any pause after which a node could go on.
    static let deathLasts = Duration.seconds(86_400)

    /// The functions that several scripts use.
    private static let shared = """
        -- Whether a number is at most another one. Both are decimal digits without leading zeros.
        local function isAtMost(number, other)
          if #number ~= #other then return #number < #other end
          return number <= other
        end

        -- Enters a claim at a place. Returns nothing, or the claim that has the place.
        local function enter(key, claim, void)
          local holder = redis.call('GET', key)
          if holder then
            local tag, number = string.match(claim, '^(.*)%.(%d+)$')
            local holderTag, holderNumber = string.match(holder, '^(.*)%.(%d+)$')
            if not holderTag then return holder end
            local isOlder = holderTag == tag and isAtMost(holderNumber, number)
            if not isOlder and not void[holderTag] then return holder end
          end
          redis.call('SET', key, claim)
        end

        """

    /// KEYS: the epoch, the death of the claiming life, the place. ARGV: the number of the epoch, the claim, the void lives.
    private static let claim = RedisScript(
        shared + """
            if redis.call('EXISTS', KEYS[2]) == 1 then return {'dead'} end
            local epoch = redis.call('GET', KEYS[1])
            if epoch ~= ARGV[1] then return {'epoch', epoch} end
            local void = {}
            for index = 3, #ARGV do void[ARGV[index]] = true end
            local holder = enter(KEYS[3], ARGV[2], void)
            if holder then return {'held', holder} end
            return {'claimed'}
            """)

    /// KEYS: the epoch, the place. ARGV: the number of the epoch.
    private static let find = RedisScript(
        """
        local epoch = redis.call('GET', KEYS[1])
        if epoch ~= ARGV[1] then return {'epoch', epoch} end
        return {'held', redis.call('GET', KEYS[2])}
        """)

    /// KEYS: the place. ARGV: the claim.
    private static let release = RedisScript(
        """
        if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
        return {'released'}
        """)

    /// KEYS: the epoch, the death of the registering life, the places. ARGV: the number of the epoch, the number of void lives,
    /// the void lives, and the claims in the order of the places.
    private static let register = RedisScript(
        shared + """
            if redis.call('EXISTS', KEYS[2]) == 1 then return {'dead'} end
            local epoch = redis.call('GET', KEYS[1])
            if epoch and not isAtMost(epoch, ARGV[1]) then return {'epoch', epoch} end
            redis.call('SET', KEYS[1], ARGV[1])
            local count = tonumber(ARGV[2])
            local void = {}
            for index = 1, count do void[ARGV[2 + index]] = true end
            local taken = {'registered'}
            for index = 3, #KEYS do
              local holder = enter(KEYS[index], ARGV[count + index], void)
              if holder then
                taken[#taken + 1] = index - 3
                taken[#taken + 1] = holder
              end
            end
            return taken
            """)

    /// Returns the request that carries out a command.
    ///
    /// - Parameters:
    ///   - tag: the life that sends the command. Redis refuses it if the life is fenced.
    ///   - places: the places of a registration, in the order in which the answer counts them.
    static func request(_ command: PlaceCommand, by tag: NodeTag, places: [PlaceKey]) -> RedisRequest {
        let death = RedisCommand.Argument.text(deathKey(of: tag))
        func text(_ place: PlaceKey) -> RedisCommand.Argument { .text(key(of: place)) }
        func text(_ tags: [NodeTag]) -> [RedisCommand.Argument] { tags.map { .text($0.description) } }
        switch command {
        case .claim(let place, let entry, let epoch, let void):
            return .script(
                claim, keys: [.text(epochKey), death, text(place)],
                arguments: [.number(epoch), .text(entry.description)] + text(void))
        case .find(let place, let epoch):
            return .script(find, keys: [.text(epochKey), text(place)], arguments: [.number(epoch)])
        case .release(let place, let entry):
            return .script(release, keys: [text(place)], arguments: [.text(entry.description)])
        case .register(let entries, let epoch, let void):
            let claims = places.compactMap { entries[$0].map { RedisCommand.Argument.text($0.description) } }
            return .script(
                register, keys: [.text(epochKey), death] + places.map(text),
                arguments: [.number(epoch), .number(void.count)] + text(void) + claims)
        }
    }

    /// Reads what a script answered.
    ///
    /// - Throws: ``RedisError/Code/protocolViolation`` if it is no answer of these scripts, or a key has a value that is no
    ///   claim.
    static func reply(_ answer: RESPValue, places: [PlaceKey]) throws(RedisError) -> Reply {
        guard let words = answer.elements, let kind = words.first?.text else { throw unreadable }
        switch (kind, words.count) {
        case ("claimed", 1): return .reply(.claimed)
        case ("released", 1): return .reply(.released)
        case ("dead", 1): return .fenced
        case ("held", 2): return .reply(.held(words[1] == .null ? nil : try claim(words[1])))
        case ("epoch", 2):
            guard words[1] != .null else { return .reply(.otherEpoch(nil)) }
            guard let number = words[1].text.flatMap({ UInt64($0) }) else { throw unreadable }
            return .reply(.otherEpoch(number))
        case ("registered", _):
            var taken: [PlaceKey: PlaceClaim] = [:]
            for index in stride(from: 1, to: words.count - 1, by: 2) {
                guard let place = words[index].integer.flatMap({ Int(exactly: $0) }), places.indices.contains(place)
                else { throw unreadable }
                taken[places[place]] = try claim(words[index + 1])
            }
            return .reply(.registered(taken: taken))
        default: throw unreadable
        }
    }

    /// What a script answered.
    enum Reply: Equatable {
        case reply(PlaceReply)
        /// Nothing was done, because the life that sent the command is fenced.
        case fenced
    }

    private static func claim(_ value: RESPValue) throws(RedisError) -> PlaceClaim {
        guard let claim = value.text.flatMap({ PlaceClaim($0) }) else { throw unreadable }
        return claim
    }

    private static let unreadable = RedisError(
        .protocolViolation, "A key that begins with confab: in Redis has a value that Confab did not write. Delete it.")
}
