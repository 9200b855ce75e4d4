import Redis
import Testing

@testable import Server

/// The settings of a node in a cluster.
@Suite("Configuration of a cluster")
struct ClusterConfigurationTests {
    private let urls = "redis://:secret-word@redis1.example:6380, rediss://redis2.example"

    private func load(_ flags: [String: String]) throws(ConfigurationError) -> ConfabConfiguration {
        try ConfabConfiguration.load(overrides: flags, environment: [:], yaml: nil, named: "the file")
    }

    private func problems(_ flags: [String: String]) -> [ConfigurationError.Problem] {
        do { _ = try load(flags) } catch { return error.problems }
        return []
    }

    @Test("a node needs PostgreSQL and Redis, and Redis needs the number of a node")
    func requirements() throws {
        #expect(try load([:]).cluster.node == nil)
        #expect(problems(["cluster.node": "1"]).map(\.key) == ["cluster.node", "cluster.node"])
        #expect(problems(["cluster.redis": urls]).map(\.key) == ["cluster.redis"])
        #expect(problems(["cluster.relays": "true"]).map(\.key) == ["cluster.relays"])
        let complete = ["cluster.node": "1", "cluster.redis": urls, "storage.url": "postgresql://db.example/confab"]
        #expect(try load(complete).cluster.node == 1)
        #expect(
            problems(complete.merging(["cluster.sentinelTLS": "true"]) { $1 }).map(\.key) == ["cluster.sentinelPrimary"]
        )
    }

    @Test("the number of a node is from 1 to 65535", arguments: ["0", "65536", "-1", "one", "1.5"])
    func numbers(text: String) {
        #expect(problems(["cluster.node": text]).count == 1)
    }

    @Test("the URLs of Redis are secrets: neither errors nor the printed configuration show them")
    func secrets() throws {
        let configuration = try load([
            "cluster.node": "7", "cluster.redis": urls, "storage.url": "postgresql://db.example/confab",
        ])
        #expect(configuration.cluster.redis.count == 2)
        #expect(!"\(configuration)".contains("secret-word"))
        let wrong = problems(["cluster.redis": "http://:secret-word@redis.example"])
        #expect(wrong.count == 1)
        #expect(!"\(wrong)".contains("secret-word"))
    }

    @Test("Redis is found at the given addresses, or through Sentinels with the credentials of the primary")
    func locations() throws {
        var cluster = ConfabConfiguration.Cluster()
        cluster.redis = [SecretText("redis://a.example"), SecretText("redis://b.example:7000")]
        guard case .servers(let servers) = try cluster.redisLocation() else {
            Issue.record("no list of servers")
            return
        }
        #expect(servers.map(\.endpoint.port) == [6379, 7000])
        (cluster.sentinelPrimary, cluster.sentinelTLS) = ("main", true)
        cluster.sentinelCredentials = SecretText("confab:a:b")
        guard case .sentinels(let sentinels, "main", let credentials, true) = try cluster.redisLocation() else {
            Issue.record("no Sentinels")
            return
        }
        #expect(sentinels.count == 2)
        #expect(credentials == RedisCredentials(user: "confab", password: "a:b"))
        for text in ["confab", "confab:", ""] {
            #expect(ConfabConfiguration.Cluster.credentials(SecretText(text)) == nil, "\(text)")
        }
    }
}
