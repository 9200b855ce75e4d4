import Foundation
import Testing

@testable import AppModel

@Suite @MainActor struct RoomTests {
    private final class Requests { var all: [RoomRequest] = [] }
    private let requests = Requests()

    private func model(_ events: RoomEvent...) -> RoomModel {
        let model = RoomModel { [requests] in requests.all.append($0) }
        model.roomName = "book club"
        if !events.isEmpty { model.join() }
        for event in events { model.handle(event) }
        return model
    }

    private func members(_ names: String...) -> RoomEvent {
        .members(names.map { RoomPerson(id: $0.lowercased(), name: $0) })
    }

    // MARK: Joining

    @Test func ready() {
        #expect(!RoomModel { _ in }.canJoin)
        Golden.expect(model(), "Room", "ready")
    }
    @Test func joining() {
        let model = model()
        model.join()
        #expect(requests.all == [.join("book club", name: "", password: nil)])
        Golden.expect(model, "Room", "joining")
    }
    @Test func lobby() { Golden.expect(model(.waitingForHost), "Room", "waiting to be let in") }
    @Test func full() {
        let trouble = CallTrouble(code: "session_full", message: "Full.")
        Golden.expect(model(.refused(trouble, isFull: true, needsPassword: false)), "Room", "full")
    }
    @Test func password() {
        let trouble = CallTrouble(
            code: "password_required", message: "This room has a password. Enter it and join again.")
        let model = model(.refused(trouble, isFull: false, needsPassword: true))
        Golden.expect(model, "Room", "password needed")
        model.password = "secret"
        model.join()
        #expect(requests.all.last == .join("book club", name: "", password: "secret"))
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
        let model = model(.joined, members("Ada", "Bob", "Cy"), .message(sender: "Ada", text: "Hello", isOwn: false))
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
        model.toggleMute()
        #expect(model.noticeText.isEmpty)
        #expect(requests.all.last == .mute(false))
    }
    @Test func removed() { Golden.expect(model(.joined, members("Ada"), .removed), "Room", "removed") }
    @Test func failed() {
        let trouble = CallTrouble(code: "not_found", message: "This room has ended.")
        Golden.expect(model(.joined, .failed(trouble)), "Room", "failed")
    }

    @Test func barsAreHiddenWhileSomebodyIsSeen() {
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
        #expect(output.own?.rectangle.x == 844 - 10 - 120)
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
        let model = model(.joined, .reconnecting(true), .removed)
        #expect(model.status == .removed)
        model.leave()
        model.handle(.failed(CallTrouble(code: "late", message: "Late.")))
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
}

@Suite @MainActor struct SettingsTests {
    private let clock = FakeClock()
    private final class Requests { var all: [SettingsRequest] = [] }
    private let requests = Requests()

    private func model(_ events: SettingsEvent...) -> SettingsModel {
        let model = SettingsModel(settings: DeviceSettings(), server: "https://chat.example.org", clock: clock) {
            [requests] in requests.all.append($0)
        }
        for event in events { model.handle(event) }
        return model
    }

    @Test func usual() { Golden.expect(model(.blocked([])), "Settings", "usual") }
    @Test func full() {
        let model = model(
            .devices([
                LinkedDevice(id: "1", name: "", isCurrent: true), LinkedDevice(id: "2", name: "iPad", isCurrent: false),
            ]),
            .code("ABCD-EFGH", validFor: .seconds(300)), .blocked([CallPerson(id: "b", name: "Bob")]), .push(.on))
        Golden.expect(model, "Settings", "with devices, a code and a blocked person")
    }
    @Test func deleting() {
        let model = model()
        model.deleteAccount()
        #expect(requests.all.isEmpty, "it asks first")
        model.askToDelete()
        Golden.expect(model, "Settings", "asking to delete")
        model.deleteAccount()
        #expect(requests.all == [.deleteAccount])
        model.handle(.deleted)
        Golden.expect(model, "Settings", "deleted")
    }
    @Test func exporting() {
        let model = model()
        model.export()
        Golden.expect(model, "Settings", "exporting")
        model.handle(.failed(CallTrouble(code: "export_failed", message: "The download failed. Try again.")))
        Golden.expect(model, "Settings", "export failed")
    }
    @Test func notificationsAreTurnedOff() {
        let model = model(.push(.on))
        model.togglePush()
        #expect(model.push == .busy && !model.settings.isNotified)
        #expect(requests.all == [.changed(model.settings), .push(false)])
        model.handle(.push(.off))
        #expect(model.canTogglePush)
    }
    @Test func aChangedSettingIsKept() {
        let model = model()
        model.settings.size = .size1280x720
        guard case .changed(let settings) = requests.all.last else {
            Issue.record("no request")
            return
        }
        #expect(settings.size == .size1280x720)
    }
    @Test(arguments: [("ABCD-EFGH", true), ("abcdefgh", true), ("ABCD", false)])
    func aCodeHasEightCharacters(code: String, isComplete: Bool) {
        let model = model()
        model.codeDraft = code
        #expect(model.canUseCode == isComplete)
    }
}
