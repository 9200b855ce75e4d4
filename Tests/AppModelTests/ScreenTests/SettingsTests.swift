import Foundation
import Testing

@testable import AppModel
@testable import Confab

@Suite @MainActor struct SettingsTests {
    private let clock = FakeClock()
    private final class Requests { var all: [SettingsRequest] = [] }
    private let requests = Requests()
    private let code = Presence.LinkCode(code: "ABCD-EFGH", validFor: .seconds(300))

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
                Presence.Device(id: "1", label: "", isCurrent: true),
                Presence.Device(id: "2", label: "iPad", isCurrent: false),
            ]),
            .code(code), .blocked([Person(id: "b", name: "Bob")]), .push(.on))
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
        model.handle(.failed(ConfabError("export_failed", "The download failed. Try again.")))
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
    @Test func aCodeIsShownWhileItWorks() {
        let model = model(.code(code))
        #expect(model.codeText.hasSuffix("in 5 minutes."))
        clock.pass(300)
        #expect(model.codeText.isEmpty)
    }
    @Test func linkingAsksFirstAndSaysHowItWent() {
        let model = model()
        model.codeDraft = "ABCD-EFGH"
        model.useCode()
        #expect(requests.all.isEmpty)
        model.askToLink()
        Golden.expect(model, "Settings", "asking to link")
        model.cancelLink()
        model.askToLink()
        model.useCode()
        #expect(requests.all == [.useCode("ABCD-EFGH")] && !model.canLink)
        model.handle(.failed(ConfabError("link_invalid", "This code has expired.")))
        #expect(model.canLink && model.troubleText == "This code has expired.")
        model.askToLink()
        model.useCode()
        model.handle(.linked)
        #expect(model.linkText.hasPrefix("This device is linked.") && model.codeDraft.isEmpty)
    }
}
