import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#endif

/// The entry point. `Benchmarks/redis` starts the Redis that is measured, this program, and puts its rows into a table.
@main
enum Main {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        let numbers = arguments.dropLast().map { Int($0) ?? 0 }
        guard let goal = arguments.last, numbers.count == 7, numbers.allSatisfy({ $0 > 0 }) else {
            print("usage: RedisLoad PORT PID PLACES LETTERS SECONDS NODES TURN GOAL")
            exit(64)
        }
        do {
            try await measure(
                ServerProcess(name: "Redis", port: numbers[0], id: numbers[1]), places: numbers[2],
                letters: numbers[3], seconds: Int64(numbers[4]), nodes: numbers[5], turn: Int64(numbers[6]),
                goal: goal)
        } catch {
            print("The measurement failed: \(error)")
            exit(1)
        }
    }

    static func row(_ what: String, _ figure: String, _ goal: String = "") {
        print("| \(what) | \(figure) | \(goal) |")
        // The rows are passed on while the measurement continues.
        fflush(nil)
    }

    /// - Parameter goal: for the CPU time of Redis, with turns. Empty for none.
    private static func measure(
        _ redis: ServerProcess, places: Int, letters: Int, seconds: Int64, nodes: Int, turn: Int64, goal: String
    ) async throws {
        // One processor is left to Redis. A node of the server uses one event loop for Redis, too.
        let threads = max(1, min(nodes, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) - 1))
        let group = MultiThreadedEventLoopGroup(numberOfThreads: threads)
        var crowd: [LoadNode] = []
        for number in 1...nodes { crowd.append(try LoadNode(number, port: redis.port, on: group.next())) }
        let cluster = LoadCluster(nodes: crowd, redis: redis, people: places)
        try await cluster.start()
        try await cluster.fill()
        let modes: [(Traffic.Turns, String)] = [(.every(.milliseconds(turn)), goal), (.ofOneLetter, "")]
        for (turns, goal) in modes {
            let traffic = Traffic(letters: letters, nodes: nodes, turns: turns)
            try await cluster.measure(traffic, for: .seconds(seconds), goal: goal)
        }
        row("memory of Redis at the end, at most", "\((redis.peakBytes() / 1e6).text(0)) MB")
        for node in crowd { await node.close() }
        try await group.shutdownGracefully()
    }
}

/// Why a measurement has no result.
struct Failure: Error, CustomStringConvertible { let description: String }
