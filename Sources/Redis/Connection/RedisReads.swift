import DequeModule
import Wire

/// Reads of streams that wait. They are carried out one after the other, each in steps that block for at most a second.
///
/// Redis answers nothing else on a connection that is blocked, not even `PING`. The steps are what shows that the server
/// still lives.
struct RedisReads: Sendable {
    /// A command to send, and the time until its answer must have arrived.
    struct Step: Equatable, Sendable {
        var command: RedisCommand
        var timeout: Duration
    }

    /// A read that is over.
    struct Finished: Equatable, Sendable {
        var id: UInt64
        var result: Result<[RedisStreamEntry], RedisError>
    }

    private struct Read {
        let id: UInt64
        let streams: [RedisStreamPosition]
        let count: Int
        /// How long the read may still block, in milliseconds.
        var left: Int64
    }

    /// How long a step may block, in milliseconds. Shorter than ``RedisConnection/Settings/longestSilence``.
    private static let longestStep: Int64 = 1000
    /// The time that an answer may take after the time for which a step blocks.
    private static let answerTimeout = Duration.seconds(2)
    /// More than the streams that a server reads. Each waits for those before it.
    static let maxReads = 256

    private var reads: Deque<Read> = []

    /// Adds a read. Returns the step to carry out, if no other read is under way.
    ///
    /// - Throws: ``RedisError/Code/overloaded``.
    mutating func add(
        _ id: UInt64, _ streams: [RedisStreamPosition], count: Int, block: Duration
    ) throws(RedisError) -> Step? {
        guard reads.count < Self.maxReads else {
            throw RedisError(.overloaded, "Too many reads of streams wait for Redis. Try again later.")
        }
        // Redis would block without end for 0 ms.
        reads.append(Read(id: id, streams: streams, count: max(1, count), left: max(1, block.wholeMilliseconds)))
        return reads.count == 1 ? step : nil
    }

    /// Handles the answer to a step. Returns the read that ended, and the step to carry out next.
    mutating func answered(_ answer: Result<RESPValue, RedisError>) -> (finished: Finished?, next: Step?) {
        guard let read = reads.first else { return (nil, nil) }
        let result = answer.flatMap { value in
            Result { () throws(RedisError) in try RedisStreamEntry.read(value) }
        }
        let left = read.left - Self.longestStep
        if case .success([]) = result, left > 0 {
            reads[0].left = left
            return (nil, step)
        }
        reads.removeFirst()
        return (Finished(id: read.id, result: result), step)
    }

    private var step: Step? {
        guard let read = reads.first else { return nil }
        let block = min(read.left, Self.longestStep)
        let arguments: [RedisCommand.Argument] =
            ["COUNT", .number(read.count), "BLOCK", .number(block), "STREAMS"]
            + read.streams.map { .text($0.stream) } + read.streams.map { .text($0.after) }
        return Step(command: RedisCommand("XREAD", arguments), timeout: .milliseconds(block) + Self.answerTimeout)
    }
}
