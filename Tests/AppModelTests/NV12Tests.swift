@testable import AppModel
import Testing

/// Pictures in three planes become pictures in two. The padding of rows is neither read nor written.
@Suite struct NV12Tests {
    private struct Planes: Equatable {
        var luma: [UInt8]
        var chroma: [UInt8]
    }

    /// Converts planes with these strides. Unwritten bytes stay 0xEE.
    private func convert(
        width: Int, height: Int, y: [UInt8], u: [UInt8], v: [UInt8], strides: (y: Int, uv: Int), out: (Int, Int)
    ) -> Planes? {
        let rows = (height + 1) / 2
        var planes = Planes(
            luma: Array(repeating: 0xEE, count: min(1 << 20, out.0 * height)),
            chroma: Array(repeating: 0xEE, count: min(1 << 20, out.1 * rows)))
        let isWritten = y.withUnsafeBytes { y in
            u.withUnsafeBytes { u in
                v.withUnsafeBytes { v in
                    planes.luma.withUnsafeMutableBytes { luma in
                        planes.chroma.withUnsafeMutableBytes { chroma in
                            I420Picture(
                                width: width, height: height, y: Plane(bytes: y, stride: strides.y),
                                u: Plane(bytes: u, stride: strides.uv), v: Plane(bytes: v, stride: strides.uv)
                            ).write(
                                luma: MutablePlane(bytes: luma, stride: out.0),
                                chroma: MutablePlane(bytes: chroma, stride: out.1))
                        }
                    }
                }
            }
        }
        return isWritten ? planes : nil
    }

    @Test func anEvenPictureIsConvertedExactly() {
        let planes = convert(
            width: 4, height: 2, y: [1, 2, 3, 4, 5, 6, 7, 8], u: [11, 12], v: [21, 22], strides: (4, 2), out: (4, 4))
        #expect(planes == Planes(luma: [1, 2, 3, 4, 5, 6, 7, 8], chroma: [11, 21, 12, 22]))
    }

    @Test func anOddPictureHasItsLastColumnAndRow() {
        let planes = convert(
            width: 3, height: 3, y: [1, 2, 3, 4, 5, 6, 7, 8, 9], u: [11, 12, 13, 14], v: [21, 22, 23, 24],
            strides: (3, 2), out: (3, 4))
        #expect(planes == Planes(luma: [1, 2, 3, 4, 5, 6, 7, 8, 9], chroma: [11, 21, 12, 22, 13, 23, 14, 24]))
    }

    @Test func onePixelIsAPicture() {
        let planes = convert(width: 1, height: 1, y: [7], u: [8], v: [9], strides: (1, 1), out: (1, 2))
        #expect(planes == Planes(luma: [7], chroma: [8, 9]))
    }

    @Test func thePaddingOfRowsIsNeitherReadNorWritten() {
        let planes = convert(
            width: 2, height: 2, y: [1, 2, 0, 3, 4], u: [11], v: [21], strides: (3, 1), out: (4, 3))
        #expect(planes == Planes(luma: [1, 2, 0xEE, 0xEE, 3, 4, 0xEE, 0xEE], chroma: [11, 21, 0xEE]))
    }

    @Test(arguments: [1, 2, 5, 64, 639, 640]) func anySizeHasEveryPixelInItsPlace(width: Int) {
        let height = width / 2 + 1
        let (half, rows) = ((width + 1) / 2, (height + 1) / 2)
        let y = (0..<width * height).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let u = (0..<half * rows).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let v = (0..<half * rows).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ 5) }
        let planes = convert(
            width: width, height: height, y: y, u: u, v: v, strides: (width, half), out: (width, 2 * half))
        #expect(planes == Planes(luma: y, chroma: zip(u, v).flatMap { [$0, $1] }))
    }

    @Test func planesThatAreTooSmallAreRefused() {
        let y: [UInt8] = [1, 2, 3, 4]
        #expect(convert(width: 2, height: 2, y: [1, 2, 3], u: [1], v: [1], strides: (2, 1), out: (2, 2)) == nil)
        #expect(convert(width: 2, height: 2, y: y, u: [], v: [1], strides: (2, 1), out: (2, 2)) == nil)
        #expect(convert(width: 2, height: 2, y: y, u: [1], v: [1], strides: (1, 1), out: (2, 2)) == nil)
        #expect(convert(width: 2, height: 2, y: y, u: [1], v: [1], strides: (2, 1), out: (1, 2)) == nil)
        #expect(convert(width: 2, height: 2, y: y, u: [1], v: [1], strides: (2, 1), out: (2, 1)) == nil)
        #expect(convert(width: 0, height: 2, y: y, u: [1], v: [1], strides: (2, 1), out: (2, 2)) == nil)
        #expect(
            convert(width: 1 << 40, height: 1 << 40, y: y, u: [1], v: [1], strides: (1 << 40, 1), out: (2, 2)) == nil)
    }
}
