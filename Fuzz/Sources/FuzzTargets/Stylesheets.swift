import Layout

extension FuzzTarget {
    /// Fuzzes style sheets of composed recordings. An accepted sheet draws cells that are even, inside, and at most sixteen.
    static let stylesheets = FuzzTarget("stylesheets", longestInput: 600, dictionary: "stylesheets") {
        input throws(BrokenProperty) in
        let sheet: Stylesheet
        do throws(StylesheetError) {
            sheet = try Stylesheet(String(decoding: input, as: UTF8.self))
        } catch {
            let lines = input.count { $0 == 0x0a } + 1
            return try require((1...lines).contains(error.line), "\(error) is not in the sheet")
        }
        let streams = (0..<18).map {
            LayoutStream(id: "s\($0)", connection: "c\($0)", classes: $0 % 3 == 0 ? ["a"] : [], isScreen: $0 == 5)
        }
        for count in [0, 1, 2, 5, 18] {
            let cells = sheet.cells(Array(streams.prefix(count)), width: 640, height: 480)
            try require(cells.count <= min(count, ComposedLayout.maxDrawn), "there are \(cells.count) cells")
            try require(Set(cells.map(\.id)).count == cells.count, "a stream has two cells")
            try require(
                cells.allSatisfy { cell in
                    [cell.x, cell.y, cell.width, cell.height].allSatisfy { $0 >= 0 && $0 % 2 == 0 } && cell.width > 0
                        && cell.height > 0 && cell.x + cell.width <= 640 && cell.y + cell.height <= 480
                }, "\(cells) are not inside")
        }
    }
}
