import Testing

@testable import Layout

@Suite("Layouts of composed recordings")
struct ComposedLayoutTests {
    static let sizes = [(640, 480), (480, 640), (1280, 720), (720, 1280), (1920, 1080), (1080, 1920)]

    private func streams(_ count: Int) -> [LayoutStream] {
        (0..<count).map { LayoutStream(id: "s\($0)", connection: "c\($0)") }
    }

    private func rectangles(_ layout: ComposedLayout?, _ streams: [LayoutStream]) throws -> [String] {
        try #require(layout).cells(streams).map { "\($0.id) \($0.x),\($0.y) \($0.width)x\($0.height)" }
    }

    @Test("bestFit centers a last row that is not full, and its cells have no seams")
    func bestFit() throws {
        let layout = ComposedLayout(.bestFit, width: 1280, height: 720)
        #expect(try rectangles(layout, streams(1)) == ["s0 0,0 1280x720"])
        #expect(try rectangles(layout, streams(2)) == ["s0 0,0 640x720", "s1 640,0 640x720"])
        #expect(
            try rectangles(layout, streams(3)) == ["s0 0,0 640x360", "s1 640,0 640x360", "s2 320,360 640x360"])
        #expect(
            try rectangles(layout, streams(5)) == [
                "s0 0,0 426x360", "s1 426,0 426x360", "s2 852,0 428x360", "s3 214,360 426x360", "s4 640,360 426x360",
            ])
    }

    @Test("bestFit puts two streams above each other on a portrait canvas")
    func portrait() throws {
        let layout = ComposedLayout(.bestFit, width: 720, height: 1280)
        #expect(try rectangles(layout, streams(2)) == ["s0 0,0 720x640", "s1 0,640 720x640"])
    }

    @Test("pip draws the stream of class full, and above it the first other")
    func pip() throws {
        let layout = ComposedLayout(.pip, width: 640, height: 480)
        var all = streams(3)
        all[2].classes = ["full"]
        #expect(try rectangles(layout, all) == ["s2 0,0 640x480", "s0 448,48 128x96"])
    }

    @Test("presentations draw the stream of class focus large, and five others in a strip")
    func presentations() throws {
        var all = streams(8)
        all[1].classes = ["focus"]
        let vertical = try rectangles(ComposedLayout(.verticalPresentation, width: 640, height: 480), all)
        #expect(vertical.prefix(3) == ["s1 128,0 512x480", "s0 0,0 128x96", "s2 0,96 128x96"] && vertical.count == 6)
        let horizontal = try rectangles(ComposedLayout(.horizontalPresentation, width: 640, height: 480), all)
        #expect(horizontal.prefix(3) == ["s1 0,0 640x384", "s0 0,384 128x96", "s2 128,384 128x96"])
        #expect(horizontal.count == 6)
    }

    @Test("while a screen is shared, screenshareType makes it large, or with bestFit draws only screens")
    func screens() throws {
        var all = streams(3)
        all[2].isScreen = true
        let pip = ComposedLayout(.bestFit, screenshareKind: .pip, width: 640, height: 480)
        #expect(try rectangles(pip, all).first == "s2 0,0 640x480")
        let only = ComposedLayout(.bestFit, screenshareKind: .bestFit, width: 640, height: 480)
        #expect(try rectangles(only, all) == ["s2 0,0 640x480"])
        #expect(try rectangles(pip, streams(2)) == ["s0 0,0 320x480", "s1 320,0 320x480"])
        #expect(ComposedLayout(.pip, screenshareKind: .pip, width: 640, height: 480) == nil)
    }

    @Test("classes come before screens, screens before cameras of their publishers, and these before others")
    func priority() {
        let all = [
            LayoutStream(id: "other", connection: "a"),
            LayoutStream(id: "camera", connection: "b"),
            LayoutStream(id: "screen", connection: "b", isScreen: true),
            LayoutStream(id: "second", connection: "c"),
            LayoutStream(id: "class", connection: "c", classes: ["x"]),
        ]
        #expect(ComposedLayout.byPriority(all).map(\.id) == ["class", "screen", "camera", "second", "other"])
    }

    @Test(
        "for any number of streams, cells are even, inside, at most sixteen, and apart except for pip",
        arguments: ComposedLayout.Kind.allCases)
    func properties(_ kind: ComposedLayout.Kind) throws {
        for (width, height) in Self.sizes {
            for count in 0...17 {
                let cells = try #require(ComposedLayout(kind, width: width, height: height)).cells(streams(count))
                #expect(cells.count <= ComposedLayout.maxDrawn && (cells.isEmpty == (count == 0)))
                for cell in cells {
                    #expect([cell.x, cell.y, cell.width, cell.height].allSatisfy { $0 >= 0 && $0 % 2 == 0 })
                    #expect(cell.width > 0 && cell.x + cell.width <= width, "\(cell)")
                    #expect(cell.height > 0 && cell.y + cell.height <= height, "\(cell)")
                }
                guard kind != .pip else { continue }
                for (index, left) in cells.enumerated() {
                    for right in cells[(index + 1)...] {
                        let apart =
                            left.x + left.width <= right.x || right.x + right.width <= left.x
                            || left.y + left.height <= right.y || right.y + right.height <= left.y
                        #expect(apart, "\(left) and \(right) overlap, \(count) streams")
                    }
                }
            }
        }
    }
}
