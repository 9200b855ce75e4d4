import Wire

/// The most recent messages of a room's chat. Their number and size have the same limits as on the server
/// (`protocol/rooms.md`), because an application may stay in a room all day.
struct RoomChat: Equatable, Sendable {
    static let maxLines = 100
    static let maxBytes = 16 * 1024

    /// The messages, oldest first.
    private(set) var lines: [RoomLine] = []
    /// The number of bytes of all lines that count toward `maxBytes`.
    private var bytes = 0

    mutating func add(_ line: RoomLine) {
        lines.append(line)
        bytes += Self.size(line)
        while bytes > Self.maxBytes, let index = lines.firstIndex(where: { $0.file == nil }) {
            bytes -= Self.size(lines.remove(at: index))
        }
        while lines.count > Self.maxLines { bytes -= Self.size(lines.removeFirst()) }
    }

    /// Removes the line of a file.
    mutating func remove(_ file: RoomFileID) {
        lines.removeAll { $0.file?.id == file }
    }

    /// Adds the chat lines that the server sent after rejoining. The previous lines are kept, because the server no
    /// longer has them if the room was created again.
    ///
    /// - Returns: the lines that were added, because they were not in the chat yet.
    mutating func catchUp(_ others: [RoomLine]) -> [RoomLine] {
        let known = Set(lines)
        let fresh = others.filter { !known.contains($0) }
        for line in fresh { add(line) }
        return fresh
    }

    /// Returns how many bytes of a line count toward `maxBytes`: 0 for a file.
    private static func size(_ line: RoomLine) -> Int { line.file == nil ? line.text.utf8.count : 0 }
}
