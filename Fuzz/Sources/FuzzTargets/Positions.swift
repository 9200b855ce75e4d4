import Wire

@testable import Signaling

extension FuzzTarget {
    /// Fuzzes a device's location in a message, and a cursor into the list of people nearby. A valid cell must be on the globe
    /// and contain its own center, and a cursor must be written as it was read.
    static let positions = FuzzTarget("positions", longestInput: 256, dictionary: "messages") {
        input throws(BrokenProperty) in
        let text = String(decoding: input, as: UTF8.self)
        if let cursor = Cursor(text) {
            try require(cursor.text == text, "the cursor \(text) is written as \(cursor.text)")
            try require(0..<Distance.buckets ~= cursor.bucket, "a page ends in bucket \(cursor.bucket)")
        }
        _ = PersonName.normalized(text).map { name in assert(name.count <= Limits.personName) }
        guard case .object(let object)? = try? JSONReader.parse(input),
            let move = try? NearbyVerb.Move(members: object),
            let cell = move.cell
        else { return }
        try require(0..<Cell.rows ~= cell.row, "row \(cell.row)")
        try require(0..<Cell.columns(inRow: cell.row) ~= cell.column, "column \(cell.column) in row \(cell.row)")
        let (latitude, longitude) = (cell.latitude * 180 / .pi, (cell.turn - 0.5) * 360)
        try require(Cell(latitude: latitude, longitude: longitude) == cell, "\(cell) does not contain its center")
        try require(Distance.bucket(cell, cell) == 0, "\(cell) is far from itself")
    }
}
