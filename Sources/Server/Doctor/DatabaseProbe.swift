import Cluster
import Foundation
import NIOPosix
import Redis
import Wire

/// Connects to PostgreSQL and Redis, and reads their versions and clocks. Changes nothing.
enum DatabaseProbe {
    private static let limit = Duration.seconds(8)

    static func postgresql(_ url: SecretText) async -> DatabaseObservation {
        let seen = await ProbeLimit.blocking(limit) { () -> DatabaseObservation in
            do {
                let connection = try PostgresConnection(try PostgresAddress(url), .ledger)
                let start = ContinuousClock.now
                let row = try connection.rows(
                    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS milliseconds", []
                ).first
                var seen = DatabaseObservation(version: "\(connection.serverVersion / 10_000)")
                if let time: Int64 = try row?.value("milliseconds") {
                    seen.clockAhead = ahead(of: .milliseconds(time), since: start)
                }
                return seen
            } catch {
                return DatabaseObservation(error: "\(error)")
            }
        }
        return seen ?? DatabaseObservation(error: "no answer in time.")
    }

    static func redis(_ configuration: ConfabConfiguration.Cluster) async -> DatabaseObservation {
        let seen = await ProbeLimit.within(limit) { () -> DatabaseObservation in
            do {
                let settings = RedisConfiguration(try configuration.redisLocation())
                let client = try NIORedisClient(settings, on: MultiThreadedEventLoopGroup.singleton.next())
                let seen = await ask(client)
                await client.close()
                return seen
            } catch {
                return DatabaseObservation(error: "\(error)")
            }
        }
        return seen ?? DatabaseObservation(error: "no answer in time.")
    }

    private static func ask(_ client: NIORedisClient) async -> DatabaseObservation {
        do throws(RedisError) {
            try await client.requireNoEviction()
            let name = "redis_version:"
            let lines =
                try await client.send(RedisCommand("INFO", "server")).text?.split(whereSeparator: \.isNewline) ?? []
            let version = lines.first { $0.hasPrefix(name) }?.dropFirst(name.count)
            var seen = DatabaseObservation(version: version.map(String.init) ?? "of an unknown version")
            let start = ContinuousClock.now
            let time = try await client.send(RedisCommand("TIME")).elements?.compactMap(\.integer) ?? []
            if time.count == 2, (0..<1 << 40).contains(time[0]), (0..<1_000_000).contains(time[1]) {
                seen.clockAhead = ahead(of: .seconds(time[0]) + .microseconds(time[1]), since: start)
            }
            return seen
        } catch {
            return DatabaseObservation(error: "\(error)")
        }
    }

    /// By how much this machine's clock is ahead of one that was read since `start`.
    private static func ahead(of other: Duration, since start: ContinuousClock.Instant) -> Duration {
        let wall = Duration.milliseconds(Int64(Date().timeIntervalSince1970 * 1000))
        return ClockCheck.difference(ledger: other, wall: wall, waited: ContinuousClock.now - start)
    }
}
