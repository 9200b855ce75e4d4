import Logging
import Wire

/// Runs the lives of a node one after another. A node that was declared dead begins again, because what it had in memory is void.
public struct NodeLives: Sendable {
    /// The longest pause between two lives.
    static let longestPause = Duration.seconds(8)

    let stop: StopSignal
    let logger: Logger
    /// Waits between two lives.
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// - Parameter stop: ends the life that runs, or the pause between two.
    public init(stop: StopSignal, logger: Logger) { (self.stop, self.logger) = (stop, logger) }

    /// Begins lives until one ends by itself, or the stop is requested.
    ///
    /// If a life ends before it has acted once, the next one waits: something is wrong that another life does not mend, such as a
    /// PostgreSQL that answers too slowly, and each life makes all nodes look at one more row.
    ///
    /// - Parameters:
    ///   - begin: begins a life. Canceled if the stop is requested.
    ///   - serve: runs the server with that life until the stop is requested. Throws ``NodeFenced`` if the life was declared dead.
    public func run<Life: Sendable>(
        begin: @escaping @Sendable () async throws -> Life, serve: @Sendable (Life) async throws -> Void
    ) async throws {
        let sleep = sleep
        var backoff = Backoff(longest: Self.longestPause)
        var random = SystemRandomNumberGenerator()
        while let life = try await stop.unlessGiven(begin) {
            do {
                return try await serve(life)
            } catch let fenced as NodeFenced {
                logger.error("\(fenced)")
                guard !fenced.hasActed else {
                    backoff = Backoff(longest: Self.longestPause)
                    continue
                }
                let pause = backoff.next(using: &random)
                logger.warning(
                    "The life ended before it could act. The next one begins after a pause.",
                    metadata: ["milliseconds": "\(pause.wholeMilliseconds)"])
                guard try await stop.unlessGiven({ try await sleep(pause) }) != nil else { return }
            }
        }
    }
}
