import TestSupport
import Testing
import Wire

/// Tests the readers with arbitrary input. They may return an error but must never crash.
@Suite struct HostileInputTests {
    /// No proper prefix of a JSON object is valid, so every truncated object must be refused without a crash.
    @Test(arguments: GoldenMessage.all) func truncatedMessagesAreRefused(_ golden: GoldenMessage) {
        let bytes = golden.bytes.dropLast()
        let readable = (0..<bytes.count).filter { length in
            golden.isFromClient
                ? (try? Envelope<ClientMessage>.decode(bytes.prefix(length))) != nil
                : (try? Envelope<ServerMessage>.decode(bytes.prefix(length))) != nil
        }
        #expect(readable == [])
    }

    /// Every value that can be read must survive writing and reading again. Otherwise one peer could receive something
    /// that the other never sent.
    @Test func mutatedMessagesNeverCrashAndRoundTripIfValid() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("mutated messages: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let corpus = GoldenMessage.all
        try #require(!corpus.isEmpty)
        var read = 0
        var changed: [Int] = []
        for round in 0..<30_000 {
            let golden = corpus[round % corpus.count]
            var bytes = golden.bytes
            for _ in 0..<Int.random(in: 1...2, using: &generator) { mutate(&bytes, corpus, using: &generator) }
            if golden.isFromClient {
                guard let envelope = try? Envelope<ClientMessage>.decode(bytes) else { continue }
                if try Envelope<ClientMessage>.decode(envelope.encode()) != envelope { changed.append(round) }
            } else {
                guard let envelope = try? Envelope<ServerMessage>.decode(bytes) else { continue }
                if try Envelope<ServerMessage>.decode(envelope.encode()) != envelope { changed.append(round) }
            }
            read += 1
        }
        print("mutated messages: \(read) of 30000 could be read")
        #expect(read > 1000)
        #expect(changed == [], "seed \(seed)")
    }

    @Test func randomBytesNeverCrash() {
        let seed = UInt64.random(in: 0 ... .max)
        print("meaningless bytes: seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        // Use mostly JSON's own characters, because random bytes would be refused at the first byte.
        let alphabet = Array(#"{}[]":,\u0123456789abcdefntrE+-. "#.utf8) + [0x00, 0x80, 0xC3, 0xED, 0xF0, 0xFF]
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...48, using: &generator)
            let bytes = (0..<count).map { _ in alphabet[Int.random(in: alphabet.indices, using: &generator)] }
            guard let value = try? JSONReader.parse(bytes) else { continue }
            var writer = JSONWriter()
            writer.value(value)
            #expect((try? JSONReader.parse(writer.bytes)) == value, "seed \(seed): \(bytes)")
        }
    }

    private func mutate(_ bytes: inout [UInt8], _ corpus: [GoldenMessage], using generator: inout SeededGenerator) {
        guard !bytes.isEmpty else { return bytes.append(UInt8(ascii: "{")) }
        let at = Int.random(in: bytes.indices, using: &generator)
        switch Int.random(in: 0..<7, using: &generator) {
        case 0: bytes[at] = .random(in: .min ... .max, using: &generator)
        case 1: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case 2: bytes.remove(at: at)
        case 3: bytes.insert(.random(in: .min ... .max, using: &generator), at: at)
        case 4:
            let end = min(bytes.count, at + Int.random(in: 1...20, using: &generator))
            bytes.insert(contentsOf: bytes[at..<end], at: Int.random(in: bytes.indices, using: &generator))
        case 5:
            let other = corpus[Int.random(in: corpus.indices, using: &generator)].bytes
            let from = Int.random(in: other.indices, using: &generator)
            bytes.replaceSubrange(at..., with: other[from...])
        default:
            // Insert numbers, to test for arithmetic overflow.
            let numbers = [
                "9223372036854775807", "-9223372036854775808", "9007199254740993", "1e308", "-1", "0.1", "null",
            ]
            bytes.insert(contentsOf: numbers[Int.random(in: numbers.indices, using: &generator)].utf8, at: at)
        }
    }
}
