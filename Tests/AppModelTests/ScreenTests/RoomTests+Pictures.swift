import Testing

@testable import AppModel

/// What the person does with the pictures of a room.
extension RoomTests {
    private func gesture(x: Double, y: Double) -> OwnPictureGesture {
        var gesture = OwnPictureGesture(
            home: Rectangle(x: 300, y: 700, width: 90, height: 120),
            viewport: Rectangle(x: 0, y: 0, width: 400, height: 850))
        gesture.move(x: x, y: y)
        return gesture
    }

    @Test func aTapOnTheOwnPictureMutes() {
        let model = model(.joined)
        #expect(model.finish(gesture(x: 1, y: 1)))
        #expect(model.isMuted && model.corner == .bottomRight)
    }
    @Test func aDragMovesTheOwnPicture() {
        let model = model(.joined)
        #expect(!model.finish(gesture(x: -300, y: -700)))
        #expect(!model.isMuted && model.corner == .topLeft)
        #expect(!model.finish(nil), "the touch was not seen")
        model.move(.down)
        model.move(.down)
        #expect(model.corner == .bottomLeft)
    }
    @Test func pagesEndAtTheFirstAndTheLast() {
        var placed = LayoutOutput(tiles: [], own: nil, overflow: 0, page: 0, pages: 2)
        #expect(placed.previousPage == 0 && placed.nextPage == 1)
        placed.page = 1
        #expect(placed.previousPage == 0 && placed.nextPage == 1)
    }
    @Test func aTileOfSomebodyWhoLeftHasNoTexts() {
        let model = model(.joined, members("Ada"))
        #expect(model.row(of: "ada").title == "Ada")
        model.handle(members())
        #expect(model.row(of: "ada").title.isEmpty && model.row(of: "ada").accessibilityText.isEmpty)
    }
    @Test func withoutTheCameraThereIsNoOwnPicture() {
        let model = model(.joined, .ownVideo(FakeVideo()))
        #expect(!model.lacksOwnPicture)
        model.toggleCamera()
        #expect(model.lacksOwnPicture)
    }
    @Test func theChatClosesWithTheRoom() {
        let model = model(.joined)
        model.showsChat = true
        model.leave()
        #expect(!model.showsChat)
    }
}
