import Wire

/// The event log of an archive, `events.jsonl`: one event per line, appended while the archive is recorded. Together with the
/// files that it names, it is all that composing needs.
public struct ArchiveLog: Hashable, Sendable {
    /// The maximum size of a log in bytes: twelve hours of three events per second.
    public static let maxSize = 32 << 20
    /// The maximum length of a line in bytes. A layout with the longest style sheet fits in it, also if all of it is escaped.
    static let maxLine = 256 << 10

    /// The longest recorded time, two times OpenTok's limit. A line with a later time is damaged.
    public static let maxTime = Duration.seconds(86_400)

    /// The readable lines. Their times never decrease.
    public var lines: [ArchiveLogLine] = []
    /// The number of lines that were skipped, because they are damaged or their event is newer than this program.
    public private(set) var skipped = 0
    /// Whether the last line was cut off, because the server ended while it wrote. That line is dropped.
    public private(set) var isCut = false

    public init(_ lines: [ArchiveLogLine] = []) { self.lines = lines }

    /// Reads a log. No input is refused, so that one damaged line does not cost an archive.
    ///
    /// - Parameter bytes: the file. Everything after `maxSize` is ignored, as if the log had been cut off there.
    public init(_ bytes: [UInt8]) {
        let readable = bytes.prefix(Self.maxSize)
        var rest = readable[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            take(rest[..<end])
            rest = rest[(end + 1)...]
        }
        isCut = !rest.isEmpty || readable.count < bytes.count
    }

    private mutating func take(_ bytes: ArraySlice<UInt8>) {
        guard !bytes.isEmpty else { return }
        guard bytes.count <= Self.maxLine, case .object(let members)? = try? JSONReader.parse(bytes) else {
            return skipped += 1
        }
        guard var line = try? ArchiveLogLine(members: members), line.time <= Self.maxTime else { return skipped += 1 }
        // A clock that went back must not undo what was drawn before.
        line.time = max(line.time, lines.last?.time ?? .zero)
        lines.append(line)
    }

    /// The log as a file.
    public var bytes: [UInt8] { lines.flatMap(\.bytes) }
}
