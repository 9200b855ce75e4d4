import Testing

@testable import AppModel

/// Pictures with four bytes for each pixel are copied without their padding.
@Suite struct PackedPictureTests {
    /// Copies a picture of one column and two rows. Unwritten bytes stay 0xEE.
    private func copy(_ bytes: [UInt8], stride: Int, to count: Int, stride outStride: Int) -> [UInt8]? {
        var out = [UInt8](repeating: 0xEE, count: count)
        let isCopied = bytes.withUnsafeBytes { bytes in
            out.withUnsafeMutableBytes { out in
                PackedPicture(width: 1, height: 2, stride: stride)?.copy(
                    bytes, to: MutablePlane(bytes: out, stride: outStride)) ?? false
            }
        }
        return isCopied ? out : nil
    }

    @Test func thePaddingIsNeitherReadNorWritten() {
        let bytes: [UInt8] = [1, 2, 3, 4, 0, 5, 6, 7, 8]
        #expect(copy(bytes, stride: 5, to: 10, stride: 6) == [1, 2, 3, 4, 0xEE, 0xEE, 5, 6, 7, 8])
    }

    @Test func aPlaneThatIsTooSmallIsNotCopied() {
        let bytes = [UInt8](repeating: 1, count: 8)
        #expect(copy(bytes, stride: 4, to: 8, stride: 4) != nil)
        #expect(copy(Array(bytes.dropLast()), stride: 4, to: 8, stride: 4) == nil)
        #expect(copy(bytes, stride: 4, to: 7, stride: 4) == nil)
        #expect(copy(bytes, stride: 4, to: 8, stride: 3) == nil, "rows would overlap")
    }

    @Test(arguments: [(0, 1, 4), (1, 0, 4), (1, 1, 3), (-1, 1, 4), (1 << 17, 1, 1 << 19), (1, 1, 1 << 21)])
    func sizesThatAreNotPicturesAreRefused(width: Int, height: Int, stride: Int) {
        #expect(PackedPicture(width: width, height: height, stride: stride) == nil)
    }

    @Test func onlyFramesInOnePlaneOfPackedPixelsAreTaken() {
        func picture(isPacked: Bool = true, _ strides: [Int?], planes: Int) -> PackedPicture? {
            PackedPicture(isPacked: isPacked, width: 1, height: 1, strides: strides, planes: planes)
        }
        #expect(picture([4], planes: 1) == PackedPicture(width: 1, height: 1, stride: 4))
        #expect(picture(isPacked: false, [4], planes: 1) == nil)
        #expect(picture([4, 4, 4], planes: 3) == nil && picture([], planes: 0) == nil)
        #expect(picture([nil], planes: 1) == nil && picture([], planes: 1) == nil)
    }

    @Test func theLastRowNeedsNoPadding() {
        #expect(PackedPicture(width: 2, height: 3, stride: 16)?.byteCount == 40)
    }
}
