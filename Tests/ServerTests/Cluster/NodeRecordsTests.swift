import Cluster
import Foundation
import TestSupport
import Testing

@testable import Redis
@testable import Server

@Suite("The records of nodes") struct NodeRecordsTests {
    private static let first = NodeTag(node: 1, life: 1)!
    private static let second = NodeTag(node: 2, life: 2)!
    private static let third = NodeTag(node: 3, life: 3)!

    private static func record(_ tag: NodeTag, load: Double = 0) -> NodeRecord {
        var record = NodeRecord(
            tag: tag, url: "https://n\(tag.node).example.org", socketAddress: "192.0.2.\(tag.node):8080", region: "",
            version: "1.0", letters: .init(speaks: 1, reads: 1...1))
        (record.load.rules, record.state) = (load, .draining)
        if load > 0 { record.state = .serving }
        record.counts.clients = 7
        return record
    }

    private let seal = NodeRecordSeal(secret: "secret")
    private var node: NodeRecords { NodeRecords(seal) }

    private func published(_ tag: NodeTag, by secret: String = "secret", load: Double = 0) throws -> [UInt8] {
        var records = NodeRecords(NodeRecordSeal(secret: secret))
        return try records.sealed(Self.record(tag, load: load))
    }

    @Test func `a node reads all that another one has published`() throws {
        var node = node
        let refusals = node.read([Self.second: try published(Self.second)], living: [Self.second, Self.third])
        #expect(refusals.isEmpty)
        #expect(node.records == [Self.second: Self.record(Self.second)])
        // A record that has expired in Redis does not count any more.
        #expect(node.read([:], living: [Self.second]).isEmpty)
        #expect(node.records.isEmpty)
    }

    @Test func `a record of a release that does not know all members is read`() throws {
        var record = try #require(
            try JSONSerialization.jsonObject(with: JSONEncoder().encode(Self.record(Self.second))) as? [String: Any])
        record["checkedMsAgo"] = nil
        record["unknown"] = 1
        let sealed = try seal.seal(
            Array(JSONSerialization.data(withJSONObject: record)), of: Self.second, number: 1)
        var node = node
        #expect(node.read([Self.second: sealed], living: [Self.second]).isEmpty)
        #expect(node.records == [Self.second: Self.record(Self.second)])
    }

    @Test func `a record says how to open relays, unless its release has none`() throws {
        var node = node
        var record = Self.record(Self.second)
        record.relays = NodeRelays(
            fingerprint: String(repeating: "0a", count: 32), loops: [["192.0.2.2:40000"], ["192.0.2.2:40001"]],
            versions: 1...1)
        var other = NodeRecords(seal)
        _ = node.read([Self.second: try other.sealed(record)], living: [Self.second])
        #expect(node.records[Self.second]?.relays == record.relays)
        record.relays = nil
        _ = node.read([Self.second: try other.sealed(record)], living: [Self.second])
        #expect(node.records[Self.second] == record)
    }

    @Test func `requests of the load balancer are no sign of clients`() {
        var traffic = DoorTraffic()
        for uri in ["/ready", "/ready?unready=404", "/live", "/health", "/", "/v1/socket?at=n2", "/ready/"] {
            traffic.request(uri)
        }
        #expect(traffic.checks == 2 && traffic.heard == 3)
    }

    @Test func `a forged node record is ignored, and named once until the node's own record is back`() throws {
        var node = node
        let forged = try published(Self.second, by: "stolen")
        for found in [forged, [1, 2, 3], []] {
            let refusals = node.read([Self.second: found], living: [Self.second])
            #expect(refusals.map(\.tag) == (found == forged ? [Self.second] : []))
            #expect(node.records.isEmpty)
        }
        #expect(node.read([Self.second: try published(Self.second)], living: [Self.second]).isEmpty)
        #expect(node.records.count == 1)
        let again = node.read([Self.second: forged], living: [Self.second])
        #expect(again.map(\.1) == [.sealed(.forged)])
        // A record of one life does not count for another.
        #expect(node.read([Self.third: try published(Self.second)], living: [Self.third]).map(\.tag) == [Self.third])
    }

    @Test func `a record that is written again when a newer one was read is ignored`() throws {
        var (node, other) = (node, NodeRecords(seal))
        let old = try other.sealed(Self.record(Self.second, load: 0.1))
        let new = try other.sealed(Self.record(Self.second, load: 0.9))
        for found in [old, new, new] { #expect(node.read([Self.second: found], living: [Self.second]).isEmpty) }
        #expect(node.read([Self.second: old], living: [Self.second]).map(\.1) == [.sealed(.replayed)])
        #expect(node.records.isEmpty)
    }

    @Test func `a record of a release that writes something else is ignored`() throws {
        var node = node
        let unknown = try seal.seal(Array(#"{"tag":"2-2","state":"asleep"}"#.utf8), of: Self.second, number: 1)
        #expect(node.read([Self.second: unknown], living: [Self.second]).map(\.1) == [.unreadable])
    }

    @Test func `a wrong clock is reported with its direction`() {
        #expect("\(NodeClockDiffers(difference: .seconds(3)))".contains("3 seconds ahead of that of PostgreSQL"))
        #expect("\(NodeClockDiffers(difference: .milliseconds(-4500)))".contains("4 seconds behind that of PostgreSQL"))
    }

    @Test func `a node with another secret does not start, and one record that opens is enough`() throws {
        let (good, bad) = (try published(Self.second), try published(Self.third, by: "other"))
        #expect(NodeRecords.compare(seal, with: [:]) == .unknown)
        #expect(NodeRecords.compare(seal, with: [Self.third: bad]) == .different([Self.third]))
        #expect(
            NodeRecords.compare(seal, with: [Self.third: bad, Self.second: bad])
                == .different([Self.second, Self.third]))
        #expect(NodeRecords.compare(seal, with: [Self.third: bad, Self.second: good]) == .same)
        // The secret from before a rotation.
        let rotated = NodeRecordSeal(secret: "other", former: "secret")
        #expect(NodeRecords.compare(rotated, with: [Self.second: good]) == .same)
        let text = "\(NodeSecretDiffers(nodes: [Self.second, Self.third]))"
        #expect(text.contains("(node 2, node 3)") && text.contains("project.json"))
    }

    @Test func `after a rotation records of the new secret are opened, and older ones are still replayed`() throws {
        var (node, other) = (node, NodeRecords(seal))
        let old = try other.sealed(Self.record(Self.second))
        let new = try other.sealed(Self.record(Self.second))
        #expect(node.read([Self.second: new], living: [Self.second]).isEmpty)
        let rotated = NodeRecordSeal(secret: "new", former: "secret")
        node.use(rotated)
        #expect(node.read([Self.second: old], living: [Self.second]).map(\.1) == [.sealed(.replayed)])
        other.use(rotated)
        #expect(node.read([Self.second: try other.sealed(Self.record(Self.second))], living: [Self.second]).isEmpty)
    }

    @Test func `a busy node lets a less busy one create what may be anywhere`() throws {
        var node = node
        var random = SeededGenerator(seed: 1)
        let own = Self.record(Self.first, load: 0.8)
        #expect(node.choice(insteadOf: own, using: &random) == nil, "there is no other")
        _ = node.read([Self.second: try published(Self.second, load: 0.75)], living: [Self.second])
        #expect(node.choice(insteadOf: own, using: &random) == nil, "the other is busy too")
        _ = node.read([Self.second: try published(Self.second)], living: [Self.second])
        #expect(node.choice(insteadOf: own, using: &random) == nil, "the other drains")
        _ = node.read([Self.third: try published(Self.third, load: 0.2)], living: [Self.third])
        #expect(node.choice(insteadOf: own, using: &random) == Self.third)
        #expect(node.choice(insteadOf: Self.record(Self.first, load: 0.6), using: &random) == nil)
    }

    @Test func `the load is the share of processor time, over at least a second`() {
        func reading(_ at: Int, rules: Int, process: Int, packets: UInt64) -> LoadMeter.Reading {
            .init(
                at: .milliseconds(at), rules: .milliseconds(rules), process: .milliseconds(process), packets: packets)
        }
        var meter = LoadMeter()
        meter.measure(reading(5000, rules: 100, process: 900, packets: 10), mediaLoops: 2, sockets: 3)
        #expect(meter.load == NodeRecord.Load(sockets: 3))
        meter.measure(reading(5500, rules: 600, process: 1400, packets: 10), mediaLoops: 2, sockets: 4)
        #expect(meter.load == NodeRecord.Load(sockets: 4))
        meter.measure(reading(7000, rules: 600, process: 2400, packets: 1010), mediaLoops: 2, sockets: 4)
        #expect(meter.load == NodeRecord.Load(rules: 0.25, media: 0.25, packetsPerSecond: 500, sockets: 4))
    }
}

/// Records in Redis.
@Suite(
    .enabled(if: RunningRedis.executable != nil, "redis-server is not installed, so records in Redis are not tested."),
    .timeLimit(.minutes(3)))
struct NodeRecordsInRedisTests {
    private static let first = NodeTag(node: 1, life: 1)!
    private static let second = NodeTag(node: 2, life: 2)!

    @Test func `a stolen password of Redis is enough to hide a record, and for nothing else`() async throws {
        let redis = try await RunningRedis()
        defer { redis.remove() }
        let observed = try ObservedClient(redis)
        let (mine, other) = (
            RedisPlaces(observed.client, of: Self.first), RedisPlaces(observed.client, of: Self.second)
        )
        var (node, publisher) = (NodeRecords(NodeRecordSeal(secret: "s")), NodeRecords(NodeRecordSeal(secret: "s")))
        let record = NodeRecord(
            tag: Self.second, url: "https://n2.example.org", socketAddress: "", region: "", version: "1",
            letters: .init(speaks: 1, reads: 1...1))
        func read() async throws -> NodeRecord? {
            _ = node.read(try await mine.records(of: [Self.first, Self.second]), living: [Self.second])
            return node.records[Self.second]
        }
        #expect(try await read() == nil)
        let old = try publisher.sealed(record)
        try await other.publish(old)
        #expect(try await read() == record)
        try await other.publish(publisher.sealed(record))
        #expect(try await read() == record)
        let key = RedisCommand.Argument.text("confab:node:2-2")
        // The thief reads nothing, ...
        let stored = try await observed.client.send(RedisCommand("GET", key)).bytes
        #expect(!String(decoding: try #require(stored), as: UTF8.self).contains("example"))
        // ... and cannot write: other bytes, another type, an old record.
        try await observed.client.send(RedisCommand("SET", key, "forged"))
        #expect(try await read() == nil)
        try await observed.client.send(RedisCommand("DEL", key))
        try await observed.client.send(RedisCommand("RPUSH", key, "forged"))
        #expect(try await read() == nil)
        try await other.publish(old)
        #expect(try await read() == nil)
        try await other.publish(publisher.sealed(record))
        #expect(try await read() == record)
        // A node that has ended disappears by itself.
        let left = try await observed.client.send(RedisCommand("PTTL", key)).integer
        #expect((1...10_000).contains(try #require(left)))
        await observed.client.close()
    }
}
