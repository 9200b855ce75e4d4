@testable import AppModel
import Foundation
import TestSupport
import Testing

/// The rules of `docs/layout.md`, by the numbers that the web's layout has.
@Suite struct LayoutTests {
    /// A room in `web/test/unit/layout-cases.json`.
    private struct Case: Decodable {
        struct Input: Decodable {
            struct Tile: Decodable {
                var id: String
                var aspect: Double?
                var isScreen: Bool?
            }
            struct Own: Decodable {
                var aspect: Double?
                var corner: Corner?
            }
            var width: Double
            var height: Double
            var tiles: [Tile]
            var layout: RoomLayout?
            var focus: [String]?
            var `self`: Own?
            var gap: Double?
            var page: Int?
        }
        struct Placed: Decodable {
            var id: String?
            var x: Int
            var y: Int
            var width: Int
            var height: Int
            var fit: Fit
            var rectangle: Rectangle { Rectangle(x: x, y: y, width: width, height: height) }
        }
        struct Output: Decodable {
            var tiles: [Placed]
            var `self`: Placed?
            var overflow: Int
            var page: Int
            var pages: Int
        }
        /// The rule that the case shows; nil if the case is one of many.
        var title: String?
        var input: Input
        var output: Output
    }

    private func layOut(_ input: Case.Input) -> LayoutOutput {
        let tiles = input.tiles.map { Tile(id: $0.id, aspect: $0.aspect, isScreen: $0.isScreen ?? false) }
        var ours = LayoutInput(width: input.width, height: input.height, tiles: tiles)
        ours.layout = input.layout ?? .auto
        ours.focus = input.focus ?? []
        ours.own = input.`self`.map { OwnPicture(aspect: $0.aspect, corner: $0.corner ?? .bottomRight) }
        ours.gap = input.gap
        ours.page = input.page ?? 0
        return ours.layOut()
    }

    @Test func everyRoomOfTheSharedFileHasTheRectanglesOfTheWeb() throws {
        let file = Project.root.appending(path: "web/test/unit/layout-cases.json")
        let cases = try JSONDecoder().decode([Case].self, from: Data(contentsOf: file))
        #expect(cases.count > 100)
        for (index, one) in cases.enumerated() {
            let output = layOut(one.input)
            let name: Comment = "case \(index) \(one.title ?? "")"
            let theirs = one.output.tiles.map { PlacedTile(id: $0.id ?? "", rectangle: $0.rectangle, fit: $0.fit) }
            #expect(output.tiles == theirs, name)
            #expect(output.own?.rectangle == one.output.`self`?.rectangle, name)
            #expect(output.own?.fit == one.output.`self`?.fit, name)
            #expect(output.overflow == one.output.overflow, name)
            #expect(output.page == one.output.page, name)
            #expect(output.pages == one.output.pages, name)
        }
    }

    @Test func anUnknownAspectCountsAsSixteenToNine() {
        for aspect in [nil, .nan, -1, .infinity, 0] as [Double?] {
            let unknown = [Tile(id: "a", aspect: aspect), Tile(id: "b", aspect: 0.5)]
            let known = [Tile(id: "a", aspect: 16.0 / 9), Tile(id: "b", aspect: 0.5)]
            #expect(
                LayoutInput(width: 1000, height: 600, tiles: unknown).layOut()
                    == LayoutInput(width: 1000, height: 600, tiles: known).layOut())
        }
    }

    @Test func noViewportIsTooStrange() {
        let sizes: [Double] = [0, -1, 0.5, 1, 95, 97, .nan, .infinity, -.infinity, 1e300]
        var seed = SeededGenerator(seed: 1)
        for width in sizes {
            for height in sizes {
                for layout in RoomLayout.allCases {
                    let count = Int.random(in: 0...30, using: &seed)
                    let tiles = (0..<count).map { Tile(id: "t\($0)", aspect: Double($0), isScreen: $0 == 3) }
                    var input = LayoutInput(width: width, height: height, tiles: tiles)
                    input.layout = layout
                    input.focus = ["t2", "t2", "gone"]
                    input.own = OwnPicture(aspect: width)
                    input.gap = height
                    input.page = Int.random(in: -5...5, using: &seed)
                    let output = input.layOut()
                    #expect(output.tiles.count + output.overflow == count)
                }
            }
        }
    }
}

@Suite struct OwnPictureTests {
    private let viewport = Rectangle(x: 0, y: 0, width: 390, height: 844)
    private let home = Rectangle(x: 290, y: 714, width: 90, height: 120)

    @Test(arguments: [(0.0, 0.0), (8, 0), (-5, 6)]) func aShortMoveIsATap(x: Double, y: Double) {
        var gesture = OwnPictureGesture(home: home, viewport: viewport)
        gesture.move(x: x, y: y)
        #expect(gesture.end() == .tap)
        #expect(gesture.offset == .init(x: 0, y: 0))
    }

    @Test(arguments: [
        (-9.0, 0.0, Corner.bottomRight), (-300, 0, .bottomLeft), (0, -600, .topRight), (-250, -500, .topLeft),
        (-139, 0, .bottomRight), (-141, 0, .bottomLeft),
    ])
    func aDragEndsInTheCornerOfTheQuarter(x: Double, y: Double, corner: Corner) {
        var gesture = OwnPictureGesture(home: home, viewport: viewport)
        gesture.move(x: x, y: y)
        #expect(gesture.end() == .corner(corner))
    }

    @Test func theDraggedPictureStaysInTheViewport() {
        var gesture = OwnPictureGesture(home: home, viewport: viewport)
        gesture.move(x: 500, y: 500)
        #expect(gesture.offset == .init(x: 10, y: 10))
        gesture.move(x: -5000, y: -5000)
        #expect(gesture.offset == .init(x: -290, y: -714))
        gesture.move(x: .nan, y: .infinity)
        #expect(gesture.offset == .init(x: -290, y: -714))
    }

    @Test func aDragThatReturnsIsStillADrag() {
        var gesture = OwnPictureGesture(home: home, viewport: viewport)
        gesture.move(x: -100, y: 0)
        gesture.move(x: 0, y: 0)
        #expect(gesture.end() == .corner(.bottomRight))
    }

    @Test func keysMoveThePictureToTheNextCorner() {
        #expect(
            Corner.Direction.allCases.map(Corner.bottomRight.moved) == [
                .bottomLeft, .bottomRight, .topRight, .bottomRight,
            ])
        #expect(Corner.Direction.allCases.map(Corner.topLeft.moved) == [.topLeft, .topRight, .topLeft, .bottomLeft])
    }

    @Test func motionIsThatOfPerchRTCAndLessIfThePersonWantsLess() {
        #expect(Motion.pop(reduceMotion: false) == .init(scale: 1.05, growing: 0.14, shrinking: 0.16))
        #expect(Motion.pop(reduceMotion: true) == nil)
        #expect(Motion.tile(reduceMotion: false) == .spring(duration: 0.3, bounce: 0.15, velocity: 0.25))
        #expect(Motion.tile(reduceMotion: true) == .crossFade(duration: 0.3))
        #expect(Motion.mutedOverlay == 0.60)
    }

    @Test func aTileAppearsWithItsFirstFrame() {
        var tiles = TileStates()
        #expect(!tiles.isShown("a"))
        tiles.firstFrame(of: "a")
        #expect(tiles.isShown("a"))
        tiles.keep(only: ["b"], shown: ["b"])
        #expect(!tiles.isShown("a"))
    }

    @Test func aDoubleTapChangesHowATileIsCropped() {
        var tiles = TileStates()
        let tile = PlacedTile(id: "a", rectangle: home, fit: .cover)
        #expect(tiles.fit(of: tile) == .cover)
        tiles.doubleTap(on: "a")
        #expect(tiles.fit(of: tile) == .contain)
        tiles.doubleTap(on: "a")
        #expect(tiles.fit(of: tile) == .cover)
    }
}
