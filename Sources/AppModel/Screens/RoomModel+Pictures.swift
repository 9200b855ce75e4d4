/// Arranges the tiles in a room, and handles reports from the views that show them.
extension RoomModel {
    public func togglePin(_ id: String) {
        if let index = pinned.firstIndex(of: id) { pinned.remove(at: index) } else { pinned.append(id) }
        layout = pinned.isEmpty ? .auto : .pinned
    }
    public func doubleTap(_ id: String) { tiles.doubleTap(on: id) }
    public func move(to corner: Corner) { self.corner = corner }
    /// Moves the self-view to the next corner in a direction. VoiceOver actions call this.
    public func move(_ direction: Corner.Direction) { move(to: corner.moved(direction)) }
    public func showPage(_ page: Int) { self.page = max(0, page) }

    // MARK: Touches on the self-view

    /// Starts or continues a touch on the self-view.
    ///
    /// - Parameters:
    ///   - x: the distance to the right of where the touch began, in points.
    ///   - y: the distance downward, in points.
    ///   - home: the position of the self-view. Only the position at the start of the touch is used, even if the layout
    ///     changes afterwards.
    ///   - viewport: the area that the self-view cannot leave.
    public func drag(x: Double, y: Double, home: Rectangle, viewport: Rectangle) {
        var moved = drag ?? OwnPictureGesture(home: home, viewport: viewport)
        moved.move(x: x, y: y)
        drag = moved
    }

    /// The distance by which a touch has moved the self-view from its home; zero while it is not touched.
    public var dragOffset: OwnPictureGesture.Offset { drag?.offset ?? OwnPictureGesture.Offset(x: 0, y: 0) }

    /// Ends a touch on the self-view: a tap mutes, a drag moves it to another corner.
    ///
    /// - Returns: true for a tap, which the self-view confirms with an animation; false for a drag.
    public func endDrag() -> Bool {
        defer { drag = nil }
        switch drag?.end() {
        case .tap:
            toggleMute()
            return true
        case .corner(let corner): move(to: corner)
        case nil: break
        }
        return false
    }

    /// Cancels a touch that the system took over, for example for a system gesture. The self-view returns to its home.
    public func cancelDrag() { drag = nil }

    // MARK: Reports from the views

    public func firstFrame(of id: String) { handle(.firstFrame(id)) }
    public func pictureSize(of id: String, _ size: PixelSize) {
        guard let index = members.firstIndex(where: { $0.id == id }), let aspect = size.aspect else { return }
        measured[id] = aspect
        members[index].aspect = aspect
    }
    public func ownPictureSize(_ size: PixelSize) { ownAspect = size.aspect }

    /// The source for the small window outside of the app: a pinned tile, a shared screen, the last speaker, or else
    /// the first video. Nil if there is no video.
    public var smallWindow: SmallWindow? {
        let seen = members.filter { $0.video != nil }
        let shown =
            seen.first { pinned.contains($0.id) } ?? seen.first(where: \.isScreen) ?? seen.first {
                $0.id == lastSpeaker
            }
            ?? seen.first
        return SmallWindow(shown?.video, PixelSize(aspect: shown?.aspect))
    }

    /// Records whether the Picture in Picture window is shown.
    public func smallWindow(isShown: Bool) {
        isInSmallWindow = isShown
        onSmallWindow?()
    }

    /// Whether there is no video for the self-view.
    public var lacksOwnPicture: Bool { shownOwn == nil }
}
