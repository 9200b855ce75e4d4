import LiveComposing
import MediaFiles
import Testing

@testable import Broadcasting

@Suite("The scene of a broadcast")
struct BroadcastSceneTests {
    private static let canvas = ArchiveCanvas(width: 1_280, height: 720)

    /// Numbers, left edges and widths of the cells.
    private static func cells(_ layout: CompositorLayout?) -> [[Int]]? {
        layout?.cells.map { [Int($0.stream), $0.x, $0.width] }
    }

    @Test("is empty at first, and changes only when cells do")
    func changes() {
        var scene = BroadcastScene(ArchiveLayout("bestFit"), on: Self.canvas)
        #expect(scene.change() == nil)
        scene.add(3, .init(connection: "a"))
        #expect(Self.cells(scene.change()) == [[3, 0, 1_280]])
        scene.add(4, .init(connection: "b"))
        #expect(Self.cells(scene.change()) == [[3, 0, 640], [4, 640, 640]])
        scene.update(4) { $0.classes = [] }
        #expect(scene.change() == nil)
        scene.remove(3)
        #expect(Self.cells(scene.change()) == [[4, 0, 1_280]])
        scene.remove(4)
        #expect(scene.change() == CompositorLayout())
        scene.remove(4)
        #expect(scene.change() == nil)
    }

    @Test("gives the place of a stream without video to the others, and back")
    func muted() {
        var scene = BroadcastScene(ArchiveLayout("bestFit"), on: Self.canvas)
        for number: UInt32 in 1...2 { scene.add(number, .init(connection: "\(number)")) }
        _ = scene.change()
        scene.update(1) { $0.hasVideo = false }
        #expect(Self.cells(scene.change()) == [[2, 0, 1_280]])
        scene.update(1) { $0.hasVideo = true }
        #expect(Self.cells(scene.change()) == [[1, 0, 640], [2, 640, 640]])
    }

    @Test("follows classes, screens and another layout, and draws at most 16 streams")
    func layouts() {
        var scene = BroadcastScene(
            ArchiveLayout("bestFit", screenshareType: "verticalPresentation"), on: Self.canvas)
        for number: UInt32 in 1...2 { scene.add(number, .init(connection: "\(number)")) }
        _ = scene.change()
        scene.add(3, .init(connection: "1", isScreen: true))
        #expect(Self.cells(scene.change())?.first == [3, 256, 1_024])
        scene.remove(3)
        scene.set(ArchiveLayout("pip"))
        #expect(Self.cells(scene.change()) == [[1, 0, 1_280], [2, 896, 256]])
        scene.update(2) { $0.classes = ["full"] }
        #expect(Self.cells(scene.change()) == [[2, 0, 1_280], [1, 896, 256]])
        scene.set(ArchiveLayout("custom", stylesheet: "stream { width: 50%; height: 100%; float: left; }"))
        #expect(Self.cells(scene.change()) == [[2, 0, 640], [1, 640, 640]])
        scene.set(ArchiveLayout("bestFit"))
        for number: UInt32 in 4...24 { scene.add(number, .init(connection: "\(number)")) }
        let last = scene.change()
        #expect(last?.cells.count == 16)
        scene.set(ArchiveLayout("unknown"))
        #expect(scene.change() == CompositorLayout())
    }
}
