import Cluster
import Testing

@testable import Server

@Suite struct NodeRecordSealTests {
    private static let first = NodeTag(node: 1, life: 1)!
    private static let second = NodeTag(node: 1, life: 2)!
    private static let record = Array(#"{"url":"https://n1.example.org"}"#.utf8)

    private let seal = NodeRecordSeal(secret: "secret")

    private func sealed(_ number: UInt64, of tag: NodeTag = first) throws -> [UInt8] {
        try seal.seal(Self.record, of: tag, number: number)
    }

    @Test func `another node with the same secret opens a record`() throws {
        let opened = try NodeRecordSeal(secret: "secret").open(sealed(7), of: Self.first)
        #expect(opened.number == 7)
        #expect(opened.record == Self.record)
        #expect(try sealed(7) != sealed(7), "each has a nonce of its own")
        #expect(!String(decoding: try sealed(7), as: UTF8.self).contains("example"))
    }

    @Test func `a record of another secret is refused`() throws {
        let other = NodeRecordSeal(secret: "other")
        #expect(throws: NodeRecordSeal.Refusal.forged) { try other.open(sealed(7), of: Self.first) }
    }

    @Test func `the secret before a rotation opens records, and seals none`() throws {
        let rotated = NodeRecordSeal(secret: "new", former: "secret")
        #expect(try rotated.open(sealed(7), of: Self.first).record == Self.record)
        #expect(throws: NodeRecordSeal.Refusal.forged) {
            try seal.open(rotated.seal(Self.record, of: Self.first, number: 1), of: Self.first)
        }
    }

    @Test func `a record that was changed anywhere is refused`() throws {
        let original = try sealed(7)
        for index in original.indices {
            for bit in 0..<8 {
                var changed = original
                changed[index] ^= 1 << bit
                #expect(throws: NodeRecordSeal.Refusal.forged) { try seal.open(changed, of: Self.first) }
            }
        }
        for count in 0..<original.count {
            #expect(throws: NodeRecordSeal.Refusal.forged) {
                try seal.open(Array(original.prefix(count)), of: Self.first)
            }
        }
        #expect(throws: NodeRecordSeal.Refusal.forged) { try seal.open(original + [0], of: Self.first) }
        #expect(throws: NodeRecordSeal.Refusal.forged) {
            try seal.open([UInt8](repeating: 1, count: 100), of: Self.first)
        }
    }

    @Test func `a record does not count for another life`() throws {
        #expect(throws: NodeRecordSeal.Refusal.forged) { try seal.open(sealed(7), of: Self.second) }
    }

    @Test func `an older record is refused`() throws {
        var reader = NodeRecordReader(seal)
        let (old, new) = try (sealed(7), sealed(8))
        #expect(try reader.open(old, of: Self.first) == Self.record)
        #expect(try reader.open(new, of: Self.first) == Self.record)
        #expect(throws: NodeRecordSeal.Refusal.replayed) { try reader.open(old, of: Self.first) }
        #expect(try reader.open(new, of: Self.first) == Self.record, "nothing newer was published")
        // Each life counts for itself.
        #expect(try reader.open(sealed(1, of: Self.second), of: Self.second) == Self.record)
        // A forged number changes nothing.
        var forged = new
        forged[1] = 255
        #expect(throws: NodeRecordSeal.Refusal.forged) { try reader.open(forged, of: Self.first) }
        #expect(try reader.open(sealed(9), of: Self.first) == Self.record)
    }

    @Test func `remembers nothing of lives that have ended`() throws {
        var reader = NodeRecordReader(seal)
        _ = try reader.open(sealed(7), of: Self.first)
        reader.keep([Self.first])
        #expect(throws: NodeRecordSeal.Refusal.replayed) { try reader.open(sealed(6), of: Self.first) }
        reader.keep([Self.second])
        #expect(try reader.open(sealed(6), of: Self.first) == Self.record)
    }

    @Test func `refuses records that are too large`() throws {
        let size = NodeRecordSeal.maxSize
        #expect(throws: NodeRecordSeal.Refusal.tooLarge) {
            try seal.seal([UInt8](repeating: 0, count: size), of: Self.first, number: 1)
        }
        #expect(throws: NodeRecordSeal.Refusal.tooLarge) {
            try seal.open([UInt8](repeating: 1, count: size + 1), of: Self.first)
        }
    }
}
