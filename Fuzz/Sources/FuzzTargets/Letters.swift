import Signaling

extension FuzzTarget {
    /// Fuzzes an entry of letters from another node. What can be read is encoded and read again the same, and it does not matter
    /// where an entry ends.
    static let letters = FuzzTarget("letters", longestInput: 1500, dictionary: "messages") {
        input throws(BrokenProperty) in
        let entry = input + [UInt8(ascii: "\n")]
        let letters = read([entry])
        for case .success(let letter) in letters { try checkEncoding(of: letter) }
        let middle = Int(input.first ?? 0) % entry.count
        let divided = read([Array(entry[..<middle]), Array(entry[middle...])])
        try require(divided == letters, "the entry is read differently if it is divided after \(middle) bytes")
    }
}

private func read(_ entries: [[UInt8]]) -> [Result<Letter, LetterError>] {
    var unpacker = LetterUnpacker()
    return entries.flatMap { unpacker.read($0) }
}

private func checkEncoding(of letter: Letter) throws(BrokenProperty) {
    var packer = LetterPacker(entrySize: 100)
    do throws(LetterError) { try packer.append(letter) } catch {
        throw BrokenProperty(description: "\(letter) was read and cannot be encoded: \(error)")
    }
    try require(read(packer.entries) == [.success(letter)], "\(letter) is read back differently")
    let bytes = try? letter.encoded()
    let again = bytes.flatMap { try? Letter(encoded: $0).encoded() }
    try require(again == bytes, "\(letter) has two encodings")
}
