/// What is new about the pictures of a track: the first one, and each new size. Views and the SDK are told only that.
public struct PictureNews: Equatable, Sendable {
    /// What a picture changes.
    public struct Change: Equatable, Sendable {
        /// The size, if it is another one than before.
        public var size: PixelSize?
        public var isFirst: Bool

        public var isNothing: Bool { size == nil && !isFirst }
    }

    private var size: PixelSize?
    private var hasPicture = false

    public init() {}

    /// A picture is shown.
    public mutating func shown(_ size: PixelSize) -> Change {
        defer { (self.size, hasPicture) = (size, true) }
        return Change(size: size == self.size ? nil : size, isFirst: !hasPicture)
    }

    /// Another stream arrives over the same track: the next picture is its first.
    public mutating func expectFirst() { (size, hasPicture) = (nil, false) }
}
