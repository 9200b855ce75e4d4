import DequeModule
import Wire

/// The last lines of a room's chat, for people who join later.
///
/// Messages and files do not compete for the bytes, so that nobody deletes the files of others by writing much.
struct RoomChat: Equatable, Sendable {
    private(set) var lines: Deque<RoomLine> = []
    /// The bytes of the messages.
    private var bytes = 0

    /// Throws if the message alone is larger than the whole chat may be.
    static func permit(_ line: RoomLine, _ rules: Rules) throws(WireError) {
        guard size(line) <= rules.roomChatBytes else {
            throw WireError(
                .messageTooLarge,
                "A chat message must not exceed \(rules.roomChatBytes) bytes. Send it in parts.")
        }
    }

    /// Adds a line that is permitted, and drops the oldest ones beyond the limits.
    ///
    /// - Returns: the files of the lines that are dropped.
    mutating func append(_ line: RoomLine, _ rules: Rules) -> [RoomFileID] {
        lines.append(line)
        bytes += Self.size(line)
        while bytes > rules.roomChatBytes, let index = lines.firstIndex(where: { $0.file == nil }) {
            bytes -= Self.size(lines.remove(at: index))
        }
        var files: [RoomFileID] = []
        while lines.count > rules.roomChatLines {
            let first = lines.removeFirst()
            bytes -= Self.size(first)
            if let file = first.file { files.append(file.id) }
        }
        return files
    }

    /// Forgets the line of a file that was deleted.
    mutating func remove(_ file: RoomFileID) { lines.removeAll { $0.file?.id == file } }

    /// The size of a message as its person wrote it. In JSON, a control character takes six bytes, so that a short message
    /// could push out all others. The names of files are short, and their number is limited.
    private static func size(_ line: RoomLine) -> Int { line.file == nil ? line.text.utf8.count : 0 }
}
