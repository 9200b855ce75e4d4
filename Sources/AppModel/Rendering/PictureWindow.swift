/// The small window that shows a picture outside of the app: there is one for each source.
public struct PictureWindow: Equatable, Sendable {
    public enum Effect: Equatable, Sendable {
        /// Resizes the open window, in pixels.
        case resize(PixelSize)
        /// Closes the open window for good.
        case close
        /// Prepares a window of this size, which the system shows when the app is left.
        case open(PixelSize)
    }

    /// What the newest window shows; nil for nothing. It is kept where the system has no windows, so that these are not tried
    /// again with each change of a view.
    private var source: ObjectIdentifier?
    private var isOpen = false

    public init() {}

    /// A view shows this source in this size; nil for none.
    ///
    /// - Parameter isSupported: whether the device has small windows.
    public mutating func show(_ source: ObjectIdentifier?, _ size: PixelSize, isSupported: Bool) -> [Effect] {
        guard source != self.source else { return isOpen ? [.resize(size)] : [] }
        let closing = close()
        self.source = source
        guard source != nil, isSupported else { return closing }
        isOpen = true
        return closing + [.open(size)]
    }

    /// The view is gone.
    public mutating func close() -> [Effect] {
        defer { (source, isOpen) = (nil, false) }
        return isOpen ? [.close] : []
    }
}
