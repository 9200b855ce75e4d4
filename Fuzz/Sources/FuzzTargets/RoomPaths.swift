import Signaling
import Wire

extension FuzzTarget {
    /// The name of a room in a path, and a position in the list of rooms.
    static let roomPaths = FuzzTarget("room-paths", longestInput: 1024) { input throws(BrokenProperty) in
        let text = String(decoding: input, as: UTF8.self)
        if let name = RoomName(pathComponent: text) {
            try require(RoomName(pathComponent: name.pathComponent)?.text == name.text, "a name changes in a path")
            try require(!name.pathComponent.contains { "/?#\"<>".contains($0) }, "a name ends its part of the path")
        }
        if let cursor = RoomCursor(text) {
            try require(RoomCursor(cursor.text) == cursor, "a position changes when it is sent back")
        }
    }
}
