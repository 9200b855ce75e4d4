import TestSupport
import Testing
import Wire

@testable import Signaling

/// Tests how letters share the entries that nodes post to each other.
@Suite struct LetterPackingTests {
    private func read(_ entries: [[UInt8]]) -> [Result<Letter, LetterError>] {
        var unpacker = LetterUnpacker()
        return entries.flatMap { unpacker.read($0) }
    }

    @Test func lettersOfOneTurnShareAnEntry() throws {
        var packer = LetterPacker(entrySize: 256 << 10)
        let letters = try GoldenLetter.all.map { try Letter(encoded: $0.bytes) }
        for letter in letters { try packer.append(letter) }
        #expect(packer.entries.count == 1)
        #expect(read(packer.entries) == letters.map { .success($0) })
    }

    @Test func withoutLettersThereIsNoEntry() {
        #expect(LetterPacker(entrySize: 100).entries.isEmpty)
        #expect(read([[]]).isEmpty)
    }

    @Test func lettersAreReadTheSameFromEntriesOfAnySize() throws {
        let seed = UInt64.random(in: 1...UInt64.max)
        print("seed of the packed letters: \(seed)")
        var random = SeededGenerator(seed: seed)
        let golden = try GoldenLetter.all.map { try Letter(encoded: $0.bytes) }
        for _ in 0..<300 {
            let size = Int.random(in: 1...2000, using: &random)
            var packer = LetterPacker(entrySize: size)
            let letters = (0..<Int.random(in: 0...20, using: &random)).compactMap { _ in
                golden.randomElement(using: &random)
            }
            for letter in letters { try packer.append(letter) }
            #expect(packer.entries.allSatisfy { !$0.isEmpty && $0.count <= size }, "seed \(seed)")
            #expect(read(packer.entries) == letters.map { .success($0) }, "seed \(seed)")
        }
    }

    @Test func onlyALetterThatIsLargerThanAnEntryIsDivided() throws {
        let letter = Letter.match(.blank, .leave(.blank, .stopped))
        let size = try letter.encoded().count + 1
        var packer = LetterPacker(entrySize: 2 * size - 1)
        for _ in 0..<3 { try packer.append(letter) }
        #expect(packer.entries.map(\.count) == [size, size, size])
        var exact = LetterPacker(entrySize: 2 * size)
        for _ in 0..<3 { try exact.append(letter) }
        #expect(exact.entries.map(\.count) == [2 * size, size])
    }

    @Test func aMessageToVeryManyClientsIsSplit() throws {
        let clients = (0..<15_000).map { ConnectionID(high: 1, low: UInt64($0)) }
        let message = BroadcastMessage(.pong)
        var packer = LetterPacker(entrySize: 256 << 10)
        try packer.append(.clients(clients, message))
        #expect(packer.entries.allSatisfy { $0.count <= 256 << 10 })
        var received: [ConnectionID] = []
        for result in read(packer.entries) {
            guard case .success(.clients(let ids, let read)) = result else {
                Issue.record("\(result) is not a message to clients")
                continue
            }
            #expect(read == message)
            received += ids
        }
        #expect(received == clients)
    }

    @Test func aLetterThatStaysHereLeavesTheEntriesAsTheyWere() throws {
        var packer = LetterPacker(entrySize: 1000)
        try packer.append(.pool(.withdraw(.blank)))
        let before = packer.entries
        #expect(throws: LetterError.staysHere) { try packer.append(.hall(.blank)) }
        #expect(packer.entries == before)
    }

    @Test func aDamagedLetterDoesNotAffectItsNeighbors() throws {
        let letter = Letter.pool(.withdraw(.blank))
        let line = try letter.encoded() + [0x0A]
        let results = read([line + Array("{\n".utf8) + line])
        #expect(results.count == 3)
        #expect(results.first == .success(letter) && results.last == .success(letter))
        #expect(throws: LetterError.self) { try results[1].get() }
    }

    @Test func aLetterWithoutEndIsNotKept() {
        var unpacker = LetterUnpacker()
        let part = [UInt8](repeating: UInt8(ascii: "a"), count: 256 << 10)
        for _ in 0..<20 { #expect(unpacker.read(part).isEmpty) }
        #expect(unpacker.read([0x0A]) == [.failure(.tooLarge(Letter.maxEncodedSize + 1))])
        // The next letter is read again.
        let next = try? Letter.pool(.withdraw(.blank)).encoded()
        #expect(unpacker.read((next ?? []) + [0x0A]) == [.success(.pool(.withdraw(.blank)))])
    }
}
