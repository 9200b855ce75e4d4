/// A plane of an image: rows of bytes, each `stride` bytes after the previous one.
public struct Plane {
    public var bytes: UnsafeRawBufferPointer
    public var stride: Int

    public init(bytes: UnsafeRawBufferPointer, stride: Int) { (self.bytes, self.stride) = (bytes, stride) }
}

/// A writable plane.
public struct MutablePlane {
    public var bytes: UnsafeMutableRawBufferPointer
    public var stride: Int

    public init(bytes: UnsafeMutableRawBufferPointer, stride: Int) { (self.bytes, self.stride) = (bytes, stride) }
}

/// A decoded frame in three planes: the chroma planes have half of the width and height, rounded up.
public struct I420Picture {
    public var width: Int
    public var height: Int
    public var y: Plane
    public var u: Plane
    public var v: Plane

    public init(width: Int, height: Int, y: Plane, u: Plane, v: Plane) {
        (self.width, self.height, self.y, self.u, self.v) = (width, height, y, u, v)
    }

    var chromaWidth: Int { (width + 1) / 2 }
    var chromaHeight: Int { (height + 1) / 2 }

    /// Writes the frame in two planes, as the system's displays expect it: luma, and chroma with interleaved U and V.
    ///
    /// Returns false, and writes nothing, if a plane is too small for the size: the sizes come from the network.
    public func write(luma: MutablePlane, chroma: MutablePlane) -> Bool {
        guard width > 0, height > 0, width <= 1 << 16, height <= 1 << 16,
            holds(y.bytes.count, y.stride, rows: height, row: width),
            holds(u.bytes.count, u.stride, rows: chromaHeight, row: chromaWidth),
            holds(v.bytes.count, v.stride, rows: chromaHeight, row: chromaWidth),
            holds(luma.bytes.count, luma.stride, rows: height, row: width),
            holds(chroma.bytes.count, chroma.stride, rows: chromaHeight, row: 2 * chromaWidth)
        else { return false }
        for row in 0..<height {
            let source = UnsafeRawBufferPointer(rebasing: y.bytes[row * y.stride..<row * y.stride + width])
            let start = row * luma.stride
            UnsafeMutableRawBufferPointer(rebasing: luma.bytes[start..<start + width]).copyMemory(from: source)
        }
        // Use unchecked pointers, whose bounds are verified above: this loop runs for each frame.
        guard let us = u.bytes.baseAddress, let vs = v.bytes.baseAddress, let out = chroma.bytes.baseAddress else {
            return false
        }
        for row in 0..<chromaHeight {
            let (fromU, fromV, to) = (us + row * u.stride, vs + row * v.stride, out + row * chroma.stride)
            for column in 0..<chromaWidth {
                to.storeBytes(
                    of: fromU.load(fromByteOffset: column, as: UInt8.self), toByteOffset: 2 * column, as: UInt8.self)
                to.storeBytes(
                    of: fromV.load(fromByteOffset: column, as: UInt8.self), toByteOffset: 2 * column + 1, as: UInt8.self
                )
            }
        }
        return true
    }

    /// Returns whether a buffer of `count` bytes is large enough for all rows. The last row needs no padding.
    private func holds(_ count: Int, _ stride: Int, rows: Int, row: Int) -> Bool {
        stride >= row && stride <= 1 << 20 && count >= stride * (rows - 1) + row
    }
}
