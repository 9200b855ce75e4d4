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

    /// The finger left the own picture: a tap mutes, a drag moves it to another corner.
    ///
    /// - Returns: whether the picture answers the tap with a movement.
    public func finish(_ gesture: OwnPictureGesture?) -> Bool {
        switch gesture?.end() {
        case .tap:
            toggleMute()
            return true
        case .corner(let corner): move(to: corner)
        case nil: break
        }
        return false
    }

    public func firstFrame(of id: String) { handle(.firstFrame(id)) }
    public func pictureSize(of id: String, _ size: PixelSize) {
        guard let index = members.firstIndex(where: { $0.id == id }), let aspect = size.aspect else { return }
        members[index].aspect = aspect
    }
    public func ownPictureSize(_ size: PixelSize) { ownAspect = size.aspect }

    /// Whether others see nothing of this person.
    public var lacksOwnPicture: Bool { shownOwn == nil }
}
