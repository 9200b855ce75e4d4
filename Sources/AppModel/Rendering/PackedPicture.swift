/// The layout of a frame in one plane, with four bytes for each pixel.
public struct PackedPicture: Equatable, Sendable {
    private static let pixel = 4
    private static let maxSide = 1 << 16
    private static let maxStride = 1 << 20

    public let width: Int
    public let height: Int
    /// The number of bytes from one row to the next.
    public let stride: Int

    /// Creates a layout; nil if the size is empty or the stride is too small for the width.
    public init?(width: Int, height: Int, stride: Int) {
        guard (1...Self.maxSide).contains(width), (1...Self.maxSide).contains(height),
            (width * Self.pixel...Self.maxStride).contains(stride)
        else { return nil }
        (self.width, self.height, self.stride) = (width, height, stride)
    }

    /// Creates the layout of an application's frame; nil if it is not packed in one plane. Other formats have more
    /// planes.
    ///
    /// - Parameters:
    ///   - isPacked: whether its format has four bytes for each pixel.
    ///   - strides: the bytes from one row to the next, of each plane; nil for a plane without that information.
    public init?(isPacked: Bool, width: Int, height: Int, strides: [Int?], planes: Int) {
        guard isPacked, planes == 1, let stride = strides.first ?? nil else { return nil }
        self.init(width: width, height: height, stride: stride)
    }

    /// The size of the frame in bytes. The last row needs no padding.
    public var byteCount: Int { byteCount(stride: stride) }

    private func byteCount(stride: Int) -> Int { stride * (height - 1) + width * Self.pixel }

    /// Copies the rows without their padding.
    ///
    /// - Returns: true if the rows were copied. If `bytes` or the plane is too small, writes nothing and returns
    /// false.
    public func copy(_ bytes: UnsafeRawBufferPointer, to plane: MutablePlane) -> Bool {
        let row = width * Self.pixel
        guard (row...Self.maxStride).contains(plane.stride), bytes.count >= byteCount,
            plane.bytes.count >= byteCount(stride: plane.stride)
        else { return false }
        for index in 0..<height {
            let from = UnsafeRawBufferPointer(rebasing: bytes[index * stride..<index * stride + row])
            let start = index * plane.stride
            UnsafeMutableRawBufferPointer(rebasing: plane.bytes[start..<start + row]).copyMemory(from: from)
        }
        return true
    }
}
