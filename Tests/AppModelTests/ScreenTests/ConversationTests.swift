import Foundation
import Testing

@testable import AppModel
@testable import Confab

/// What calls, rooms and the roulette have to do with each other, with the background and with the device.
@Suite @MainActor struct ConversationTests {
    private var device = FakeDevice()

    @Test func theBackgroundDoesNotEndARoomThatIsHeard() {
        let app = device.online()
        app.becameActive()
        app.enterRoom(with: FakeVideo())
        _ = device.server.take()
        app.enteredBackground()
        device.clock.pass(600)
        #expect(app.room.isInRoom && device.server.take() == [.room(.camera(false))])
        app.handle(.room(.ended(.removed)))
        device.clock.pass(10)
        #expect(device.server.take() == [.leave], "there is nothing to hear any more")
    }

    @Test func timeInTheBackgroundIsAskedForOnceAndGivenBackOnce() {
        let app = device.home()
        app.phaseChanged(to: .active)
        app.phaseChanged(to: .background)
        #expect(device.background.begun == 0, "there is nothing to end")
        app.phaseChanged(to: .active)
        app.handle(.line(.online, isNew: true))
        for phase in [AppPhase.inactive, .background, .background] { app.phaseChanged(to: phase) }
        #expect(device.background.running == 1 && device.background.begun == 1)
        app.phaseChanged(to: .active)
        app.phaseChanged(to: .active)
        #expect(device.background.running == 0)
        app.phaseChanged(to: .background)
        device.background.onExpired?()
        #expect(device.background.running == 0, "the system ends apps that keep it")
        app.phaseChanged(to: .active)
        #expect(device.background.running == 0 && device.background.begun == 2)
    }

    @Test func timeInTheBackgroundIsGivenBackAfterLeaving() {
        let app = device.online(phase: .active)
        app.roulette.start()
        app.phaseChanged(to: .background)
        _ = device.server.take()
        device.clock.pass(10)
        #expect(
            device.server.take() == [.roulette(.stop), .leave] && device.background.running == 1, "it is being sent")
        device.clock.pass(3)
        #expect(device.background.running == 0)
    }

    @Test func aChatInTheSmallWindowGoesOnUntilTheWindowIsClosed() {
        let app = device.online(phase: .active)
        app.meet()
        app.handle(.roulette(.happened(.video(FakeVideo()))))
        #expect(app.roulette.smallWindow?.size == .usual)
        app.phaseChanged(to: .background)
        app.roulette.smallWindow(isShown: true)
        device.clock.pass(600)
        #expect(app.roulette.isInChat && app.line != .idle && device.background.running == 0)
        app.roulette.smallWindow(isShown: false)
        device.clock.pass(10)
        #expect(app.line == .idle && !app.roulette.isInChat && app.roulette.smallWindow == nil)
    }

    @Test(arguments: [true, false]) mutating func besideTheSmallWindowTheCameraRunsWhereTheSystemLetsIt(
        itRuns: Bool
    ) {
        device.cameraRunsInSmallWindow = itRuns
        let app = device.online(phase: .active)
        app.roulette.start()
        app.handle(.roulette(.preview(FakeVideo())))
        app.handle(.roulette(.happened(.matched(name: "Ada", interests: [], hasChat: true))))
        app.handle(.roulette(.happened(.video(FakeVideo()))))
        func cameras() -> [Bool] {
            device.server.take().compactMap { if case .roulette(.camera(let isOn)) = $0 { isOn } else { nil } }
        }
        _ = cameras()
        app.phaseChanged(to: .background)
        #expect(cameras() == [false], "the window is not open yet")
        app.roulette.smallWindow(isShown: true)
        #expect(cameras() == (itRuns ? [true] : []))
        app.roulette.smallWindow(isShown: false)
        #expect(cameras() == (itRuns ? [false] : []))
        app.phaseChanged(to: .active)
        #expect(cameras() == [true])
    }

    @Test mutating func aRoomsCameraRunsWhileTheSmallWindowIsShown() {
        device.cameraRunsInSmallWindow = true
        let app = device.online(phase: .active)
        app.enterRoom(with: FakeVideo())
        _ = device.server.take()
        app.room.smallWindow(isShown: true)
        app.phaseChanged(to: .background)
        #expect(device.server.take().isEmpty, "the window was open before")
        app.room.smallWindow(isShown: false)
        #expect(device.server.take() == [.room(.camera(false))])
    }

    // MARK: A phone call takes the sound

    private static let asking: [AudioEffect] = [.configure(speaker: true), .setActive(true)]

    /// An app in a room, whose sound the system refuses.
    private func roomWithoutSound() -> ApplicationModel {
        let app = device.online(phase: .active)
        device.audio.refuses = true
        app.enterRoom()
        return app
    }

    @Test func soundThatTheSystemRefusesIsTriedAgainUntilItComes() {
        let app = roomWithoutSound()
        #expect(device.audio.effects == Self.asking)
        app.handle(.room(.speaker(nil)))
        device.clock.pass(4)
        #expect(device.audio.effects == Self.asking, "not with each event")
        device.clock.pass(1)
        #expect(device.audio.effects == Self.asking + Self.asking)
        device.audio.refuses = false
        app.phaseChanged(to: .active)
        let sounding = Self.asking + Self.asking + Self.asking + [.setEnabled(true)]
        #expect(device.audio.effects == sounding, "at once, when the app is opened again")
        device.clock.pass(60)
        #expect(device.audio.effects == sounding)
        app.room.leave()
        #expect(device.audio.effects == sounding + [.setEnabled(false), .setActive(false)])
    }

    @Test func refusedSoundThatIsNotWantedAnyMoreIsNotTakenBack() {
        let app = roomWithoutSound()
        app.room.leave()
        device.clock.pass(60)
        #expect(device.audio.effects == Self.asking)
    }

    @Test func soundThatTheSystemActivatesSlowlyComesWhenItIsStillWanted() {
        device.audio.isSlow = true
        let app = roomWithoutSound()
        device.audio.refuses = false
        app.handle(.room(.speaker(nil)))
        device.clock.pass(60)
        #expect(device.audio.effects == Self.asking, "it is asked for once")
        device.audio.answer()
        #expect(device.audio.effects == Self.asking + [.setEnabled(true)])
        let count = device.audio.effects.count
        app.room.leave()
        app.room.join()
        app.handle(.room(.joined))
        app.room.leave()
        #expect(device.audio.effects.dropFirst(count) == [.setEnabled(false), .setActive(false)] + Self.asking)
        device.audio.answer()
        #expect(device.audio.effects.dropFirst(count + 4) == [.setActive(false)], "the room was left meanwhile")
    }

    @Test func soundThatTheSystemRefusesLateIsTriedAgain() {
        device.audio.isSlow = true
        let app = roomWithoutSound()
        device.audio.answer()
        device.clock.pass(5)
        #expect(device.audio.effects == Self.asking + Self.asking)
        withExtendedLifetime(app) {}
    }

    @Test func onlyActivationsAndWhatFollowsThemLeaveTheMainThread() {
        var lane = AudioLane()
        let quick: [AudioEffect] = [.configure(speaker: true), .setEnabled(true), .sessionDidActivate]
        func taken(_ effects: [AudioEffect]) -> [Bool] { effects.map { lane.takes($0) } }
        #expect(taken(quick) == [false, false, false])
        for isActive in [true, false] {
            #expect(taken([.setActive(isActive)] + quick) == [true, true, true, true], "they need the same lock")
            for _ in 0..<4 { lane.finished() }
            #expect(taken(quick) == [false, false, false])
        }
    }

    @Test func aCallWithoutTheSystemsScreenTriesItsSoundAgain() {
        device.calls.isAllowed = false
        device.audio.refuses = true
        let app = device.online()
        app.ring()
        app.calls.accept()
        app.handle(.call(.changed(CallScript.call(CallScript.first, CallScript.bob, state: .joining))))
        #expect(device.audio.effects.suffix(2) == Self.asking)
        let count = device.audio.effects.count
        device.audio.refuses = false
        device.clock.pass(5)
        #expect(device.audio.effects.dropFirst(count) == Self.asking + [.setEnabled(true)])
    }

    @Test func onlyAnAppThatIsNotSeenGoesOffline() {
        let app = device.online(phase: .active)
        _ = device.server.take()
        app.phaseChanged(to: .inactive)
        device.clock.pass(600)
        #expect(device.server.take().isEmpty, "it is behind something of the system")
        app.phaseChanged(to: .background)
        device.clock.pass(10)
        #expect(device.server.take().contains(.leave))
    }

    @Test func whoComesBackReadsWhyTheChatIsOver() {
        let app = device.online()
        app.meet()
        app.goToBackground()
        device.clock.pass(10)
        app.becameActive()
        app.handle(.line(.online, isNew: true))
        #expect(app.roulette.statusText == "The chat ended because you left the app.")
    }

    @Test func oneIsInOneConversationAtATime() {
        let app = device.online()
        app.roulette.start()
        app.room.roomName = "book club"
        app.room.join()
        #expect(app.roulette.isIdle, "the people in the room would hear the chat")
        app.handle(.room(.joined))
        app.roulette.start()
        #expect(app.room.status == .leftForOther)
        #expect(device.server.take().contains(.room(.leave)))
        app.room.join()
        app.handle(.room(.joined))
        app.ring()
        device.calls.carryOut()
        #expect(app.room.isInRoom, "it only rings")
        app.calls.accept()
        device.calls.carryOut()
        #expect(app.room.status == .leftForOther)
        Golden.expect(app.room, "Room", "left for a call")
    }

    @Test func acceptingACallEndsTheRoulette() {
        let app = device.online()
        app.roulette.start()
        app.ring()
        device.calls.carryOut()
        #expect(!app.roulette.isIdle)
        app.calls.accept()
        device.calls.carryOut()
        #expect(app.roulette.isIdle)
    }

    @Test func aVoiceCallIsHeardAtTheEar() {
        let app = device.online()
        app.calls.call(CallScript.ada, video: false)
        device.calls.carryOut()
        guard let own = app.calls.coordinator.current?.id else { return }
        var call = CallScript.call(video: false, state: .joining)
        call.receivesVideo = false
        app.handle(.call(.placed(own, call)))
        #expect(device.screen.isDarkAtEar && !app.calls.coordinator.audio.usesSpeaker)
        app.calls.end()
        device.calls.carryOut()
        #expect(!device.screen.isDarkAtEar)
        app.calls.call(CallScript.ada, video: true)
        #expect(!device.screen.isDarkAtEar && app.calls.coordinator.audio.usesSpeaker)
    }

    @Test func whatTheSystemDoesToTheCameraIsReportedToAllScreens() {
        let app = device.home()
        app.handle(.capture(.cameraInterrupted(true)))
        app.handle(.capture(.cameraFaces(.back)))
        for camera in [app.calls.camera, app.roulette.camera, app.room.camera] {
            #expect(camera.isInterrupted && !camera.isMirrored)
        }
        #expect(!app.calls.coordinator.cameraWorks)
    }

    @Test func pushesRingOnlyWhereTheSystemsCallScreenMayBeUsed() {
        #expect(device.home().receivesPushes)
        device.calls.isAllowed = false
        #expect(!device.home().receivesPushes, "PushKit is not registered in China")
    }

    @Test func thePermissionForNotificationsIsAskedForBeforeAPhoneIsLocked() {
        let app = device.home()
        app.handle(.settings(.push(.off)))
        #expect(!device.announcer.isPrepared, "nothing rings while the app is closed")
        app.handle(.settings(.push(.on)))
        #expect(device.announcer.isPrepared)
    }

    @Test func theServerSideLearnsThatTheDeviceIsHot() {
        let app = device.home()
        _ = device.server.take()
        app.deviceChanged(.serious, isLowPower: true)
        #expect(device.server.take() == [.deviceChanged(.serious, isLowPower: true)])
    }

    @Test(arguments: NetworkState.allCases) func onlyWithoutAnyNetworkNothingIsTried(state: NetworkState) {
        let app = device.home()
        _ = device.server.take()
        app.networkChanged(to: state)
        #expect(device.server.take() == [.networkChanged(isAvailable: state != .unavailable)])
    }

    // MARK: Recent calls

    @Test func aRecentCallIsCalledBackWhenTheServerCanPlaceIt() {
        let app = device.home()
        let id = PersonID(text: String(repeating: "e", count: 32))!
        app.callBack([(nil, "Nobody"), ("\(id)", "Eve")], video: nil)
        #expect(!app.calls.hasCall)
        app.handle(.line(.online, isNew: true))
        #expect(app.calls.coordinator.current?.person == Person(id: id, name: "Eve"))
        #expect(app.calls.coordinator.current?.video == false, "the kind of call is not known")
    }
    @Test func aRecentCallHasTheNameOfTheContact() {
        let app = device.home()
        let id = PersonID(text: String(repeating: "e", count: 32))!
        app.handle(.line(.online, isNew: true))
        app.handle(.people(.contacts([Person(id: id, name: "Eve", isOnline: true)])))
        app.callBack([("\(id)", "Confab")], video: true)
        #expect(app.calls.coordinator.current?.person?.name == "Eve")
    }
    @Test func aRecentCallOfAnUnknownPersonOpensTheHistory() {
        let app = device.online()
        app.callBack([("+1 555 0100", "")], video: true)
        #expect(!app.calls.hasCall && app.tab == .people && app.people.page == .log)
        (app.tab, app.people.page) = (.settings, .contacts)
        app.callBack([], video: nil)
        #expect(app.tab == .people && app.people.page == .log)
    }
    @Test func aRecentCallIsForgottenWithTheServer() {
        let app = device.home()
        app.callBack([(String(repeating: "e", count: 32), "Eve")], video: false)
        app.handle(.line(.offline(.serverUnreachable)))
        app.goToBackground()
        device.clock.pass(10)
        app.becameActive()
        app.handle(.line(.online, isNew: true))
        #expect(!app.calls.hasCall)
    }

    @Test func contactsOfALinkedDeviceAreThoseOfTheOther() {
        let app = device.home()
        app.handle(.people(.contacts([Person(id: "ada", name: "Ada", isOnline: true)])))
        _ = device.server.take()
        app.handle(.settings(.linked))
        #expect(app.people.contacts == nil)
        #expect(device.server.take().contains(.people(.contacts)))
    }
}
