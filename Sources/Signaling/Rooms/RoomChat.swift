import DequeModule
import Wire

/// The latest lines of a room's chat, for people who join later.
///
/// The limit on bytes applies only to messages, so that long messages do not delete other people's files. The limit on
/// lines applies to messages and files together.
struct RoomChat: Equatable, Sendable {
    private(set) var lines: Deque<RoomLine> = []
    /// The total size of the messages in bytes.
    private var bytes = 0

    /// Throws if the message alone exceeds the limit for the whole chat.
    static func permit(_ line: RoomLine, _ rules: Rules) throws(WireError) {
        guard size(line) <= rules.roomChatBytes else {
            throw WireError(
                .messageTooLarge,
                "A chat message must not exceed \(rules.roomChatBytes.sizeText). Send it in parts.")
        }
    }

    /// Adds a permitted line, and drops the oldest lines beyond the limits.
    ///
    /// - Returns: the files of the dropped lines.
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

    /// Removes the line of a deleted file.
    mutating func remove(_ file: RoomFileID) { lines.removeAll { $0.file?.id == file } }

    /// Returns the size of a message's text in bytes, as the person typed it; 0 for a file, because names are short
    /// and the number of files is limited. Not the encoded size: JSON encodes a control character in six bytes, so a
    /// short message could displace all others.
    private static func size(_ line: RoomLine) -> Int { line.file == nil ? line.text.utf8.count : 0 }
}
