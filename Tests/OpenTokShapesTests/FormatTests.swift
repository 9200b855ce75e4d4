import Foundation
import OpenTokShapes
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
}
