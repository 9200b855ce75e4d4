import Cluster
import Testing

@testable import Server

@Suite("Sealed entries between nodes")
struct PostSealTests {
    private static let sender = NodeTag(node: 1, life: 5)!
    private static let receiver = NodeTag(node: 2, life: 6)!
    private static let position = PostPosition(series: 3, number: 0x1_0000_0001)
    private static let letters = PostContent.letters(Array("{\"to\":[\"person\"]}".utf8))

    private static func seal(
        _ secret: String = "secret", former: String? = nil, from sender: NodeTag = sender,
        to receiver: NodeTag = receiver
    ) -> PostSeal {
        PostSeal(secret: secret, former: former, from: sender, to: receiver)
    }

    @Test("an entry opens as it was sealed", arguments: [letters, .letters([]), .reset(series: 0x0102_0304)])
    func opens(content: PostContent) throws {
        let opened = try Self.seal().open(Self.seal().seal(content, at: Self.position))
        #expect(opened.position == Self.position)
        #expect(opened.content == content)
    }

    @Test("an entry of another life, for another life or of another project is refused")
    func refused() throws {
        let sealed = try Self.seal().seal(Self.letters, at: Self.position)
        let others = [
            Self.seal("another"), Self.seal(from: Self.receiver, to: Self.sender),
            Self.seal(to: NodeTag(node: 2, life: 7)!), Self.seal(from: NodeTag(node: 1, life: 4)!),
        ]
        for other in others { #expect(throws: PostSeal.Forged()) { try other.open(sealed) } }
    }

    @Test("an entry with any byte changed, removed or added is refused, and so is one with another position")
    func changed() throws {
        let sealed = try Self.seal().seal(Self.letters, at: Self.position)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: PostSeal.Forged()) { try Self.seal().open(changed) }
            #expect(throws: PostSeal.Forged()) { try Self.seal().open(Array(sealed.prefix(index))) }
        }
        #expect(throws: PostSeal.Forged()) { try Self.seal().open(sealed + [0]) }
    }

    @Test("after a rotation of the secret, entries with the one before still open")
    func rotation() throws {
        let old = try Self.seal("old").seal(Self.letters, at: Self.position)
        #expect(try Self.seal("new", former: "old").open(old).content == Self.letters)
        #expect(throws: PostSeal.Forged()) { try Self.seal("new").open(old) }
    }

    @Test("while nodes get a new secret in the order of docs/cluster.md, each opens what the others seal")
    func rotationOfSeveralNodes() throws {
        typealias Secrets = (current: String, former: String?)
        let (before, first): (Secrets, Secrets) = (("old", nil), ("old", "new"))
        let (second, after): (Secrets, Secrets) = (("new", "old"), ("new", nil))
        func opens(_ sealed: Secrets, by secrets: Secrets) throws -> Bool {
            let entry = try Self.seal(sealed.current, former: sealed.former).seal(Self.letters, at: Self.position)
            return (try? Self.seal(secrets.current, former: secrets.former).open(entry)) != nil
        }
        for (one, other) in [(before, first), (first, second), (second, after)] {
            #expect(try opens(one, by: other))
            #expect(try opens(other, by: one))
        }
        #expect(try !opens(second, by: before), "without the first step, this entry is lost")
    }

    @Test("an entry that is stored once more is dropped, and one that was removed ends the series")
    func replayed() throws {
        var inbox = PostInbox()
        func receive(_ sealed: [UInt8]) throws -> [PostInbox.Effect] {
            let (position, _) = try Self.seal().open(sealed)
            return inbox.receive(position, from: Self.sender, standing: .living, at: Instant(.zero))
        }
        let entries = try (1...4).map { try Self.seal().seal(Self.letters, at: PostPosition(number: $0)) }
        #expect(try receive(entries[0]) == [.accept])
        #expect(try receive(entries[1]) == [.accept])
        #expect(try receive(entries[0]).isEmpty, "replayed")
        #expect(
            try receive(entries[3]) == [.lost(Self.sender), .askReset(Self.sender, series: 1)], "the third was removed")
    }
}
