import NIOCore
import NIOSSL
import TestSupport
import Testing

@testable import Redis

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The client against servers that these tests start.
@Suite(
    .enabled(if: RunningRedis.executable != nil, "redis-server is not installed, so the client is not tested with it."),
    .timeLimit(.minutes(3)))
struct RedisServerTests {
    /// Starts a server and a client, and stops both after the body.
    private func withRedis(
        _ settings: [String] = [], _ body: (ObservedClient, RunningRedis) async throws -> Void
    ) async throws {
        let redis = try await RunningRedis(settings)
        defer { redis.remove() }
        let observed = try ObservedClient(redis)
        do {
            try await body(observed, redis)
        } catch {
            await observed.client.close()
            throw error
        }
        await observed.client.close()
    }

    @Test func `authenticates a user of the access control list, and sets the name`() async throws {
        let redis = try await RunningRedis(["user default off", "user confab on >s3cret ~confab:* +@all"])
        defer { redis.remove() }
        func client(_ password: String) throws -> ObservedClient {
            var configuration = RedisConfiguration(
                .servers([try RedisURL("redis://confab:\(password)@127.0.0.1:\(redis.port)")]))
            configuration.connection.clientName = "node-1"
            return try ObservedClient(configuration)
        }
        let right = try client("s3cret")
        #expect(try await right.ready().version.isEmpty == false)
        #expect(try await right.client.send(RedisCommand("ACL", "WHOAMI")).text == "confab")
        #expect(try await right.client.send(RedisCommand("CLIENT", "GETNAME")).text == "node-1")
        let error = await #expect(throws: RedisError.self) { try await right.client.send(RedisCommand("GET", "other")) }
        #expect(error?.serverCode == "NOPERM" && error?.mayHaveExecuted == false)
        await right.client.close()

        let wrong = try client("wr0ng")
        let refusal = try await wrong.disconnected()
        #expect(refusal.code == .authenticationFailed)
        #expect(!refusal.description.contains("wr0ng"))
        await wrong.client.close()
        let nobody = try ObservedClient(redis)
        #expect(try await nobody.disconnected().code == .authenticationFailed)
        await nobody.client.close()
    }

    @Test(.enabled(if: RunningRedis.openssl != nil, "openssl is not installed, so there is no certificate for TLS."))
    func `verifies the server's certificate, and has one of its own`() async throws {
        let redis = try await RunningRedis(
            [
                "tls-cert-file FOLDER/certificate.pem", "tls-key-file FOLDER/key.pem",
                "tls-ca-cert-file FOLDER/certificate.pem", "tls-auth-clients yes",
            ], isSecure: true, prepare: { try RunningRedis.makeCertificate(in: $0) })
        defer { redis.remove() }
        func client(_ host: String, _ change: (inout TLSConfiguration) throws -> Void) throws -> ObservedClient {
            var configuration = RedisConfiguration(.servers([try RedisURL("rediss://\(host):\(redis.port)")]))
            try change(&configuration.tls)
            return try ObservedClient(configuration)
        }
        for host in ["127.0.0.1", "localhost"] {
            let trusting = try client(host) { tls in
                tls.trustRoots = .file(redis.certificate)
                tls.certificateChain = try NIOSSLCertificate.fromPEMFile(redis.certificate).map { .certificate($0) }
                tls.privateKey = .privateKey(
                    try NIOSSLPrivateKey(
                        file: redis.certificate.replacing("certificate.pem", with: "key.pem"), format: .pem))
            }
            _ = try await trusting.ready()
            #expect(try await trusting.client.send(RedisCommand("ECHO", "hello")).text == "hello")
            await trusting.client.close()
        }
        // Without its own certificate, and with the system's certificate authorities only.
        let anonymous = try client("127.0.0.1") { $0.trustRoots = .file(redis.certificate) }
        #expect(try await anonymous.disconnected().code == .connectionLost)
        await anonymous.client.close()
        let distrusting = try client("127.0.0.1") { _ in }
        #expect(try await distrusting.disconnected().code == .connectionLost)
        await distrusting.client.close()
    }

    @Test(.enabled(if: RunningRedis.openssl != nil, "openssl is not installed, so there is no certificate for TLS."))
    func `refuses a trusted certificate that is for another host`() async throws {
        let redis = try await RunningRedis(
            ["tls-cert-file FOLDER/certificate.pem", "tls-key-file FOLDER/key.pem", "tls-auth-clients no"],
            isSecure: true,
            prepare: { try RunningRedis.makeCertificate(in: $0, for: "DNS:other.example,IP:127.0.0.2") })
        defer { redis.remove() }
        for host in ["localhost", "127.0.0.1"] {
            var configuration = RedisConfiguration(.servers([try RedisURL("rediss://\(host):\(redis.port)")]))
            configuration.tls.trustRoots = .file(redis.certificate)
            let observed = try ObservedClient(configuration)
            let error = try await observed.disconnected()
            #expect(error.code == .connectionLost)
            #expect(error.message.lowercased().contains("certificate"), "\(error)")
            await observed.client.close()
        }
    }

    @Test func `reports that a server has too many connections, and connects when there is room`() async throws {
        try await withRedis { observed, redis in
            _ = try await observed.ready()
            try await observed.client.send(RedisCommand("CONFIG", "SET", "maxclients", 1))
            let second = try ObservedClient(redis)
            #expect(try await second.disconnected().code == .unavailable)
            try await observed.client.send(RedisCommand("CONFIG", "SET", "maxclients", 100))
            _ = try await second.ready()
            await second.client.close()
        }
    }

    @Test func `answers 10,000 commands in a pipeline in order`() async throws {
        try await withRedis { observed, _ in
            let client = observed.client
            let (numbers, report) = AsyncStream<Int64?>.makeStream()
            for index in 1...10_000 {
                client.submit(.command(RedisCommand("INCR", "count")), timeout: .seconds(30), onlyOn: nil) { result in
                    report.yield(try? result.get().integer)
                    if index == 10_000 { report.finish() }
                }
            }
            var found: [Int64?] = []
            for await number in numbers { found.append(number) }
            #expect(found == (1...10_000).map { Int64($0) })
        }
    }

    @Test func `refuses commands when too many wait`() async throws {
        try await withRedis { observed, redis in
            let client = observed.client
            _ = try await observed.ready()
            redis.send(SIGSTOP)
            let (errors, report) = AsyncStream<RedisError>.makeStream()
            for _ in 0..<16_385 {
                client.submit(.command(RedisCommand("INCR", "count")), timeout: .seconds(50), onlyOn: nil) { result in
                    if case .failure(let error) = result { report.yield(error) }
                }
            }
            let first = await errors.first { _ in true }
            #expect(first?.code == .overloaded && first?.mayHaveExecuted == false)
            redis.send(SIGCONT)
            try await until("all commands are answered") { await client.requestCount() == 0 }
            #expect(try await client.send(RedisCommand("GET", "count")).integer == 16_384)
        }
    }

    @Test func `loads scripts again after they were flushed, in order`() async throws {
        try await withRedis { observed, _ in
            let client = observed.client
            let script = RedisScript("return redis.call('RPUSH', KEYS[1], ARGV[1])")
            #expect(try await client.run(script, keys: ["list"], arguments: ["0"]).integer == 1)
            try await client.send(RedisCommand("SCRIPT", "FLUSH"))
            let (lengths, report) = AsyncStream<Int64?>.makeStream()
            for index in 1...100 {
                let request = RedisRequest.script(script, keys: ["list"], arguments: [.number(index)])
                client.submit(request, timeout: .seconds(30), onlyOn: nil) { result in
                    report.yield(try? result.get().integer)
                    if index == 100 { report.finish() }
                }
            }
            var found: [Int64?] = []
            for await length in lengths { found.append(length) }
            #expect(found == (2...101).map { Int64($0) })
            let list = try await client.send(RedisCommand("LRANGE", "list", 0, -1)).elements
            #expect(list?.map(\.integer) == (0...100).map { Int64($0) })
            let known = try await client.send(RedisCommand("SCRIPT", "EXISTS", .text(script.sha1))).elements
            #expect(known == [.number(1)])
            let error = await #expect(throws: RedisError.self) {
                try await client.run(RedisScript("return redis.call('NO')"))
            }
            #expect(error?.code == .rejected)
        }
    }

    @Test func `waits for entries of streams, while commands are answered`() async throws {
        try await withRedis { observed, _ in
            let client = observed.client
            #expect(try await client.read([.init("post", after: "0")], count: 10, block: .milliseconds(10)) == [])
            let waiting = Task {
                try await client.read(
                    [.init("post", after: "0"), .init("other", after: "0")], count: 10, block: .seconds(50))
            }
            // Only an entry that arrives while the read is blocked shows that it is.
            try await until("the read is blocked") {
                try await client.send(RedisCommand("INFO", "clients")).text?.contains("blocked_clients:1") == true
            }
            let id = try await client.send(RedisCommand("XADD", "post", "*", "letter", .bytes([0, 255, 13, 10]))).text
            let entries = try await waiting.value
            #expect(entries.map(\.stream) == ["post"])
            #expect(entries.map(\.id) == [id])
            #expect(entries.first?.fields == [.init(name: Array("letter".utf8), value: [0, 255, 13, 10])])
            for number in 0..<5 { try await client.send(RedisCommand("XADD", "post", "*", "n", .number(number))) }
            let last = try #require(entries.last?.id)
            let rest = try await client.read([.init("post", after: last)], count: 3, block: .seconds(1))
            #expect(rest.map { $0.fields.first?.value } == [Array("0".utf8), Array("1".utf8), Array("2".utf8)])
            // The second read waits for the first one, longer than it may block itself.
            let slow = Task { try await client.read([.init("none", after: "0")], count: 1, block: .seconds(3)) }
            try await until("the read is blocked") {
                try await client.send(RedisCommand("INFO", "clients")).text?.contains("blocked_clients:1") == true
            }
            #expect(try await client.read([.init("none", after: "0")], count: 1, block: .milliseconds(1)) == [])
            #expect(try await slow.value == [])
            try await client.send(RedisCommand("SET", "text", "no stream"))
            let error = await #expect(throws: RedisError.self) {
                try await client.read([.init("text", after: "0")], count: 1, block: .seconds(1))
            }
            #expect(error?.serverCode == "WRONGTYPE")
        }
    }

    @Test func `connects again after the server was killed`() async throws {
        try await withRedis { observed, redis in
            let client = observed.client
            let first = try await observed.ready()
            let read = Task { try await client.read([.init("post", after: "0")], count: 1, block: .seconds(50)) }
            try await until("the read is blocked") {
                try await client.send(RedisCommand("INFO", "clients")).text?.contains("blocked_clients:1") == true
            }
            // A stopped server receives the command, but neither executes nor answers it.
            redis.send(SIGSTOP)
            let lost = Task { try await client.send(RedisCommand("SET", "key", "value"), timeout: .seconds(50)) }
            // `submit` on the loop comes after the command.
            try await until("the command is sent") { await client.requestCount() == 1 }
            redis.crash()
            let loss = await #expect(throws: RedisError.self) { try await lost.value }
            #expect(loss?.code == .connectionLost && loss?.mayHaveExecuted == true)
            let readLoss = await #expect(throws: RedisError.self) { try await read.value }
            #expect(readLoss?.code == .connectionLost)
            let bound = await #expect(throws: RedisError.self) {
                try await client.send(RedisCommand("PING"), onlyOn: first.connection)
            }
            #expect(bound?.code == .connectionLost && bound?.mayHaveExecuted == false)
            let unsent = await #expect(throws: RedisError.self) {
                try await client.send(RedisCommand("PING"), timeout: .milliseconds(20))
            }
            #expect(unsent?.code == .timedOut && unsent?.mayHaveExecuted == false)
            let queued = Task { try await client.send(RedisCommand("GET", "key"), timeout: .seconds(50)) }
            try await redis.start()
            let second = try await observed.ready()
            #expect(second.connection > first.connection)
            #expect(try await queued.value == .null)
            try await client.send(RedisCommand("XADD", "post", "*", "n", "1"))
            #expect(try await client.read([.init("post", after: "0")], count: 1, block: .seconds(50)).count == 1)
        }
    }

    @Test func `finds out whether Redis deletes data when its memory is full`() async throws {
        try await withRedis { observed, _ in
            try await observed.client.requireNoEviction()
            try await observed.client.send(RedisCommand("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"))
            let error = await #expect(throws: RedisError.self) { try await observed.client.requireNoEviction() }
            #expect(error?.code == .unsuitable)
            #expect(error?.message.contains("allkeys-lru") == true)
        }
    }

    @Test func `follows Sentinel to the new primary`() async throws {
        let primary = try await RunningRedis()
        defer { primary.remove() }
        let replica = try await RunningRedis(["replicaof 127.0.0.1 \(primary.port)"])
        defer { replica.remove() }
        // A client that expects a primary does not use a replica.
        let misled = try ObservedClient(replica)
        #expect(try await misled.disconnected().code == .notPrimary)
        await misled.client.close()
        let direct = try ObservedClient(primary)
        // Sentinel learns of replicas from the primary, the second time only after 10 s.
        try await until("the replica is in step") {
            try await direct.client.send(RedisCommand("INFO", "replication")).text?.contains("state=online") == true
        }
        await direct.client.close()
        let sentinel = try await RunningRedis(
            [
                "sentinel monitor confab 127.0.0.1 \(primary.port) 1", "sentinel down-after-milliseconds confab 500",
                "sentinel failover-timeout confab 5000",
            ], isSentinel: true)
        defer { sentinel.remove() }
        // The first Sentinel is no Sentinel, and the second does not run.
        let urls = [replica.url, "redis://127.0.0.1:1", sentinel.url]
        let observed = try ObservedClient(
            RedisConfiguration(
                .sentinels(try urls.map { try RedisURL($0) }, primaryName: "confab", credentials: nil, isSecure: false))
        )
        let client = observed.client
        #expect(try await observed.ready().endpoint.port == primary.port)
        try await client.send(RedisCommand("SET", "key", "value"))
        try await client.send(RedisCommand("XADD", "post", "*", "n", "1"))
        #expect(try await client.send(RedisCommand("WAIT", 1, 2000), timeout: .seconds(10)).integer == 1)
        #expect(try await client.read([.init("post", after: "0")], count: 1, block: .seconds(1)).count == 1)
        try await sentinel.waitForReplica(of: "confab")
        primary.crash()
        #expect(try await observed.ready().endpoint.port == replica.port)
        #expect(try await client.send(RedisCommand("GET", "key"), timeout: .seconds(50)).text == "value")
        try await client.send(RedisCommand("XADD", "post", "*", "n", "2"))
        let entries = try await client.read([.init("post", after: "0")], count: 10, block: .seconds(20))
        // The entry from before the failover had reached the replica.
        #expect(entries.first?.fields == [.init(name: Array("n".utf8), value: Array("1".utf8))])
        await client.close()
    }
}
