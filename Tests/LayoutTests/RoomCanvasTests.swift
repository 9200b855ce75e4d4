import TestSupport
import Testing

@testable import Layout

@Suite("The layout of rooms in composed recordings")
struct RoomCanvasTests {
    private func streams(_ count: Int, aspect: Double? = 16.0 / 9) -> [LayoutStream] {
        (0..<count).map { LayoutStream(id: "s\($0)", connection: "c\($0)", aspect: aspect) }
    }

    private func text(_ canvas: RoomCanvas?, _ streams: [LayoutStream]) throws -> [String] {
        try #require(canvas).cells(streams).map { "\($0.id) \($0.x),\($0.y) \($0.width)x\($0.height) \($0.fit)" }
    }

    @Test("cells are the tiles of a room of this size, rounded to even pixels", arguments: 1...16)
    func sameAsRooms(count: Int) throws {
        for (width, height) in ComposedLayoutTests.sizes {
            let tiles = (0..<count).map { Tile(id: "s\($0)", aspect: 16.0 / 9) }
            let room = LayoutInput(width: Double(width), height: Double(height), tiles: tiles).layOut().tiles
            let cells = try #require(RoomCanvas(width: width, height: height)).cells(streams(count))
            #expect(cells.map(\.id) == room.map(\.id), "\(width)x\(height)")
            for (cell, tile) in zip(cells, room) {
                let right = tile.rectangle.x + tile.rectangle.width
                let bottom = tile.rectangle.y + tile.rectangle.height
                #expect(cell.x == tile.rectangle.x / 2 * 2 && cell.y == tile.rectangle.y / 2 * 2)
                #expect(cell.x + cell.width == right / 2 * 2 && cell.y + cell.height == bottom / 2 * 2)
                #expect((cell.fit == .cover) == (tile.fit == .cover))
            }
        }
    }

    @Test("a screen is large and whole, and so is a stream with the class focus")
    func large() throws {
        let canvas = RoomCanvas(width: 1280, height: 720)
        var all = streams(3)
        all[1].isScreen = true
        let screen = try text(canvas, all)
        #expect(screen.first?.hasPrefix("s1 0,0 ") == true && screen.first?.hasSuffix(" contain") == true)
        all[1].isScreen = false
        all[2].classes = ["focus"]
        let pinned = try text(canvas, all)
        #expect(pinned.first?.hasPrefix("s2 0,0 ") == true && pinned.count == 3)
        #expect(screen != pinned)
    }

    @Test("a tall video is not cropped on a wide canvas")
    func tall() throws {
        let canvas = RoomCanvas(width: 1280, height: 720)
        #expect(try text(canvas, streams(1, aspect: 9.0 / 16)) == ["s0 0,0 1280x720 contain"])
        #expect(try text(canvas, streams(1, aspect: nil)) == ["s0 0,0 1280x720 cover"])
    }

    @Test("on any canvas, cells are even and inside, and none covers another one")
    func properties() throws {
        let seed = UInt64.random(in: 0...(.max))
        var random = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let width = 2 * Int.random(in: 32...1_000, using: &random)
            let height = 2 * Int.random(in: 32...1_000, using: &random)
            var all = streams(Int.random(in: 0...40, using: &random))
            for index in all.indices {
                let aspects: [Double?] = [nil, 0.5, 1, 16.0 / 9]
                all[index].aspect = aspects[Int.random(in: aspects.indices, using: &random)]
                all[index].isScreen = Int.random(in: 0..<9, using: &random) == 0
                if Int.random(in: 0..<9, using: &random) == 0 { all[index].classes = ["focus"] }
            }
            let cells = try #require(RoomCanvas(width: width, height: height)).cells(all)
            #expect(cells.count <= ComposedLayout.maxDrawn, "seed \(seed)")
            #expect(Set(cells.map(\.id)).count == cells.count, "seed \(seed)")
            for (index, cell) in cells.enumerated() {
                let numbers = [cell.x, cell.y, cell.width, cell.height]
                #expect(numbers.allSatisfy { $0 % 2 == 0 && $0 >= 0 }, "seed \(seed)")
                #expect(cell.x + cell.width <= width && cell.y + cell.height <= height, "seed \(seed)")
                // Below the smallest viewport of rooms, tiles may be larger than it.
                guard width >= 320, height >= 240 else { continue }
                let overlaps = cells[..<index].contains { other in
                    cell.x < other.x + other.width && other.x < cell.x + cell.width
                        && cell.y < other.y + other.height && other.y < cell.y + cell.height
                }
                #expect(!overlaps, "seed \(seed), \(width)x\(height)")
            }
        }
    }

    @Test("a canvas that cannot be encoded is refused")
    func sizes() {
        #expect(RoomCanvas(width: 641, height: 480) == nil && RoomCanvas(width: 62, height: 480) == nil)
        #expect(RoomCanvas(width: 8_192, height: 480) == nil && RoomCanvas(width: 64, height: 64) != nil)
    }
}
