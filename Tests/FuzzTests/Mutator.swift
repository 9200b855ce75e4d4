import Foundation
import TestSupport

/// Derives new inputs from a target's stored inputs, without coverage. The mutations are those of libFuzzer, but they
/// are reproducible.
///
/// Input number `n` depends only on the seed, on `n` and on the stored inputs, so a failure can be reproduced from its
/// seed and number.
/// its seed and number.
struct Mutator {
    let seed: UInt64
    /// The maximum length in bytes. Longer inputs are truncated.
    let longestInput: Int
    private let inputs: [[UInt8]]
    private let words: [[UInt8]]

    init(_ target: FuzzTarget, seed: UInt64) {
        self.seed = seed
        longestInput = target.longestInput
        inputs = KeptInput.all(of: target).map(\.bytes)
        words = target.dictionary.map(FuzzDictionary.words) ?? []
    }

    func input(_ number: Int) -> [UInt8] {
        // Multiplying by an odd constant makes the generators of consecutive numbers unrelated.
        var generator = SeededGenerator(seed: seed ^ (UInt64(truncatingIfNeeded: number) &* 0xD134_2543_DE82_EF95))
        var bytes = inputs.randomElement(using: &generator) ?? []
        for _ in 0..<Int.random(in: 1...5, using: &generator) {
            mutate(&bytes, using: &generator)
        }
        return Array(bytes.prefix(longestInput))
    }

    private func mutate(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        switch Int.random(in: 0..<9, using: &generator) {
        case 0: flipBit(&bytes, using: &generator)
        case 1: overwriteByte(&bytes, using: &generator)
        case 2: bytes.insert(contentsOf: randomBytes(using: &generator), at: place(in: bytes, using: &generator))
        case 3: bytes.removeSubrange(range(in: bytes, using: &generator))
        case 4: repeatRange(&bytes, using: &generator)
        case 5: changeNumber(&bytes, using: &generator)
        case 6: splice(&bytes, using: &generator)
        default:
            // Dictionary words have a probability of two in nine, because text formats depend on keywords.
            guard let word = words.randomElement(using: &generator) else { return flipBit(&bytes, using: &generator) }
            insertWord(word, in: &bytes, using: &generator)
        }
    }

    private func flipBit(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        guard let index = bytes.indices.randomElement(using: &generator) else { return }
        bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    }

    private func overwriteByte(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        guard let index = bytes.indices.randomElement(using: &generator) else { return }
        let boundaries: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF]
        bytes[index] = boundaries.randomElement(using: &generator) ?? 0
        if Bool.random(using: &generator) { bytes[index] = .random(in: 0 ... .max, using: &generator) }
    }

    private func repeatRange(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        let part = Array(bytes[range(in: bytes, using: &generator)])
        let times = Int.random(in: 1...8, using: &generator)
        let copies = Array(repeatElement(part, count: times).joined()).prefix(longestInput)
        bytes.insert(contentsOf: copies, at: place(in: bytes, using: &generator))
    }

    /// Overwrites one, two, four or eight bytes with a big-endian boundary value, because these bytes may be a length
    /// or a count.
    private func changeNumber(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        let width = [1, 2, 4, 8].randomElement(using: &generator) ?? 1
        guard bytes.count >= width else { return }
        let start = Int.random(in: 0...(bytes.count - width), using: &generator)
        let values: [UInt64] = [
            0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, .max >> 1, .max,
            UInt64(bytes.count),
        ]
        let value = values.randomElement(using: &generator) ?? 0
        for offset in 0..<width {
            bytes[start + offset] = UInt8(truncatingIfNeeded: value >> UInt64(8 * (width - 1 - offset)))
        }
    }

    /// Replaces the tail with the tail of another stored input.
    private func splice(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        guard let other = inputs.randomElement(using: &generator) else { return }
        bytes.removeSubrange(place(in: bytes, using: &generator)...)
        bytes += other[place(in: other, using: &generator)...]
    }

    private func insertWord(_ word: [UInt8], in bytes: inout [UInt8], using generator: inout SeededGenerator) {
        let start = place(in: bytes, using: &generator)
        let replaced = Bool.random(using: &generator) ? min(word.count, bytes.count - start) : 0
        bytes.replaceSubrange(start..<(start + replaced), with: word)
    }

    private func randomBytes(using generator: inout SeededGenerator) -> [UInt8] {
        (0..<Int.random(in: 1...8, using: &generator)).map { _ in .random(in: 0 ... .max, using: &generator) }
    }

    private func place(in bytes: [UInt8], using generator: inout SeededGenerator) -> Int {
        .random(in: 0...bytes.count, using: &generator)
    }

    private func range(in bytes: [UInt8], using generator: inout SeededGenerator) -> Range<Int> {
        let (one, other) = (place(in: bytes, using: &generator), place(in: bytes, using: &generator))
        return min(one, other)..<max(one, other)
    }
}

/// Reads `Fuzz/Dictionaries/<name>.dict` in libFuzzer's format: `"word"` or `name="word"` on each line, comments after
/// `#`, and the escapes `\"`, `\\` and `\xAB`.
enum FuzzDictionary {
    static func words(_ name: String) -> [[UInt8]] {
        let file = KeptInput.root.appending(path: "Fuzz/Dictionaries/\(name).dict")
        guard let data = try? Data(contentsOf: file) else { return [] }
        return data.split(separator: UInt8(ascii: "\n")).compactMap { word(inLine: Array($0)) }
    }

    static func word(inLine line: [UInt8]) -> [UInt8]? {
        let quote = UInt8(ascii: "\"")
        guard line.first != UInt8(ascii: "#"), let start = line.firstIndex(of: quote) else { return nil }
        var word: [UInt8] = []
        var rest = line[(start + 1)...]
        while let byte = rest.popFirst(), byte != quote {
            guard byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() else {
                word.append(byte)
                continue
            }
            guard escaped == UInt8(ascii: "x") else {
                word.append(escaped)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            rest = rest.dropFirst(2)
            guard let value = UInt8(digits, radix: 16) else { return nil }
            word.append(value)
        }
        return word.isEmpty ? nil : word
    }
}
