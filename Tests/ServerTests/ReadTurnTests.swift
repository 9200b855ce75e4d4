import Testing

@testable import Server

@Suite("The turn of a socket")
struct ReadTurnTests {
    /// Reads batches with this many messages and datagrams until the turn is over.
    /// - Returns: for each batch, after how many datagrams the router flushed.
    private func read(messages: Int, datagrams: Int, burst: Int = 32) -> [[Int]] {
        var turn = ReadTurn()
        var batches: [[Int]] = []
        repeat {
            batches.append((1...max(1, datagrams)).filter { $0 <= datagrams && turn.passed() })
        } while batches.count < 10_000 && turn.continues(after: messages, of: burst)
        return batches
    }

    @Test("it ends when the socket is empty")
    func empty() {
        #expect(read(messages: 31, datagrams: 31) == [[]])
        #expect(read(messages: 0, datagrams: 0) == [[]])
        #expect(read(messages: 0, datagrams: 0, burst: 1) == [[]])
    }

    @Test("it ends after 512 datagrams", arguments: [1, 32, 64])
    func full(burst: Int) {
        let batches = read(messages: burst, datagrams: burst, burst: burst)
        #expect(batches.count == 512 / burst)
        #expect(batches.allSatisfy { $0 == (burst == 64 ? [64] : []) })
    }

    @Test("the router flushes after every 64 datagrams, however many the kernel has joined")
    func joined() {
        #expect(read(messages: 32, datagrams: 200) == [[64, 128, 192], [64, 128, 192], [64, 128, 192]])
        #expect(read(messages: 32, datagrams: 2048) == [(1...32).map { $0 * 64 }])
        #expect(read(messages: 1, datagrams: 64) == [[64]])
    }

    @Test("a flood of datagrams that are ignored ends it, too")
    func ignored() {
        #expect(read(messages: 32, datagrams: 0).count == 16)
        #expect(read(messages: 32, datagrams: 1).count == 16)
    }
}
