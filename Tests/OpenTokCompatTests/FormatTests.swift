import Foundation
import OpenTokCompat
import Testing

@Suite("Formats of frames")
struct FormatTests {
    @Test("rows have no padding, and odd sizes are rounded up")
    func rows() {
        let formats = [
            OTVideoFormat(i420WithWidth: 5, height: 3), OTVideoFormat(nv12WithWidth: 5, height: 3),
            OTVideoFormat(argbWithWidth: 5, height: 3),
        ]
        #expect(formats.map(\.pixelFormat) == [.I420, .NV12, .ARGB])
        #expect(
            formats.map { $0.bytesPerRow.compactMap { ($0 as? NSNumber)?.intValue } } == [[5, 3, 3], [5, 6], [20]])
        #expect(formats.allSatisfy { $0.imageWidth == 5 && $0.imageHeight == 3 })
        #expect(OTVideoFormat(argbWithWidth: .max, height: .max).imageWidth == .max)
    }

    @Test("planes are added one after the other, and cleared")
    func planes() {
        let frame = OTVideoFrame(format: OTVideoFormat(i420WithWidth: 2, height: 2))
        var bytes: [UInt8] = [1, 2, 3, 4]
        bytes.withUnsafeMutableBytes { frame.planes?.addPointer($0.baseAddress) }
        #expect(frame.planes?.count == 1)
        frame.clearPlanes()
        #expect(frame.planes?.count == 0)
    }

    @Test("a transformer reads and changes the bytes of a plane, as in OpenTok's sample")
    func planeData() {
        let frame = OTVideoFrame(format: OTVideoFormat(i420WithWidth: 4, height: 2))
        var (brightness, color) = ([UInt8](0..<8), [UInt8](repeating: 128, count: 2))
        brightness.withUnsafeMutableBytes { brightness in
            color.withUnsafeMutableBytes { color in
                for plane in [brightness, color, color] { frame.planes?.addPointer(plane.baseAddress) }
                let yPlane = frame.getPlaneBinaryData(0)
                #expect(yPlane[5] == 5 && frame.getPlaneBinaryData(2)[1] == 128)
                // The second pixel of the second row.
                (yPlane + Int(frame.getPlaneStride(0)))[1] = 200
            }
        }
        #expect(brightness == [0, 1, 2, 3, 4, 200, 6, 7])
        #expect((0..<5).map { frame.getPlaneStride(Int32($0) - 1) } == [0, 4, 2, 2, 0])
    }
}
