import Wire

/// Packs the letters to one node into entries of a limited size.
///
/// An entry is encoded letters, each followed by a line feed, which no encoded letter contains. Letters are not divided, except
/// those that are larger than an entry: their rest is at the beginning of the following entries.
public struct LetterPacker: Sendable {
    private static let lineFeed = UInt8(ascii: "\n")

    /// The entries, in the order in which they must be read.
    public private(set) var entries: [[UInt8]] = []
    private let entrySize: Int

    /// - Parameter entrySize: the maximum size of an entry in bytes, at least 1.
    public init(entrySize: Int) { self.entrySize = max(1, entrySize) }

    /// Appends a letter. A message to very many clients becomes several letters.
    ///
    /// - Throws: `staysHere` or `tooLarge`. Nothing was appended then.
    public mutating func append(_ letter: Letter) throws(LetterError) {
        guard case .clients(let ids, let message) = letter, ids.count > FieldCoder.maxClients else {
            return append(try letter.encoded())
        }
        for start in stride(from: 0, to: ids.count, by: FieldCoder.maxClients) {
            let end = min(start + FieldCoder.maxClients, ids.count)
            append(try Letter.clients(Array(ids[start..<end]), message).encoded())
        }
    }

    private mutating func append(_ letter: [UInt8]) {
        if let last = entries.indices.last, entries[last].count + letter.count < entrySize {
            entries[last] += letter
            entries[last].append(Self.lineFeed)
            return
        }
        var rest = (letter + [Self.lineFeed])[...]
        while !rest.isEmpty {
            entries.append(Array(rest.prefix(entrySize)))
            rest = rest.dropFirst(entrySize)
        }
    }
}

/// Reads the entries that one life of a node has posted, in their order.
///
/// If entries were lost, the rest of a letter may be missing. Use another unpacker for those that follow.
public struct LetterUnpacker: Sendable {
    /// The beginning of a letter whose rest is in the next entry.
    private var begun: [UInt8] = []
    /// Whether the letter that has begun is too large, so that its rest is skipped.
    private var isSkipping = false

    public init() {}

    /// Returns the letters that end in this entry. A letter that cannot be read does not affect the others.
    public mutating func read(_ entry: [UInt8]) -> [Result<Letter, LetterError>] {
        let lines = entry.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        var letters: [Result<Letter, LetterError>] = []
        for line in lines.dropLast() {
            extend(line)
            letters.append(finish())
        }
        if let rest = lines.last { extend(rest) }
        return letters
    }

    private mutating func extend(_ line: ArraySlice<UInt8>) {
        guard !isSkipping, begun.count + line.count <= Letter.maxEncodedSize else {
            (begun, isSkipping) = ([], true)
            return
        }
        begun += line
    }

    private mutating func finish() -> Result<Letter, LetterError> {
        let (bytes, wasSkipped) = (begun, isSkipping)
        (begun, isSkipping) = ([], false)
        guard !wasSkipped else { return .failure(.tooLarge(Letter.maxEncodedSize + 1)) }
        return Result { () throws(LetterError) in try Letter(encoded: bytes) }
    }
}
