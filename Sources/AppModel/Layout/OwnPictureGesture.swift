/// A touch on the self-view: a tap mutes, a drag moves it to another corner.
///
/// All distances are in points. Those of the finger are measured from where it touched the screen.
public struct OwnPictureGesture: Equatable, Sendable {
    /// The result of a touch.
    public enum Outcome: Equatable, Sendable {
        case tap
        case corner(Corner)
    }

    /// A distance from the home position, in points.
    public struct Offset: Equatable, Sendable {
        public var x: Double
        public var y: Double
    }

    /// A touch that moves no farther than this is a tap. The web's `self-view.js` has the same number.
    public static let tapDistance = 8.0

    /// The position of the self-view when it is not being dragged.
    public let home: Rectangle
    /// The viewport, which the self-view cannot leave.
    public let viewport: Rectangle
    /// The current distance of the self-view from its home.
    public private(set) var offset = Offset(x: 0, y: 0)
    public private(set) var isDrag = false

    public init(home: Rectangle, viewport: Rectangle) {
        (self.home, self.viewport) = (home, viewport)
    }

    /// Moves the self-view with the finger, inside the viewport. Does nothing until the finger has moved farther than
    /// ``tapDistance``.
    public mutating func move(x: Double, y: Double) {
        guard x.isFinite, y.isFinite else { return }
        if (x * x + y * y).squareRoot() > Self.tapDistance { isDrag = true }
        guard isDrag else { return }
        offset.x = limit(x, from: home.x, size: home.width, in: viewport.x, viewport.width)
        offset.y = limit(y, from: home.y, size: home.height, in: viewport.y, viewport.height)
    }

    /// Ends the touch. After a drag, the self-view moves to the corner nearest to its center.
    public func end() -> Outcome {
        guard isDrag else { return .tap }
        let x = Double(home.x) + offset.x + Double(home.width) / 2
        let y = Double(home.y) + offset.y + Double(home.height) / 2
        let isLeft = x < Double(viewport.x) + Double(viewport.width) / 2
        let isTop = y < Double(viewport.y) + Double(viewport.height) / 2
        return .corner(Corner(isTop: isTop, isLeft: isLeft))
    }

    private func limit(_ distance: Double, from start: Int, size: Int, in low: Int, _ length: Int) -> Double {
        let least = Double(low - start)
        return max(least, min(distance, Double(low + length - size - start)))
    }
}

extension Corner {
    /// The direction of an arrow key or of a VoiceOver action.
    public enum Direction: CaseIterable, Sendable { case left, right, up, down }

    /// Returns the next corner in a direction, or the same one at the edge.
    public func moved(_ direction: Direction) -> Corner {
        switch direction {
        case .left: Corner(isTop: isTop, isLeft: true)
        case .right: Corner(isTop: isTop, isLeft: false)
        case .up: Corner(isTop: true, isLeft: isLeft)
        case .down: Corner(isTop: false, isLeft: isLeft)
        }
    }
}
