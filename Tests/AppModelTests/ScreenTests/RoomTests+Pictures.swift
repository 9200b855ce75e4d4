import Confab
import Testing

@testable import AppModel

/// What the person does with the pictures of a room.
extension RoomTests {
    private func drag(_ model: RoomModel, x: Double, y: Double) {
        model.drag(
            x: x, y: y, home: Rectangle(x: 300, y: 700, width: 90, height: 120),
            viewport: Rectangle(x: 0, y: 0, width: 400, height: 850))
    }

    @Test func aTapOnTheOwnPictureMutes() {
        let model = model(.joined)
        drag(model, x: 1, y: 1)
        #expect(model.endDrag())
        #expect(model.isMuted && model.corner == .bottomRight)
    }
    @Test func aDragMovesTheOwnPicture() {
        let model = model(.joined)
        drag(model, x: -300, y: -700)
        #expect(model.dragOffset == OwnPictureGesture.Offset(x: -300, y: -700))
        #expect(!model.endDrag())
        #expect(!model.isMuted && model.corner == .topLeft && model.drag == nil)
        #expect(!model.endDrag(), "the touch was not seen")
        model.move(.down)
        model.move(.down)
        #expect(model.corner == .bottomLeft)
    }
    @Test func aDragThatTheSystemTakesAwayLeavesThePictureWhereItWas() {
        let model = model(.joined)
        drag(model, x: -300, y: -700)
        model.cancelDrag()
        #expect(model.dragOffset == OwnPictureGesture.Offset(x: 0, y: 0) && model.corner == .bottomRight)
        drag(model, x: 1, y: 1)
        #expect(model.endDrag() && model.isMuted, "the next tap is a tap")
    }
    @Test func aDragKeepsThePlaceWhereItBegan() {
        let model = model(.joined)
        drag(model, x: 10, y: 0)
        model.drag(
            x: -300, y: 0, home: Rectangle(x: 0, y: 0, width: 90, height: 120),
            viewport: Rectangle(x: 0, y: 0, width: 400, height: 850))
        #expect(model.dragOffset.x == -300, "the room moved the picture meanwhile")
    }

    // MARK: Sizes and the small window

    @Test func aPictureHasTheShapeThatIsSeenAndNotTheOneThatIsDeclared() {
        var ada = person("Ada")
        ada.aspect = 16.0 / 9
        let model = model(.joined, .members([ada]))
        #expect(model.members[0].aspect == 16.0 / 9, "until it is seen")
        model.pictureSize(of: "ada", PixelSize(width: 480, height: 640))
        model.handle(.members([ada]))
        #expect(model.members[0].aspect == 0.75)
        ada.video = FakeVideo()
        model.handle(.members([ada]))
        #expect(model.members[0].aspect == 16.0 / 9, "another source")
    }
    @Test func theSmallWindowShowsWhatMattersMost() {
        let model = model(.joined)
        #expect(model.smallWindow == nil)
        var (ada, bob, screen) = (person("Ada", video: nil), person("Bob"), person("Screen"))
        let eve = person("Eve")
        screen.isScreen = true
        bob.aspect = 0.75
        func shown() -> (any VideoSource)? { model.smallWindow?.source }
        model.handle(.members([ada, bob, eve]))
        #expect(shown() === bob.video && model.smallWindow?.size == PixelSize(width: 360, height: 480))
        model.handle(.speaker("eve"))
        #expect(shown() === eve.video && model.smallWindow?.size == .usual)
        model.handle(.speaker(nil))
        #expect(shown() === eve.video, "a silence changes nothing")
        model.handle(.speaker("ada"))
        #expect(shown() === bob.video, "she has no picture")
        model.handle(.members([ada, bob, eve, screen]))
        #expect(shown() === screen.video)
        model.togglePin("eve")
        #expect(shown() === eve.video)
        ada.video = FakeVideo()
        model.handle(.members([ada]))
        #expect(shown() === ada.video)
        model.leave()
        #expect(model.smallWindow == nil)
    }
    @Test(arguments: [(0.0, 120), (100.0, 1920), (1.5, 720)]) func smallWindowsAreNeitherThinNorFlat(
        aspect: Double, width: Int
    ) {
        #expect(PixelSize(aspect: aspect) == PixelSize(width: width, height: 480))
        #expect(PixelSize(aspect: .nan) == nil && PixelSize(aspect: nil) == nil)
    }

    // MARK: Tiles

    @Test func pagesEndAtTheFirstAndTheLast() {
        var placed = LayoutOutput(tiles: [], own: nil, overflow: 0, page: 0, pages: 2)
        #expect(placed.previousPage == 0 && placed.nextPage == 1)
        placed.page = 1
        #expect(placed.previousPage == 0 && placed.nextPage == 1)
    }
    @Test func aTileOfAPersonWhoLeftHasNoTexts() {
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
