import Foundation
import Testing

@testable import AppModel
@testable import Confab

@Suite @MainActor struct WelcomeTests {
    private let remote = URL(string: "https://chat.example.org")!
    private let local = URL(string: "http://192.168.1.20:8080")!

    private let permissions = FakePermissions()

    private func model(recent: [URL] = [], canScan: Bool = true) -> WelcomeModel {
        WelcomeModel(recent: recent, permissions: permissions, canScan: canScan, check: { _ in }, use: { _ in })
    }

    private func checked(_ address: String, _ failure: ConfabError.Code?) -> WelcomeModel {
        let model = model()
        model.address = address
        model.submit()
        if case .checking(let url) = model.status { model.checked(url, failure.map { ConfabError($0, "") }) }
        return model
    }

    @Test func empty() { Golden.expect(model(), "Welcome", "empty") }

    @Test func withLastServers() { Golden.expect(model(recent: [remote, local]), "Welcome", "last servers") }

    @Test func checking() {
        let model = model()
        model.address = "chat.example.org"
        model.submit()
        #expect(model.status == .checking(remote))
        Golden.expect(model, "Welcome", "checking")
    }

    @Test func wrongAddress() { Golden.expect(checked("not an address", nil), "Welcome", "wrong address") }
    @Test func otherServer() {
        Golden.expect(checked("example.com", .serverURLInvalid), "Welcome", "not a Confab server")
    }
    @Test func unreachable() { Golden.expect(checked("chat.example.org", .connectFailed), "Welcome", "not responding") }
    @Test func localNetworkPermissionIsMissing() {
        let model = checked("192.168.1.20:8080", .connectFailed)
        #expect(model.offersSettings)
        Golden.expect(model, "Welcome", "local network not allowed")
    }
    @Test func appIsTooOld() {
        Golden.expect(checked("chat.example.org", .versionUnsupported), "Welcome", "app too old")
    }

    @Test func aGoodServerIsUsedAndRemembered() {
        var used: [URL] = []
        let model = WelcomeModel(
            recent: [local, remote], permissions: permissions, check: { _ in }, use: { used.append($0) })
        model.choose(remote)
        model.checked(local, nil)
        #expect(used.isEmpty, "a late answer about another server")
        model.checked(remote, nil)
        #expect(used == [remote])
        #expect(model.recent == [remote, local])
    }

    @Test func aScannedLinkIsChecked() {
        permissions.statuses[.camera] = .allowed
        let model = model()
        model.scan()
        #expect(model.isScanning)
        model.scanned("confab://server?url=https://chat.example.org/strangers")
        #expect(model.status == .checking(remote) && !model.isScanning)
    }
    @Test func ofSeveralCodesTheOneWithAnAddressIsMeant() {
        let link = "confab://server?url=https://chat.example.org/strangers"
        for codes in [["WIFI:S:guests;;", link], [link, "https://other.example.org"]] {
            let model = model()
            model.scanned(oneOf: codes)
            #expect(model.status == .checking(remote))
        }
        let model = model()
        model.scanned(oneOf: [])
        #expect(model.status == .empty, "none could be read")
    }
    @Test func theCameraIsAskedForBeforeItReadsACode() {
        let model = model()
        model.scan()
        #expect(!model.isScanning && permissions.asked == [.camera])
        permissions.answer(.refused)
        #expect(!model.isScanning && model.offersSettings)
        Golden.expect(model, "Welcome", "camera not allowed")
        model.address = "c"
        #expect(!model.offersSettings)
    }
    @Test func aScannerThatCannotStartSaysSo() {
        permissions.statuses[.camera] = .allowed
        let model = model()
        model.scanFailed()
        #expect(model.status == .empty, "the person has closed it")
        model.scan()
        model.scanFailed()
        #expect(!model.isScanning && !model.offersSettings)
        #expect(model.statusText == "The camera could not be started. Type the address.")
        model.scan()
        permissions.statuses[.camera] = .restricted
        model.scanFailed()
        #expect(!model.isScanning && model.status == .noCamera)
    }
    @Test func aDeviceThatReadsNoCodesDoesNotOfferIt() {
        permissions.statuses[.camera] = .allowed
        let model = model(canScan: false)
        model.scan()
        #expect(!model.isScanning && !model.lines.map(\.description).contains("(Scan QR code)"))
    }

    @Test(arguments: [
        ("chat.example.org", "https://chat.example.org"),
        (" HTTPS://Chat.example.org/nearby#x ", "https://Chat.example.org"),
        ("https://chat.example.org/", "https://chat.example.org"),
        ("https://chat.example.org/room/Caf%C3%A9?media=mesh", "https://chat.example.org"),
        ("https://example.org/video", "https://example.org/video"),
        ("example.org/video/", "https://example.org/video"),
        ("https://example.org/some/video/room/tea#token=t", "https://example.org/some/video"),
        ("https://example.org/video/lan", "https://example.org/video"),
        ("https://example.org/video/rooms/?guest=1", "https://example.org/video"),
        ("[::1]:8080", "http://[::1]:8080"), ("[fd00::2]:8080", "http://[fd00::2]:8080"),
        ("fe80::1", "http://[fe80::1]"), ("http://[2001:db8::1]", nil), ("2001:db8::1", "https://[2001:db8::1]"),
        ("192.168.1.20:8080", "http://192.168.1.20:8080"), ("mac.local:8080", "http://mac.local:8080"),
        ("localhost:8080", "http://localhost:8080"), ("https://10.0.0.1", "https://10.0.0.1"),
        ("http://chat.example.org", nil), ("ftp://chat.example.org", nil), ("two words", nil), ("", nil),
        ("https://me:secret@chat.example.org", nil), ("https://", nil), ("172.32.0.1", "https://172.32.0.1"),
    ])
    func addressesAreUnderstood(text: String, url: String?) {
        #expect(ServerAddress.url(from: text)?.absoluteString == url)
    }
}

@Suite @MainActor struct AboutYouTests {
    private func model(agreed: Bool = false, name: String = "") -> AboutYouModel {
        var answers = AboutYouModel.Answers()
        (answers.agreed, answers.name) = (agreed, name)
        return AboutYouModel(answers: answers) { _ in }
    }

    @Test func notAgreed() {
        let model = model()
        #expect(!model.canContinue)
        Golden.expect(model, "AboutYou", "not agreed")
    }

    @Test func agreed() {
        let model = model()
        model.isRulesAgreed = true
        Golden.expect(model, "AboutYou", "agreed")
    }

    @Test func editedLater() { Golden.expect(model(agreed: true, name: "Ada"), "AboutYou", "edited later") }

    @Test func anEditCanBeCanceledAndTheFirstTimeCannot() {
        var count = 0
        for agreed in [true, false] {
            var answers = AboutYouModel.Answers()
            answers.agreed = agreed
            AboutYouModel(answers: answers, goBack: { count += 1 }, done: { _ in }).cancel()
        }
        #expect(count == 1)
    }

    @Test func refusedName() {
        let model = model(agreed: true, name: "\u{202E}adA")
        model.refusedName()
        Golden.expect(model, "AboutYou", "refused name")
    }

    @Test func anEmptyNameIsAllowedAndALongOneIsCut() {
        var answers: [AboutYouModel.Answers] = []
        let model = AboutYouModel(answers: .init()) { answers.append($0) }
        model.submit()
        #expect(answers.isEmpty, "the rules come first")
        model.isRulesAgreed = true
        model.submit()
        model.name = String(repeating: "a", count: 50)
        model.submit()
        #expect(answers.map(\.name.count) == [0, 40])
    }
}

@Suite @MainActor struct PermissionsTests {
    private func model(
        _ camera: PermissionStatus, _ microphone: PermissionStatus
    ) -> (model: PermissionsModel, permissions: FakePermissions) {
        let permissions = FakePermissions()
        permissions.statuses = [.camera: camera, .microphone: microphone]
        return (PermissionsModel(permissions: permissions) { _ in }, permissions)
    }

    @Test func notAsked() { Golden.expect(model(.notAsked, .notAsked).model, "Permissions", "not asked") }
    @Test func refused() { Golden.expect(model(.refused, .refused).model, "Permissions", "refused") }
    @Test func restricted() { Golden.expect(model(.restricted, .restricted).model, "Permissions", "restricted") }
    @Test func noCamera() { Golden.expect(model(.missing, .allowed).model, "Permissions", "no camera") }
    @Test func microphoneOnly() { Golden.expect(model(.refused, .allowed).model, "Permissions", "microphone only") }
    @Test func textOnly() { Golden.expect(model(.allowed, .refused).model, "Permissions", "text only") }
    @Test func allowed() { Golden.expect(model(.allowed, .allowed).model, "Permissions", "allowed") }

    @Test func asksForTheCameraAndThenTheMicrophone() {
        let (model, permissions) = model(.notAsked, .notAsked)
        model.ask()
        Golden.expect(model, "Permissions", "asking")
        permissions.answer(.refused)
        permissions.answer(.allowed)
        #expect(permissions.asked == [.camera, .microphone])
        #expect(model.outcome == .voice)
        #expect(!model.isAsking)
    }

    @Test func aPermissionGivenInSettingsIsSeenWhenTheAppReturns() {
        let (model, permissions) = model(.refused, .refused)
        permissions.statuses = [.camera: .allowed, .microphone: .allowed]
        model.refresh()
        #expect(model.outcome == .video)
    }
}

@Suite @MainActor struct ReportTests {
    private func model(_ lines: Int = 2) -> ReportModel {
        let chat = (1...lines).map { ChatEntry(id: $0, isOwn: $0 % 2 == 0, text: "Line \($0)") }
        return ReportModel(partnerName: "Ada", chat: chat) { _, _ in }
    }

    @Test func choosing() { Golden.expect(model(), "Report", "choosing") }

    @Test func reasonChosen() {
        let model = model()
        model.reason = .spam
        Golden.expect(model, "Report", "reason chosen")
    }

    @Test func sendingAndSent() {
        let model = model()
        model.reason = .spam
        model.submit()
        Golden.expect(model, "Report", "sending")
        model.finished(nil)
        Golden.expect(model, "Report", "sent")
    }

    @Test func failed() {
        let model = model()
        model.reason = .other
        model.submit()
        model.finished(ConfabError("unknown", ""))
        #expect(model.canSend, "it can be tried again")
        Golden.expect(model, "Report", "failed")
    }

    @Test func onlyTheLastTwentyLinesAreShownAndSent() {
        let model = model(30)
        #expect(model.chat.map(\.id) == Array(11...30))
    }
}
