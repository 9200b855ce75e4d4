import Cluster
import Redis

/// The stream of a life in Redis, and the script that appends entries to it.
///
/// | key | value |
/// | --- | --- |
/// | `confab:post:<tag>` | the stream of the entries that are posted to this life. Kept for ``PlaceScripts/deathLasts`` after the last one |
///
/// An entry has the fields `from`, the tag of the life that posted it, and `entry`, the sealed bytes (``PostSeal``).
enum PostScripts {
    /// With more entries in the stream of a receiver, nothing is stored. A node that reads has far fewer.
    static let maxLength = 50_000

    static func streamKey(of tag: NodeTag) -> String { "confab:post:\(tag)" }

    /// KEYS: the death of the posting life, and for each receiver its stream and its death. ARGV: the maximum length of a stream, the
    /// time for which a stream is kept in seconds, the posting life, and for each entry the number of its receiver, from 0, and
    /// its bytes.
    private static let append = RedisScript(
        """
        if redis.call('EXISTS', KEYS[1]) == 1 then return {'fenced'} end
        local ended = {'ended'}
        for index = 2, #KEYS, 2 do
          if redis.call('EXISTS', KEYS[index + 1]) == 1 then ended[#ended + 1] = index / 2 - 1 end
        end
        if #ended > 1 then return ended end
        local full = {'full'}
        for index = 2, #KEYS, 2 do
          if redis.call('XLEN', KEYS[index]) >= tonumber(ARGV[1]) then full[#full + 1] = index / 2 - 1 end
        end
        if #full > 1 then return full end
        for index = 4, #ARGV, 2 do
          redis.call('XADD', KEYS[2 * tonumber(ARGV[index]) + 2], '*', 'from', ARGV[3], 'entry', ARGV[index + 1])
        end
        for index = 2, #KEYS, 2 do redis.call('EXPIRE', KEYS[index], ARGV[2]) end
        return {'stored'}
        """)

    /// Returns the request that appends entries in their order, all or none.
    ///
    /// - Parameters:
    ///   - entries: the sealed bytes of each entry, with the number of its receiver in `receivers`.
    ///   - tag: the life that posts. Redis refuses it if the life is fenced.
    static func append(
        _ entries: [(receiver: Int, sealed: [UInt8])], to receivers: [NodeTag], by tag: NodeTag, maxLength: Int
    ) -> RedisRequest {
        func death(_ tag: NodeTag) -> RedisCommand.Argument { .text(PlaceScripts.deathKey(of: tag)) }
        return .script(
            append,
            keys: [death(tag)] + receivers.flatMap { [.text(streamKey(of: $0)), death($0)] },
            arguments: [
                .number(maxLength), .number(PlaceScripts.deathLasts.components.seconds), .text(tag.description),
            ] + entries.flatMap { [.number($0.receiver), .bytes($0.sealed)] })
    }

    /// What the script answered.
    enum Reply: Equatable {
        case answer(PostOutbox.Answer)
        /// Nothing was stored, because the life that posts is fenced.
        case fenced
    }

    /// Reads what the script answered.
    ///
    /// - Throws: ``RedisError/Code/protocolViolation`` if it is no answer of the script.
    static func reply(_ answer: RESPValue, receivers: [NodeTag]) throws(RedisError) -> Reply {
        guard let words = answer.elements, let kind = words.first?.text else { throw unreadable }
        switch kind {
        case "stored": return .answer(.stored)
        case "fenced": return .fenced
        case "full": return .answer(.full(try lives(words.dropFirst(), receivers)))
        case "ended": return .answer(.ended(try lives(words.dropFirst(), receivers)))
        default: throw unreadable
        }
    }

    /// Returns the receivers with these numbers.
    private static func lives(_ words: ArraySlice<RESPValue>, _ receivers: [NodeTag]) throws(RedisError) -> [NodeTag] {
        var lives: [NodeTag] = []
        for word in words {
            guard let index = word.integer.flatMap({ Int(exactly: $0) }), receivers.indices.contains(index) else {
                throw unreadable
            }
            lives.append(receivers[index])
        }
        return lives
    }

    /// Returns the command that removes this entry of a stream and all before it.
    static func trim(_ stream: String, through id: String) -> RedisCommand {
        RedisCommand("XTRIM", .text(stream), "MINID", .text(successor(of: id) ?? id))
    }

    /// Returns the smallest id after this one. Nil if there is none, or if this is no id of an entry.
    private static func successor(of id: String) -> String? {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false).map { UInt64($0) }
        guard parts.count == 2, let time = parts[0], let number = parts[1] else { return nil }
        if number < .max { return "\(time)-\(number + 1)" }
        return time < .max ? "\(time + 1)-0" : nil
    }

    private static let unreadable = RedisError(
        .protocolViolation, "Redis answered a script of Confab in an unknown form.")
}
