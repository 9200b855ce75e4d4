import Testing

@testable import AppModel

/// How pictures are placed, and what they are kept in.
@Suite struct RenderingTests {
    @Test(arguments: [(0, false), (90, true), (180, false), (270, true), (360, false), (-90, true)])
    func aTurnedLayerFillsItsView(degrees: Int, isSideways: Bool) {
        let layer = RotatedLayer(width: 300, height: 200, degrees: degrees, isMirrored: false)
        #expect(layer.width == (isSideways ? 200 : 300) && layer.height == (isSideways ? 300 : 200))
        #expect(layer.x == 150 && layer.y == 100, "it is turned about its center")
        #expect(layer.angle == Double(degrees) * .pi / 180)
    }

    @Test func aMirrorExchangesLeftAndRight() {
        #expect(RotatedLayer(width: 1, height: 1, degrees: 0, isMirrored: true).horizontalScale == -1)
        #expect(RotatedLayer(width: 1, height: 1, degrees: 0, isMirrored: false).horizontalScale == 1)
    }

    private final class Pool {}

    @Test func eachSizeHasAPoolOfItsOwn() {
        var pools = SizedBufferPool<Pool>()
        let (small, large) = (PixelSize(width: 1, height: 1), PixelSize(width: 2, height: 2))
        var made: [PixelSize] = []
        weak var former: Pool?
        former = pools.pool(for: small) { size in
            made.append(size)
            return Pool()
        }
        #expect(former != nil && pools.pool(for: small) { _ in Pool() } === former)
        _ = pools.pool(for: large) { size in
            #expect(former == nil, "both would not fit into the memory")
            made.append(size)
            return Pool()
        }
        #expect(made == [small, large])
    }

    @Test func aPoolThatCouldNotBeMadeIsTriedAgain() {
        var pools = SizedBufferPool<Pool>()
        let size = PixelSize(width: 1, height: 1)
        #expect(pools.pool(for: size) { _ in nil } == nil)
        #expect(pools.pool(for: size) { _ in Pool() } != nil)
    }

    // MARK: The small window

    private let size = PixelSize(width: 640, height: 480)
    private let other = PixelSize(width: 480, height: 640)

    @Test func aWindowShowsOneSourceAfterTheOther() {
        let (ada, bob) = (Pool(), Pool())
        var window = PictureWindow()
        #expect(window.show(nil, size, isSupported: true).isEmpty)
        #expect(window.show(ObjectIdentifier(ada), size, isSupported: true) == [.open(size)])
        #expect(window.show(ObjectIdentifier(ada), other, isSupported: true) == [.resize(other)])
        #expect(window.show(ObjectIdentifier(bob), size, isSupported: true) == [.exchange(size)])
        #expect(window.show(nil, size, isSupported: true) == [.close])
        #expect(window.close().isEmpty)
    }

    @Test func theWindowEndsWithItsView() {
        let ada = Pool()
        var window = PictureWindow()
        _ = window.show(ObjectIdentifier(ada), size, isSupported: true)
        #expect(window.close() == [.close])
        #expect(window.close().isEmpty, "once")
        #expect(window.show(ObjectIdentifier(ada), size, isSupported: true) == [.open(size)])
    }

    @Test func whetherTheWindowIsSeenIsReportedOnce() {
        let ada = Pool()
        var window = PictureWindow()
        #expect(window.shown(true).isEmpty, "there is none")
        _ = window.show(ObjectIdentifier(ada), size, isSupported: true)
        #expect(window.shown(true) == [.tell(true)] && window.shown(true).isEmpty)
        #expect(window.shown(false) == [.tell(false)] && window.shown(false).isEmpty)
        _ = window.shown(true)
        #expect(window.close() == [.close, .tell(false)])
        #expect(window.shown(false).isEmpty, "the system says it too")
    }

    @Test func aDeviceWithoutSmallWindowsOpensNone() {
        let ada = Pool()
        var window = PictureWindow()
        #expect(window.show(ObjectIdentifier(ada), size, isSupported: false).isEmpty)
        #expect(window.show(ObjectIdentifier(ada), other, isSupported: false).isEmpty)
        #expect(window.close().isEmpty)
    }
}
