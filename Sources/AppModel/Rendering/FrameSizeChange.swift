/// Detects the first frame of a track and each change in its size, the only changes that views and the SDK need to
/// know.
public struct FrameSizeChange: Equatable, Sendable {
    /// What is new with a frame: its size, or that it is the first one.
    public struct Change: Equatable, Sendable {
        /// The new size; nil if it is unchanged.
        public var size: PixelSize?
        public var isFirst: Bool

        public var isNothing: Bool { size == nil && !isFirst }
    }

    private var size: PixelSize?
    private var hasPicture = false

    public init() {}

    /// Records a frame that is shown, and returns what changed with it.
    public mutating func shown(_ size: PixelSize) -> Change {
        defer { (self.size, hasPicture) = (size, true) }
        return Change(size: size == self.size ? nil : size, isFirst: !hasPicture)
    }

    /// Makes the next frame count as the first one. Called when another stream uses the same track.
    public mutating func expectFirst() { (size, hasPicture) = (nil, false) }
}
