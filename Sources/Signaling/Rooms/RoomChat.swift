import DequeModule
import Wire

/// The last messages of a room's chat, for people who join later.
struct RoomChat: Equatable, Sendable {
    private(set) var lines: Deque<RoomLine> = []
    /// The size of the lines in JSON.
    private var bytes = 0

    /// - Returns: the files of the lines that are dropped.
    mutating func append(_ line: RoomLine, _ rules: Rules) -> [RoomFileID] {
        var files: [RoomFileID] = []
        lines.append(line)
        bytes += Self.size(line)
        while let first = lines.first, lines.count > rules.roomChatLines || bytes > rules.roomChatBytes {
            lines.removeFirst()
            bytes -= Self.size(first)
            if let file = first.file { files.append(file.id) }
        }
        return files
    }

    /// Forgets the line of a file that was deleted.
    mutating func remove(_ file: RoomFileID) {
        guard let index = lines.firstIndex(where: { $0.file?.id == file }) else { return }
        bytes -= Self.size(lines.remove(at: index))
    }

    private static func size(_ line: RoomLine) -> Int { line.encodedSize }
}
