import Foundation
import Testing

@testable import AppModel
@testable import Confab

/// What hosts do, and the preview before joining.
extension RoomTests {
    // MARK: Hosts

    @Test func whatAHostMayDo() {
        var bob = person("Bob")
        (bob.member, bob.isMuted) = (RoomMember("Bob", role: .cohost), true)
        var screen = person("Screen")
        screen.isScreen = true
        let model = model(.joined, .members([person("Ada"), bob, screen]))
        #expect(model.actions(on: "ada").isEmpty, "guests")
        model.handle(.role(.cohost))
        #expect(device.announcer.texts.last == "You are now a cohost of this room.")
        #expect(model.actions(on: "ada") == [.mute, .remove])
        #expect(model.actions(on: "bob").isEmpty, "a cohost cannot remove another one")
        #expect(model.actions(on: "screen") == [.stopSharing])
        model.handle(.role(.host))
        #expect(model.actions(on: "ada") == [.mute, .makeHost, .makeCohost, .remove])
        #expect(model.actions(on: "bob") == [.makeHost, .makeGuest, .remove])
        #expect(model.actions(on: "gone").isEmpty)
        Golden.expect(model, "Room", "host")
        model.perform(.mute, on: "ada")
        model.perform(.stopSharing, on: "screen")
        model.perform(.mute, on: "bob")
        #expect(requests.all.suffix(2) == [.moderate(.mute, "ada"), .moderate(.stopSharing, "screen")])
        #expect(requests.all.count == 3, "Bob is muted")
    }
    @Test func aHostIsAskedBeforeWhatCannotBeUndone() throws {
        let model = model(.joined, .role(.host), members("Ada"))
        model.perform(.remove, on: "ada")
        #expect(requests.all.count == 1 && model.asks)
        Golden.expect(model, "Room", "host, asked before removing")
        let question = try #require(model.question)
        model.asks = false
        #expect(model.question == nil)
        model.confirm(question)
        #expect(requests.all.last == .moderate(.remove, "ada"), "the dialog is closed before its button acts")
        model.perform(.makeHost, on: "ada")
        Golden.expect(model, "Room", "host, asked before making another")
        model.handle(members("Bob"))
        #expect(!model.asks, "she left")
        model.confirm(question)
        #expect(requests.all.count == 2)
    }
    @Test func aHostWhoBecomesAGuestIsNotAskedAnymore() {
        let model = model(.joined, .role(.host), members("Ada"))
        model.perform(.remove, on: "ada")
        model.handle(.role(.guest))
        #expect(!model.asks)
        #expect(model.actions(on: "ada").isEmpty)
    }
    @Test func theNetworkOfAPersonIsOnTheirTile() {
        var ada = person("Ada")
        ada.quality = .poor
        Golden.expect(model(.joined, .members([ada]), .firstFrame("ada")), "Room", "poor connection")
    }

    // MARK: Before joining

    @Test func theOwnPictureIsSeenBeforeJoining() {
        let model = model()
        model.preview()
        #expect(requests.all == [.preview(video: true)] && !model.canPreview)
        model.handle(.ownVideo(FakeVideo()))
        #expect(model.shownOwn != nil)
        Golden.expect(model, "Room", "preview")
        model.closePreview()
        #expect(requests.all.last == .closePreview && model.own == nil)
        model.handle(.ownVideo(FakeVideo()))
        #expect(model.own == nil, "the camera opened late")
    }
    @Test func joiningKeepsTheCameraOfThePreview() {
        let model = model()
        model.preview()
        model.handle(.ownVideo(FakeVideo()))
        model.join()
        model.handle(.joined)
        requests.all = []
        model.closePreview()
        #expect(requests.all.isEmpty && model.own != nil, "its screen is gone, the room is there")
    }
    @Test func aCameraThatIsTurnedOnDuringThePreviewIsOpened() {
        let model = model()
        model.toggleCamera()
        model.preview()
        #expect(requests.all.last == .preview(video: false))
        model.handle(.ownVideo(nil))
        model.toggleCamera()
        #expect(requests.all.last == .preview(video: true))
    }
    @Test func aCallOrTheEndOfTheConnectionClosesThePreview() {
        let model = model()
        model.preview()
        model.leaveForOther()
        #expect(requests.all.last == .closePreview && model.status == .ready)
        model.preview()
        model.leave()
        #expect(requests.all.last == .closePreview && !model.isPreviewing)
    }
    @Test func aPreviewThatFailsSaysWhyAndCanBeTriedAgain() {
        let model = model()
        model.preview()
        model.handle(.cameraFailed(ConfabError("media_failed", "The camera could not be started.")))
        #expect(model.canPreview && model.noticeText == "The camera could not be started.")
    }
    @Test func aPreviewThatFailsAfterItWasClosedChangesNothing() {
        let model = model()
        model.preview()
        model.closePreview()
        requests.all = []
        model.handle(.cameraFailed(ConfabError("media_failed", "The camera could not be started.")))
        #expect(!model.isCameraOff && model.noticeText.isEmpty && requests.all.isEmpty)
    }
}
