import Foundation
import Testing
import enum Wire.CallOutcome

@testable import AppModel
@testable import Confab

@Suite @MainActor struct ApplicationTests {
    private let device = FakeDevice()
    private let url = URL(string: "https://chat.example.org")!

    @Test func theFirstStartLeadsThroughServerAndRules() {
        let app = ApplicationModel(platform: device.platform, server: device.server, hasRoulette: true)
        #expect(app.stage == .welcome)
        app.welcome.choose(url)
        #expect(device.server.take() == [.check(url)])
        app.handle(.checked(url, nil))
        #expect(app.stage == .aboutYou)
        app.aboutYou?.name = "Ada"
        app.aboutYou?.isRulesAgreed = true
        app.aboutYou?.submit()
        #expect(app.stage == .home)
        #expect(device.server.take() == [.connect(url, name: "Ada")])
        #expect(app.settings.server == url.absoluteString)
    }

    @Test func theNextStartGoesOnline() {
        _ = device.home()
        _ = device.server.take()
        let app = ApplicationModel(platform: device.platform, server: device.server, hasRoulette: true)
        #expect(app.stage == .home)
        #expect(device.server.take() == [.connect(url, name: "")])
    }

    @Test func theNextStartUsesTheStoredSettings() {
        let former = device.home()
        former.settings.settings.transport = .tcp
        _ = device.server.take()
        let app = ApplicationModel(platform: device.platform, server: device.server, hasRoulette: true)
        #expect(app.settings.settings.transport == .tcp)
        #expect(device.server.take() == [.settings(.changed(app.settings.settings)), .connect(url, name: "")])
    }

    @Test func damagedSettingsAreAFirstStart() {
        device.settings.values[ApplicationModel.settingsKey] = Data("{".utf8)
        #expect(ApplicationModel(platform: device.platform, server: device.server, hasRoulette: true).stage == .welcome)
    }

    // MARK: The connection

    @Test(arguments: [
        (ConfabClient.State.connecting(attempt: 1), "connecting"),
        (.reconnecting(since: Date(), attempt: 1, nextTry: nil), "reconnecting"),
        (.offline(.noNetwork), "no network"),
        (.offline(.serverUnreachable), "server unreachable"), (.offline(.tooOld), "too old"),
        (
            .offline(.refused(ConfabError("banned", "You are banned from this server until Monday."))),
            "banned"
        ),
        (.closed(ConfabError("replaced", "You continued on another device.")), "replaced device"),
        (
            .closed(ConfabError("token_expired", "Your sign-in has expired. Sign in again.")),
            "token expired"
        ),
    ])
    func line(state: ConfabClient.State, name: String) {
        let app = device.online()
        #expect(app.connectionText.isEmpty)
        app.handle(.line(state))
        Golden.expect(app, "Connection", name)
    }

    @Test func aBriefDropTakesNothingAway() {
        let app = device.online()
        app.handle(.line(.reconnecting(since: Date(), attempt: 1, nextTry: nil)))
        #expect(app.roulette.canStart)
        app.handle(.line(.online, isNew: false))
        #expect(app.connectionText.isEmpty)
    }

    @Test func aRefusedNameIsAskedAgain() {
        let app = device.home()
        app.handle(.nameRefused)
        #expect(app.stage == .aboutYou)
        #expect(app.aboutYou?.nameTrouble != nil)
    }

    // MARK: What belongs together

    @Test func aCallEndsTheRoulette() {
        let app = device.online()
        app.roulette.start()
        app.handle(.people(.contacts([Person(id: "ada", name: "Ada", isOnline: true)])))
        app.people.open("ada")
        app.people.call(video: true)
        #expect(app.roulette.isIdle)
        #expect(device.server.take().contains(.roulette(.stop)))
        #expect(app.calls.isInCall)
    }

    @Test func theScreenStaysOnWhileAPersonIsSeenOrWaitedFor() {
        let app = device.online()
        app.roulette.start()
        app.handle(.roulette(.happened(.waiting(retryAfter: nil))))
        #expect(device.screen.isScreenKeptAwake)
        app.roulette.stop()
        #expect(!device.screen.isScreenKeptAwake)
    }

    @Test func theRouletteHasSoundWhileAPersonIsThereAndACallTakesIt() {
        let app = device.online()
        app.roulette.start()
        app.handle(.roulette(.happened(.waiting(retryAfter: nil))))
        #expect(device.audio.effects.isEmpty)
        app.handle(.roulette(.happened(.matched(name: "Ada", interests: [], hasChat: true))))
        let on: [AudioEffect] = [.configure(speaker: true), .setActive(true), .setEnabled(true)]
        let off: [AudioEffect] = [.setEnabled(false), .setActive(false)]
        #expect(device.audio.effects == on)
        app.ring()
        #expect(device.audio.effects == on + off)
        app.handle(.call(.ended(CallScript.end(.cancelled))))
        #expect(device.audio.effects == on + off + on)
        app.roulette.stop()
        #expect(device.audio.effects == on + off + on + off)
    }

    @Test func withoutTheRouletteItIsNowhere() {
        let app = device.home(hasRoulette: false)
        #expect(app.tab == .nearby)
        #expect(!app.tabs.contains(.roulette))
        app.handle(.roulette(.happened(.matched(name: "Ada", interests: [], hasChat: true))))
        #expect(!app.roulette.isInChat)
    }

    @Test func theBackgroundEndsTheRouletteAfterTenSeconds() {
        let app = device.online()
        app.roulette.start()
        _ = device.server.take()
        app.goToBackground()
        device.clock.pass(9)
        #expect(device.server.take().isEmpty)
        device.clock.pass(1)
        #expect(device.server.take() == [.roulette(.stop), .leave])
        app.becameActive()
        #expect(device.server.take() == [.connect(url, name: "")])
    }

    @Test func theBackgroundDoesNotEndACall() {
        let app = device.online()
        app.calls.call(CallScript.ada, video: true)
        app.enteredBackground()
        device.clock.pass(60)
        #expect(app.calls.isInCall)
        #expect(!device.server.take().contains(.leave))
    }

    @Test func aPushAfterTheBackgroundConnectsAgain() {
        let app = device.online()
        app.goToBackground()
        device.clock.pass(10)
        #expect(app.line == .idle)
        _ = device.server.take()
        device.calls.onEvent?(.push(callID: "\(CallScript.first)", push: 1))
        #expect(device.server.take() == [.connect(url, name: "")])
    }

    @Test func aCallThatRingsInTheBackgroundKeepsTheConnection() {
        let app = device.online()
        app.goToBackground()
        device.clock.pass(5)
        app.ring()
        device.clock.pass(60)
        #expect(app.line == .online)
        app.handle(.call(.ended(CallScript.end(.cancelled))))
        device.calls.carryOut()
        device.clock.pass(10)
        #expect(app.line == .idle, "nobody sees the app, and nothing rings")
    }

    @Test func anAppThatAPushLaunchedGoesOfflineAfterTheCall() {
        let app = device.online()
        device.clock.pass(10)
        #expect(app.line == .idle)
    }

    @Test func aCallIsAboveEverythingElse() {
        let app = device.online()
        app.calls.call(CallScript.ada, video: true)
        app.handle(.nameRefused)
        guard case .call = app.shown else {
            Issue.record("the call is hidden")
            return
        }
        app.calls.end()
        device.calls.carryOut()
        guard case .aboutYou = app.shown else {
            Issue.record("the name is not asked")
            return
        }
    }

    @Test func aNewNameIsReportedToAServerThatIsConnected() {
        let app = device.online()
        app.settings.editAboutYou()
        app.aboutYou?.name = "Ada"
        _ = device.server.take()
        app.aboutYou?.submit()
        #expect(device.server.take() == [.connect(url, name: "Ada"), .call(.appear)])
        #expect(app.room.yourName == "Ada")
        app.settings.editAboutYou()
        app.aboutYou?.name = "Bob"
        app.aboutYou?.cancel()
        #expect(app.stage == .home && device.server.take().isEmpty)
    }

    @Test func missedCallsAreCountedBeforeTheirListIsOpened() {
        let app = device.home()
        _ = device.server.take()
        app.handle(.line(.online, isNew: true))
        #expect(device.server.take().contains(.people(.log(before: nil))))
        let missed = Calls.Logged(id: "1", isOutgoing: false, outcome: .missed, person: CallScript.ada, isSeen: false)
        app.handle(.people(.log([missed], next: nil, isFirstPage: true)))
        #expect(app.badge(of: .people) == 1)
        #expect(app.badge(of: .room) == 0)
    }

    @Test func theDiagnosticsSayWhatIsGoingOn() {
        let app = device.home()
        app.handle(.line(.offline(.refused(ConfabError("banned", "You are banned.")))))
        #expect(app.settings.diagnostics.contains("Server: \(url.absoluteString)"))
        #expect(app.settings.diagnostics.contains("Connection: refused, banned"))
        app.calls.call(CallScript.ada, video: true)
        #expect(app.settings.diagnostics.contains("Call: outgoing, placing"))
        #expect(!app.settings.diagnostics.joined().contains(CallScript.ada.name), "names stay here")
        #expect(app.settings.licenses.contains { $0.contains("The WebRTC project authors") })
    }

    @Test func textNeedsNoCamera() {
        device.permissions.statuses[.microphone] = .refused
        let app = device.home()
        _ = device.server.take()
        app.permissions.proceed()
        #expect(app.roulette.mode == .text)
        #expect(device.server.take().isEmpty)
    }

    @Test(arguments: ApplicationModel.Tab.allCases) func aRingingCallIsShownAnywhere(tab: ApplicationModel.Tab) {
        let app = device.home()
        app.tab = tab
        app.handle(.line(.online, isNew: true))
        app.ring()
        #expect(app.lines.first == .title(app.calls.incomingText))
    }

    @Test func theRoomKeepsTheScreenOnAndHasSound() {
        let app = device.online()
        app.enterRoom()
        #expect(device.screen.isScreenKeptAwake)
        let on: [AudioEffect] = [.configure(speaker: true), .setActive(true), .setEnabled(true)]
        #expect(device.audio.effects == on)
        app.handle(.room(.reconnecting(true)))
        #expect(device.audio.effects == on, "only the connection to the server is lost")
        app.room.leave()
        app.handle(.room(.speaker(nil)))
        #expect(device.audio.effects == on + [.setEnabled(false), .setActive(false)])
        #expect(!device.screen.isScreenKeptAwake)
    }

    // MARK: Links

    @Test func linksOpenTheirScreen() {
        let app = device.home()
        let id = PersonID(text: String(repeating: "a", count: 32))!
        app.open(URL(string: "confab://person/\(id)")!)
        #expect(app.tab == .people)
        #expect(device.server.take().last == .people(.find(id)))
        app.open(URL(string: "confab://room/book%20club")!)
        #expect(app.tab == .room)
        #expect(app.room.roomName == "book club")
    }

    @Test func aLinkToAServerAsksFirst() {
        let app = device.online()
        _ = device.server.take()
        app.open(URL(string: "confab://server?url=https://other.example.org")!)
        #expect(app.stage == .welcome)
        #expect(app.welcome.address == "https://other.example.org")
        #expect(device.server.take().isEmpty, "the person has not agreed")
        app.welcome.goBack()
        #expect(app.stage == .home)
        #expect(device.server.take() == [.connect(url, name: "")])
    }

    @Test func aChangedServerEndsWhatWentOnAtTheOldOne() {
        let app = device.home()
        let other = URL(string: "https://other.example.org")!
        app.handle(.line(.online, isNew: true))
        app.handle(.people(.contacts([Person(id: "ada", name: "Ada", isOnline: true)])))
        app.roulette.start()
        app.settings.changeServer()
        #expect(app.stage == .welcome)
        #expect(!app.roulette.isIdle, "nothing has changed yet")
        _ = device.server.take()
        app.welcome.choose(other)
        #expect(device.server.take() == [.roulette(.stop), .leave, .check(other)])
        app.handle(.checked(other, nil))
        #expect(app.people.contacts == nil)
        #expect(app.settings.server == other.absoluteString)
        app.settings.changeServer()
        Golden.expect(app, "Welcome", "another server")
    }

    @Test(arguments: [
        "https://example.org", "confab://person/short", "confab://other/x", "confab://server?url=ftp://x",
    ])
    func otherLinksAreIgnored(text: String) {
        #expect(AppLink(URL(string: text)!) == nil)
    }

    @Test func aLinkWaitsUntilTheRulesAreAgreed() {
        let app = ApplicationModel(platform: device.platform, server: device.server, hasRoulette: true)
        app.open(URL(string: "confab://room/club")!)
        app.welcome.choose(url)
        app.handle(.checked(url, nil))
        app.aboutYou?.isRulesAgreed = true
        app.aboutYou?.submit()
        #expect(app.tab == .room)
    }
}
