import TestSupport
import Testing

@testable import Layout

@Suite("Style sheets of composed recordings")
struct StylesheetTests {
    /// Sheets that mean the same as OpenTok's samples for its predefined layouts.
    static let bestFit = """
        stream { float: left }
        /* The number of streams is known from the first one. */
        stream:first-child:nth-last-child(1) { width: 100%; height: 100% }
        stream:first-child:nth-last-child(2), stream:first-child:nth-last-child(2) ~ stream { width: 50%; height: 100% }
        stream:first-child:nth-last-child(3), stream:first-child:nth-last-child(3) ~ stream,
        stream:first-child:nth-last-child(4), stream:first-child:nth-last-child(4) ~ stream { width: 50%; height: 50%; }
        stream:first-child:nth-last-child(9), stream:first-child:nth-last-child(9) ~ stream { width: 33.33%; height: 33.33%; }
        """
    static let pip = """
        stream.full { position: absolute; top: 0; right: 0; width: 100%; height: 100%; z-index: 1; }
        stream { position: absolute; right: 10%; top: 10%; width: 20%; height: 20%; z-index: 2; }
        """
    static let vertical = """
        stream { float: left; clear: left; width: 20%; height: 20%; }
        stream.focus { position: absolute; top: 0; left: 20%; width: 80%; height: 100%; }
        """
    /// 60 % of the width is 80 % of the height only at 4:3.
    static let horizontal = """
        stream { float: left; margin-top: 60%; width: 20%; height: 20%; }
        stream.focus { position: absolute; top: 0; left: 0; margin-top: 0px; width: 100%; height: 80%; }
        """

    private func streams(_ count: Int, first: [String] = []) -> [LayoutStream] {
        (0..<count).map { LayoutStream(id: "s\($0)", connection: "c\($0)", classes: $0 == 0 ? first : []) }
    }

    private func text(_ cells: [LayoutCell]) -> [String] {
        cells.map { "\($0.id) \($0.x),\($0.y) \($0.width)x\($0.height)" }
    }

    @Test(
        "sheets like OpenTok's samples reproduce the predefined layouts",
        arguments: [
            (ComposedLayout.Kind.bestFit, bestFit, 1), (.bestFit, bestFit, 2), (.bestFit, bestFit, 4),
            (.bestFit, bestFit, 9), (.pip, pip, 2), (.verticalPresentation, vertical, 6),
            (.verticalPresentation, vertical, 1),
            (.horizontalPresentation, horizontal, 6),
        ])
    func samples(kind: ComposedLayout.Kind, sheet: String, count: Int) throws {
        let all = streams(count, first: kind.prominentClass.map { [$0] } ?? [])
        let expected = try #require(ComposedLayout(kind, width: 640, height: 480)).cells(all)
        let cells = try Stylesheet(sheet).cells(all, width: 640, height: 480)
        #expect(text(cells) == text(expected))
    }

    @Test("floats fill rows, blocks stack, and inline blocks wrap")
    func flows() throws {
        let floats = try Stylesheet(
            "stream { float: left; width: 40%; height: 50% } stream:last-child { float: right }")
        #expect(
            text(floats.cells(streams(3), width: 640, height: 480)) == [
                "s0 0,0 256x240", "s1 256,0 256x240", "s2 384,240 256x240",
            ])
        let blocks = try Stylesheet("stream { width: 50%; height: 25%; margin: 10px 0 20px 5% }")
        #expect(
            text(blocks.cells(streams(2), width: 640, height: 480)) == ["s0 32,10 320x120", "s1 32,150 320x120"])
        let rows = try Stylesheet("stream { display: inline-block; width: 300px; height: 100px }")
        #expect(
            text(rows.cells(streams(3), width: 640, height: 480)) == [
                "s0 0,0 300x100", "s1 300,0 300x100", "s2 0,100 300x100",
            ])
    }

    @Test("a more specific selector wins over a later one, and a later one over an equal one")
    func cascade() throws {
        let sheet = try Stylesheet(
            """
            .a { width: 50%; }
            stream.a:nth-child(1) { width: 10%; height: 10% }
            stream { width: 20%; height: 20% }
            stream { height: 30% }
            """)
        let all = [
            LayoutStream(id: "x", connection: "c", classes: ["a"]),
            LayoutStream(id: "y", connection: "d", classes: ["a"]),
            LayoutStream(id: "z", connection: "e"),
        ]
        #expect(
            text(sheet.cells(all, width: 1000, height: 1000)) == [
                "x 0,0 100x100", "y 0,100 500x300", "z 0,400 200x300",
            ])
    }

    @Test("combinators match the next and all later siblings")
    func combinators() throws {
        let all = ["a", "b", "c", "d"].map { LayoutStream(id: $0, connection: $0, classes: [$0]) }
        func matched(_ selector: String) throws -> String {
            let sheet = try Stylesheet("\(selector) { float: left }")
            return zip(all, sheet.styles(all)).filter { $0.1.float == .left }.map(\.0.id).joined()
        }
        #expect(try matched(".a + stream") == "b")
        #expect(try matched(".b ~ stream") == "cd")
        #expect(try matched(".a+.b~stream:last-child") == "d")
        #expect(try matched("stream:nth-last-child(2), .a") == "ac")
        #expect(try matched(".b + .b") == "")
    }

    @Test("sizes have minima and maxima, cells are cut at the canvas, and those outside are not drawn")
    func sizes() throws {
        let sheet = try Stylesheet(
            """
            stream { position: absolute; left: 90%; top: -10%; width: 20%; height: 20%; }
            .outside { left: 100%; }
            .small { left: 0; top: 0; width: 1px; height: 1px; min-width: 100px; max-height: 50%; min-height: 64px; }
            .small { object-fit: cover }
            .between { left: 10%; right: 10%; top: 25%; bottom: 25% }
            """)
        let all = ["x", "outside", "small"].map { LayoutStream(id: $0, connection: $0, classes: [$0]) }
        let cells = sheet.cells(all, width: 640, height: 480)
        #expect(text(cells) == ["x 576,0 64x48", "small 0,0 100x64"])
        #expect(cells.map(\.fit) == [.contain, .cover])
        let edges = try Stylesheet("stream { position: absolute; left: 10%; right: 10%; top: 25%; bottom: 25% }")
        #expect(text(edges.cells(streams(1), width: 640, height: 480)) == ["s0 64,120 512x240"])
    }

    @Test(
        "a sheet that is not supported is refused, with the line",
        arguments: [
            ("\n\n* { width: 1px }", 3), ("stream div { }", 1), ("stream > .a { }", 1), ("#a { }", 1), ("video { }", 1),
            ("stream::before { }", 1), ("stream:hover { }", 1), ("stream:nth-child(0) { }", 1), ("stream[a] { }", 1),
            ("stream {\n width: 10;\n}", 2), ("stream {\n\n width: -1% }", 3), ("stream { color: red }", 1),
            ("stream { width: 1e3px }", 1), ("stream { width: 1px 2px }", 1), ("stream { margin: }", 1),
            ("stream { z-index: -1 }", 1), ("stream { position: fixed }", 1), ("@media x { }", 1),
            ("stream { width: 1px", 1),
            ("stream {}\n/* no end", 2), ("stream", 1), ("{ }", 1), ("stream { width 1px }", 1),
            ("stream { float: left !important }", 1),
        ])
    func refused(sheet: String, line: Int) {
        let error = #expect(throws: StylesheetError.self) { try Stylesheet(sheet) }
        #expect(error?.line == line, "\(error?.description ?? "")")
    }

    @Test("size, rules and combinators of a sheet are limited")
    func limits() throws {
        #expect(throws: StylesheetError.self) { try Stylesheet(String(repeating: " ", count: Stylesheet.maxSize + 1)) }
        _ = try Stylesheet(String(repeating: "stream{}", count: Stylesheet.maxRules))
        #expect(throws: StylesheetError.self) {
            try Stylesheet(String(repeating: "stream{}", count: Stylesheet.maxRules + 1))
        }
        let long = [String](repeating: "stream", count: Stylesheet.maxCompounds).joined(separator: "~")
        _ = try Stylesheet("\(long){}")
        #expect(throws: StylesheetError.self) { try Stylesheet("\(long)+stream{}") }
    }

    @Test("whatever a sheet says, cells are even, inside, and at most sixteen")
    func properties() throws {
        let seed = UInt64.random(in: 0...(.max))
        var random = SeededGenerator(seed: seed)
        let values = [
            "0", "10%", "-10%", "33.3%", "120%", "50px", "-7px", "left", "right", "none", "both", "absolute", "inline",
            "5",
        ]
        let names = [
            "width", "height", "left", "top", "right", "bottom", "margin", "margin-left", "min-width", "max-height",
            "float",
            "clear", "position", "display", "z-index",
        ]
        for _ in 0..<3_000 {
            var sheet = ""
            for selector in ["stream", ".a", "stream:nth-child(2) ~ stream"] {
                var body = ""
                for _ in 0..<3 {
                    let declaration =
                        "\(names.randomElement(using: &random) ?? ""): \(values.randomElement(using: &random) ?? "")"
                    if (try? Stylesheet("stream { \(declaration) }")) != nil { body += "\(declaration);" }
                }
                sheet += "\(selector) { \(body) }"
            }
            let all = streams(Int.random(in: 0...20, using: &random), first: ["a"])
            let cells = try Stylesheet(sheet).cells(all, width: 640, height: 480)
            #expect(cells.count <= ComposedLayout.maxDrawn && Set(cells.map(\.id)).count == cells.count, "seed \(seed)")
            for cell in cells {
                #expect(
                    [cell.x, cell.y, cell.width, cell.height].allSatisfy { $0 % 2 == 0 && $0 >= 0 }, "seed \(seed)")
                #expect(cell.x + cell.width <= 640 && cell.y + cell.height <= 480, "seed \(seed): \(sheet)")
            }
        }
    }
}
