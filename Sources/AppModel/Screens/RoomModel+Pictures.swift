/// How the person arranges the pictures of a room, and what views tell about them.
extension RoomModel {
    public func togglePin(_ id: String) {
        if let index = pinned.firstIndex(of: id) { pinned.remove(at: index) } else { pinned.append(id) }
        layout = pinned.isEmpty ? .auto : .pinned
    }
    public func doubleTap(_ id: String) { tiles.doubleTap(on: id) }
    public func move(to corner: Corner) { self.corner = corner }
    /// Moves the own picture to the next corner in a direction, as VoiceOver does.
    public func move(_ direction: Corner.Direction) { move(to: corner.moved(direction)) }
    public func showPage(_ page: Int) { self.page = max(0, page) }

    // MARK: A finger on the own picture

    /// The finger touches the own picture, or moved.
    ///
    /// - Parameters:
    ///   - x: how far it moved to the right since it touched the screen, in points; `y` is how far down.
    ///   - home: where the picture lies. The place at the first touch holds, even if the room moves the picture meanwhile.
    ///   - viewport: where the picture stays.
    public func drag(x: Double, y: Double, home: Rectangle, viewport: Rectangle) {
        var moved = drag ?? OwnPictureGesture(home: home, viewport: viewport)
        moved.move(x: x, y: y)
        drag = moved
    }

    /// How far the own picture is from where it lies.
    public var dragOffset: OwnPictureGesture.Offset { drag?.offset ?? OwnPictureGesture.Offset(x: 0, y: 0) }

    /// The finger left the own picture: a tap mutes, a drag moves it to another corner.
    ///
    /// - Returns: whether the picture answers the tap with a movement.
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

    /// The system took the touch away, for example for a gesture of its own. The picture returns.
    public func cancelDrag() { drag = nil }

    // MARK: What views see

    public func firstFrame(of id: String) { handle(.firstFrame(id)) }
    public func pictureSize(of id: String, _ size: PixelSize) {
        guard let index = members.firstIndex(where: { $0.id == id }), let aspect = size.aspect else { return }
        measured[id] = aspect
        members[index].aspect = aspect
    }
    public func ownPictureSize(_ size: PixelSize) { ownAspect = size.aspect }

    /// What goes on after the app is left: what was pinned, a shared screen, who spoke last, or else the first picture.
    public var smallWindow: SmallWindow? {
        let seen = members.filter { $0.video != nil }
        let shown =
            seen.first { pinned.contains($0.id) } ?? seen.first(where: \.isScreen) ?? seen.first {
                $0.id == lastSpeaker
            }
            ?? seen.first
        return SmallWindow(shown?.video, PixelSize(aspect: shown?.aspect))
    }

    /// The small window is shown now, or no longer.
    public func smallWindow(isShown: Bool) {
        isInSmallWindow = isShown
        onSmallWindow?()
    }

    /// Whether others see nothing of this person.
    public var lacksOwnPicture: Bool { shownOwn == nil }
}
