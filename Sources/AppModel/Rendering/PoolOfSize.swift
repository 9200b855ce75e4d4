/// A pool of buffers of one size. Pictures of another size get another pool, and the former one is released first.
public struct PoolOfSize<Pool> {
    private var pool: Pool?
    private var size: PixelSize?

    public init() {}

    /// Returns the pool for a size, which `make` creates if there is none; nil if it cannot. Then it is tried again the next time.
    public mutating func pool(for size: PixelSize, make: (PixelSize) -> Pool?) -> Pool? {
        if let pool, size == self.size { return pool }
        pool = nil
        self.size = size
        pool = make(size)
        return pool
    }
}
