import Testing

@testable import Redis

@Suite struct RedisReadsTests {
    private typealias Step = RedisReads.Step

    private var reads = RedisReads()

    private static func step(_ stream: String, block: Int) -> Step {
        Step(
            command: RedisCommand("XREAD", "COUNT", 10, "BLOCK", .number(block), "STREAMS", .text(stream), "0"),
            timeout: .milliseconds(block) + .seconds(2))
    }

    private mutating func add(_ id: UInt64, _ stream: String, block: Duration) throws -> Step? {
        try reads.add(id, [.init(stream, after: "0")], count: 10, block: block)
    }

    private static func entry(_ stream: String) -> RESPValue {
        func text(_ text: String) -> RESPValue { .bulkString(Array(text.utf8)) }
        return .map([.init(text(stream), .array([.array([text("1-0"), .array([text("n"), text("1")])])]))])
    }

    @Test mutating func `a long read blocks Redis for a second at a time`() throws {
        #expect(try add(1, "a", block: .milliseconds(2500)) == Self.step("a", block: 1000))
        for block in [1000, 500] {
            let (finished, next) = reads.answered(.success(.null))
            #expect(finished == nil)
            #expect(next == Self.step("a", block: block))
        }
        let (finished, next) = reads.answered(.success(.null))
        #expect(finished == RedisReads.Finished(id: 1, result: .success([])))
        #expect(next == nil)
    }

    @Test mutating func `a read ends with the first entries`() throws {
        _ = try add(1, "a", block: .seconds(50))
        _ = reads.answered(.success(.null))
        let (finished, next) = reads.answered(.success(Self.entry("a")))
        #expect(try finished?.result.get().map(\.id) == ["1-0"])
        #expect(next == nil)
    }

    @Test mutating func `reads are carried out one after the other`() throws {
        _ = try add(1, "a", block: .seconds(2))
        #expect(try add(2, "b", block: .zero) == nil)
        #expect(reads.answered(.success(.null)).next == Self.step("a", block: 1000))
        let (first, next) = reads.answered(.failure(RedisError(.connectionLost, "reset")))
        #expect(first == RedisReads.Finished(id: 1, result: .failure(RedisError(.connectionLost, "reset"))))
        // Redis would block without end for 0 ms.
        #expect(next == Self.step("b", block: 1))
        let (second, last) = reads.answered(.success(.number(1)))
        #expect(second?.id == 2)
        #expect(throws: RedisError.self) { try second?.result.get() }
        #expect(last == nil)
        #expect(reads.answered(.success(.null)).finished == nil, "nothing is left")
    }

    @Test mutating func `refuses more reads than may wait`() throws {
        for id in 1...UInt64(RedisReads.maxReads) { _ = try add(id, "a", block: .seconds(1)) }
        let error = #expect(throws: RedisError.self) { try add(0, "a", block: .seconds(1)) }
        #expect(error?.code == .overloaded)
        _ = reads.answered(.failure(RedisError(.connectionLost, "reset")))
        #expect(try add(0, "a", block: .seconds(1)) == nil)
    }
}
