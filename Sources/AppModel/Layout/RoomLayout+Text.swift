// The views of the app use the layout's types as those of this module.
@_exported import Layout

extension RoomLayout {
    /// The name in the menu of layouts.
    public var text: String {
        switch self {
        case .auto: "Automatic"
        case .grid: "Grid"
        case .speaker: "Speaker"
        case .pinned: "Pinned"
        }
    }
}
