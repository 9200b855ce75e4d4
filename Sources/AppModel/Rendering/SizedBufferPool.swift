/// A pool of buffers of one size. A change of the size releases the old pool before it creates the new one.
public struct SizedBufferPool<Pool> {
    private var pool: Pool?
    private var size: PixelSize?

    public init() {}

    /// Returns the pool for a size, created by `make` if necessary; nil if that fails. The next call tries again.
    public mutating func pool(for size: PixelSize, make: (PixelSize) -> Pool?) -> Pool? {
        if let pool, size == self.size { return pool }
        pool = nil
        self.size = size
        pool = make(size)
        return pool
    }
}
