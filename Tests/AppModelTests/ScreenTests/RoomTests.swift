import Foundation
import Testing

@testable import AppModel
@testable import Confab

@Suite @MainActor struct RoomTests {
    final class Requests { var all: [RoomRequest] = [] }
    let requests = Requests()
    let device = FakeDevice()

    func model(_ events: RoomEvent...) -> RoomModel {
        let model = RoomModel(
            clock: device.clock, permissions: device.permissions,
            announce: { [device] in device.announcer.announce($0) }
        ) { [requests] in
            requests.all.append($0)
        }
        model.roomName = "book club"
        if !events.isEmpty { model.join() }
        for event in events { model.handle(event) }
        return model
    }

    func members(_ names: String...) -> RoomEvent {
        .members(names.map { person($0) })
    }

    func person(_ name: String, video: (any VideoSource)? = FakeVideo()) -> RoomPerson {
        var person = RoomPerson(id: name.lowercased(), member: RoomMember(name))
        person.video = video
        return person
    }

    // MARK: Joining

    @Test func ready() {
        let model = model()
        Golden.expect(model, "Room", "ready")
        model.roomName = " "
        #expect(!model.canJoin)
    }
    @Test func joining() {
        let model = model()
        model.join()
        #expect(requests.all == [.join("book club", name: "", password: nil, video: true)])
        Golden.expect(model, "Room", "joining")
    }
    @Test func lobby() { Golden.expect(model(.waitingForHost), "Room", "waiting to be let in") }
    @Test func full() {
        Golden.expect(model(.refused(ConfabError(.roomFull, "Full."))), "Room", "full")
    }
    @Test func password() {
        let trouble = ConfabError(.roomPassword, "This room has a password. Enter it and join again.")
        let model = model(.refused(trouble))
        Golden.expect(model, "Room", "password needed")
        model.password = "secret"
        model.join()
        #expect(requests.all.last == .join("book club", name: "", password: "secret", video: true))
    }
    @Test func membersSeeAddresses() {
        let model = model(.refused(ConfabError(.roomMesh, "Mesh.")))
        #expect(requests.all == [.join("book club", name: "", password: nil, video: true)])
        #expect(device.announcer.texts.last == model.statusText)
        Golden.expect(model, "Room", "members see addresses")
        model.join()
        #expect(requests.all.last == .join("book club", name: "", password: nil, video: true, routedOnly: false))
        #expect(model.status == .joining)
    }
    @Test func whoDoesNotAcceptThatAddressesAreSeenDoesNotJoin() {
        let model = model(.refused(ConfabError(.roomMesh, "Mesh.")))
        model.leave()
        #expect(model.status == .ready && requests.all.count == 1)
    }
    @Test func aRoomWithoutAPasswordIsJoinedOnlyIfThePersonWantsIt() {
        let model = model(.refused(ConfabError(.roomPassword, "This room has a password.")))
        model.password = "secret"
        model.join()
        model.handle(.refused(ConfabError(.roomNoPassword, "None.")))
        #expect(model.joinText == "Join without a password" && model.offersCancel)
        #expect(model.statusText.hasPrefix("This room has no password"))
        model.roomName = "garden"
        #expect(model.joinText == "Join")
        model.roomName = "book club"
        model.join()
        #expect(requests.all.last == .join("book club", name: "", password: nil, video: true))
    }
    @Test func anotherRoomWithTheNameOfTheLastIsJoinedOnlyIfThePersonWantsIt() {
        let model = model(.refused(ConfabError(.roomMesh, "Mesh.")))
        model.join()
        model.handle(.joined)
        model.handle(.ended(.otherRoom))
        #expect(model.status == .otherRoom && model.canJoin && device.announcer.texts.last == model.statusText)
        #expect(requests.all.count == 2, "it does not join by itself")
        model.join()
        #expect(requests.all.last == .join("book club", name: "", password: nil, video: true), "nor past a question")
    }
    @Test func addressesAreAcceptedForOneRoomAndOneVisit() {
        let model = model(.refused(ConfabError(.roomMesh, "Mesh.")))
        model.roomName = "garden"
        #expect(model.joinText == "Join" && !model.offersCancel)
        model.join()
        #expect(requests.all.last == .join("garden", name: "", password: nil, video: true))
        model.handle(.refused(ConfabError(.roomMesh, "Mesh.")))
        model.join()
        let trouble = ConfabError(.roomPassword, "This room has a password.")
        model.handle(.refused(trouble))
        model.password = "secret"
        model.join()
        #expect(requests.all.last == .join("garden", name: "", password: "secret", video: true, routedOnly: false))
        model.handle(.joined)
        model.leave()
        model.join()
        #expect(requests.all.last == .join("garden", name: "", password: "secret", video: true))
    }
    @Test func notConnectedWillRejoin() {
        let model = model(.joined, members("Ada"))
        model.handle(.reconnecting(true))
        #expect(model.showsRoom, "the pictures stay")
        Golden.expect(model, "Room", "not connected, will rejoin")
        model.handle(.reconnecting(false))
        #expect(requests.all.count == 1, "the SDK joins again by itself")
        #expect(model.isInRoom)
        #expect(model.members.count == 1)
    }

    // MARK: In the room

    @Test func alone() { Golden.expect(model(.joined), "Room", "0 others") }
    @Test func connectingTo() { Golden.expect(model(.joined, .connecting(name: "Ada")), "Room", "connecting to Ada") }
    @Test func one() { Golden.expect(model(.joined, members("Ada"), .firstFrame("ada")), "Room", "1 other") }
    @Test func two() { Golden.expect(model(.joined, members("Ada", "Bob"), .firstFrame("ada")), "Room", "2 others") }
    @Test func three() {
        let model = model(.joined, members("Ada", "Bob", "Cy"), .said(RoomMessage("Ada", "Hello")))
        Golden.expect(model, "Room", "3 others")
    }
    @Test func pinned() {
        let model = model(.joined, members("Ada", "Bob", "Cy"))
        model.togglePin("bob")
        #expect(model.arrangement(width: 1000, height: 600).tiles.first?.id == "bob")
        Golden.expect(model, "Room", "pinned")
        model.handle(members("Ada"))
        #expect(model.pinned.isEmpty)
    }
    @Test func speaking() { Golden.expect(model(.joined, members("Ada", "Bob"), .speaker("bob")), "Room", "speaking") }
    @Test func mutedByHost() {
        let model = model(.joined, members("Ada"), .mutedByHost)
        Golden.expect(model, "Room", "muted by a host")
        #expect(requests.all.last == .mute(true), "it holds for media that is published again")
        model.toggleMute()
        #expect(model.noticeText.isEmpty)
        #expect(requests.all.last == .mute(false))
    }
    @Test func removed() { Golden.expect(model(.joined, members("Ada"), .ended(.removed)), "Room", "removed") }
    @Test func failed() {
        let trouble = ConfabError("not_found", "This room has ended.")
        Golden.expect(model(.joined, .ended("closed", trouble)), "Room", "failed")
    }

    @Test func barsAreHiddenWhileAPersonIsSeen() {
        let model = model(.joined, members("Ada"))
        #expect(!model.hidesBars)
        model.firstFrame(of: "ada")
        #expect(model.hidesBars)
    }
    @Test func thePicturesAreWhereTheLayoutPutsThem() {
        let model = model(.joined, members("Ada", "Bob"))
        model.pictureSize(of: "ada", PixelSize(width: 480, height: 640))
        model.pictureSize(of: "bob", PixelSize(width: 640, height: 480))
        model.pictureSize(of: "gone", PixelSize(width: 0, height: 0))
        let output = model.arrangement(width: 844, height: 390)
        #expect(output.tiles.map(\.rectangle.width) == [376, 460])
        #expect(output.own?.rectangle.x == 844 - 10 - 160)
        model.handle(members("Bob", "Ada"))
        let aspects = model.members.map { $0.aspect ?? 0 }
        #expect(aspects == [4.0 / 3, 3.0 / 4], "sizes are kept")
    }
    @Test func whatWasPressedBeforeJoiningHolds() {
        let model = model()
        model.toggleMute()
        model.toggleCamera()
        model.join()
        requests.all = []
        model.handle(.ownVideo(FakeVideo()))
        #expect(requests.all == [.mute(true), .camera(false)])
        #expect(model.shownOwn == nil)
        #expect(model.ownText == "You, Muted, No video")
    }
    @Test func aPersonIsRemovedWhileTheConnectionIsLost() {
        let model = model(.joined, .reconnecting(true), .ended(.removed))
        #expect(model.status == .removed)
        model.leave()
        model.handle(.ended("late", ConfabError("late", "Late.")))
        #expect(model.status == .ready)
    }
    @Test func theLinkOpensTheRoom() {
        let model = model(.joined)
        #expect(model.link == nil)
        model.server = URL(string: "https://chat.example.org")
        #expect(model.link?.absoluteString == "https://chat.example.org/room/book%20club")
    }
    @Test func leavingAsksOnce() {
        let model = model(.joined)
        model.leave()
        model.leave()
        #expect(requests.all.suffix(1) == [.leave])
        #expect(requests.all.count == 2)
    }

    // MARK: Devices

    @Test func aRoomIsJoinedWithoutACameraThatMayNotBeUsed() {
        device.permissions.statuses[.camera] = .refused
        let model = model()
        model.join()
        #expect(requests.all.last == .join("book club", name: "", password: nil, video: false))
        for event in [RoomEvent.ownVideo(nil), .joined] { model.handle(event) }
        #expect(model.isInRoom && !model.canSwitchCamera)
    }
    @Test func aCameraThatIsOffStaysClosed() {
        let model = model()
        model.toggleCamera()
        model.join()
        #expect(requests.all.last == .join("book club", name: "", password: nil, video: false))
    }
    @Test func theSystemAsksBeforeTheRoomIsJoined() {
        device.permissions.statuses = [:]
        let model = model()
        model.join()
        #expect(requests.all.isEmpty && device.permissions.asked == [.camera])
        device.permissions.answer(.refused)
        device.permissions.answer(.allowed)
        #expect(requests.all == [.join("book club", name: "", password: nil, video: false)])
    }
    @Test func aPersonWhoCancelsWhileTheSystemAsksDoesNotJoin() {
        device.permissions.statuses = [:]
        let model = model()
        model.join()
        model.leave()
        device.permissions.answer(.allowed)
        device.permissions.answer(.allowed)
        #expect(requests.all == [.cancel])
    }
    @Test func withoutTheMicrophoneOneListensAndReadsWhatToDo() {
        device.permissions.statuses[.microphone] = .refused
        let model = model(.joined)
        Golden.expect(model, "Room", "no microphone")
        device.clock.pass(60)
        #expect(model.noticeText.isEmpty)
    }
    @Test func aRefusedCameraSaysWhereToAllowIt() {
        device.permissions.statuses[.camera] = .refused
        let model = model(.joined)
        model.toggleCamera()
        model.toggleCamera()
        #expect(model.isCameraOff)
        Golden.expect(model, "Room", "no camera")
        device.permissions.statuses[.camera] = .allowed
        model.toggleCamera()
        #expect(!model.isCameraOff && !model.offersSettings)
    }
    @Test func aCameraThatCannotBeOpenedIsOffAndSaysWhy() {
        let model = model(.joined)
        model.handle(.cameraFailed(ConfabError("media_failed", "The camera could not be started.")))
        #expect(model.isCameraOff && model.noticeText == "The camera could not be started.")
        #expect(requests.all.last == .camera(false))
    }
    @Test func othersDoNotSeeACameraThatTheSystemTookAway() {
        let model = model(.joined, .ownVideo(FakeVideo()))
        requests.all = []
        model.handle(.cameraInterrupted(true))
        #expect(requests.all == [.camera(false)] && model.shownOwn == nil)
        #expect(model.ownText == "You, Camera paused")
        model.showsCamera(false)
        model.handle(.cameraInterrupted(false))
        #expect(requests.all == [.camera(false)], "the app is not on the screen")
        model.showsCamera(true)
        #expect(requests.all == [.camera(false), .camera(true)] && model.shownOwn != nil)
    }
    @Test(arguments: [true, false]) func anAppThatIsLeftBeforeItIsAdmittedSendsNoPicture(isInLobby: Bool) {
        let model = isInLobby ? model(.waitingForHost, .ownVideo(FakeVideo())) : model(.ownVideo(FakeVideo()))
        requests.all = []
        model.showsCamera(false)
        #expect(requests.all == [.camera(false)])
    }
    @Test func onlyTheCameraOnTheFrontIsAMirror() {
        let model = model(.joined)
        #expect(model.camera.isMirrored)
        model.handle(.cameraFaces(.back))
        #expect(!model.camera.isMirrored)
    }

    // MARK: A shared screen

    @Test func aShareThatTheSystemEndsLooksEnded() {
        let model = model(.joined)
        model.toggleScreen()
        #expect(requests.all.last == .shareScreen(true) && model.isSharingScreen)
        model.handle(.shareEnded(.screenEnded))
        #expect(!model.isSharingScreen)
        Golden.expect(model, "Room", "screen no longer shared")
        model.toggleScreen()
        #expect(model.noticeText.isEmpty)
        model.handle(.shareEnded(.shareStopped))
        #expect(model.noticeText == "A host stopped your screen share.")
    }
    @Test func aScreenThatWasNotSharedIsNotMissed() {
        let model = model(.joined)
        model.handle(.shareEnded(.screenEnded))
        #expect(model.noticeText.isEmpty)
    }

    // MARK: Others

    @Test func aVideoThatIsTurnedOffHasNoPicture() {
        let model = model(.joined, members("Ada"), .firstFrame("ada"))
        #expect(model.tiles.isShown("ada"))
        model.handle(.members([person("Ada", video: nil)]))
        #expect(model.video(of: "ada") == nil && !model.tiles.isShown("ada"))
        model.handle(members("Ada"))
        #expect(!model.tiles.isShown("ada"), "the tile appears with the first frame")
    }
    @Test func aVideoThatTheNetworkDoesNotCarrySaysSo() {
        var ada = person("Ada")
        ada.isPaused = true
        #expect(model(.joined, .members([ada]), .firstFrame("ada")).rows[0].detail.hasPrefix("Video paused"))
    }
    @Test func aScreenIsNotAPerson() {
        var screen = person("Ada")
        (screen.id, screen.isScreen) = ("screen", true)
        let model = model(.joined, .members([person("Ada"), screen]))
        #expect(model.statusText.contains("You are in the room with"))
        #expect(model.rows.map(\.title) == ["Ada", "Ada’s screen"])
    }
    @Test func connectingEndsWhenAllHaveArrived() {
        let model = model(.joined, members("Ada"), .connecting(name: "Ada"))
        model.handle(.connecting(name: nil))
        #expect(!model.statusText.contains("Connecting"))
    }
    @Test func reactionsAreShownForAMoment() {
        let model = model(.joined, members("Ada"), .reacted(id: "ada", "👍"), .reacted(id: nil, "🎉"))
        #expect(device.announcer.texts.last?.contains("reacted with 👍") == true)
        #expect(model.reactionText(of: nil) == "🎉")
        Golden.expect(model, "Room", "reactions")
        for _ in 0..<100 { model.handle(.reacted(id: "ada", "😂")) }
        #expect(model.reactionText(of: "ada").count == RoomModel.maxReactions)
        device.clock.pass(4)
        #expect(model.reactions.isEmpty)
        model.react("👏")
        #expect(requests.all.last == .react("👏"))
    }
    @Test func aHostLetsPeopleIn() {
        let bob = RoomKnock(id: "bob", name: "Bob")
        let model = model(.joined, .waitingPeople([bob]))
        #expect(device.announcer.texts.last == RoomModel.text(of: bob))
        Golden.expect(model, "Room", "someone waits")
        model.admit("bob")
        model.deny("bob")
        #expect(requests.all.suffix(2) == [.admit("bob"), .deny("bob")])
        model.handle(.waitingPeople([]))
        #expect(model.waitingPeople.isEmpty)
    }
}
