/// Decides when to open, change and close the small window that shows a video outside of the app. At most one window
/// is open.
public struct PictureWindow: Equatable, Sendable {
    /// A command to the window, or a report to the app.
    public enum Effect: Equatable, Sendable {
        /// Resizes the open window to this size.
        case resize(PixelSize)
        /// Shows another source in the open window, at this size. A new window would not be shown while the app is in
        /// the background.
        case exchange(PixelSize)
        /// Closes the open window for good.
        case close
        /// Prepares a window of this size, which the system shows when the app leaves the foreground.
        case open(PixelSize)
        /// Reports whether the system shows the window.
        case tell(Bool)
    }

    /// The source of the newest window; nil for none. It is also stored on devices without small windows, so that not
    /// every update of a view tries to open one.
    private var source: ObjectIdentifier?
    private var isOpen = false
    private var isShown = false

    public init() {}

    /// Shows a source at this size, resizes the window if it already shows this source, or closes it if `source` is
    /// nil.
    ///
    /// - Parameter isSupported: whether the device has small windows.
    public mutating func show(_ source: ObjectIdentifier?, _ size: PixelSize, isSupported: Bool) -> [Effect] {
        guard source != self.source else { return isOpen ? [.resize(size)] : [] }
        guard source != nil else { return close() }
        self.source = source
        guard isSupported else { return [] }
        if isOpen { return [.exchange(size)] }
        isOpen = true
        return [.open(size)]
    }

    /// Closes the window if one is open. Called when its view is gone or has no source.
    public mutating func close() -> [Effect] {
        let telling = shown(false)
        defer { (source, isOpen) = (nil, false) }
        return (isOpen ? [.close] : []) + telling
    }

    /// Records whether the system shows the open window.
    public mutating func shown(_ isShown: Bool) -> [Effect] {
        guard isOpen, isShown != self.isShown else { return [] }
        self.isShown = isShown
        return [.tell(isShown)]
    }
}
