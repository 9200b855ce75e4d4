/// A pool of buffers of one size. When the size changes, the old pool is released before the new one is created.
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
