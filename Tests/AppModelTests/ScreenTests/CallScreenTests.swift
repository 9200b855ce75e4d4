import Foundation
import Testing

@testable import AppModel
@testable import Confab

/// Calls on the screen, with a system that does what it is asked.
@Suite @MainActor struct CallScreenTests {
    private let device = FakeDevice()
    private let first = CallScript.first
    private final class Effects { var all: [CallRequest] = [] }
    private let effects = Effects()
    private final class Kept { var all: [CallID] = [] }
    private let kept = Kept()
    private final class Requests { var all: [CallMediaRequest] = [] }
    private let requests = Requests()

    private func model(usesSystem: Bool = true) -> CallsModel {
        device.calls.isAllowed = usesSystem
        let model = CallsModel(
            platform: device.platform, isContact: { $0 == CallScript.bob.id }, keep: { [kept] in kept.all.append($0) },
            request: { [requests] in requests.all.append($0) }, perform: { [effects] in effects.all.append($0) })
        model.handle(.online(isNew: true))
        return model
    }

    /// An outgoing call that the system has started.
    private func calling() -> CallsModel {
        let model = model()
        model.call(CallScript.ada, video: true)
        device.calls.carryOut()
        return model
    }

    private func placed(_ events: CallEvent...) -> CallsModel {
        let model = calling()
        guard let id = model.coordinator.current?.id else { return model }
        for event in [CallScript.placed(id)] + events { model.handle(event) }
        return model
    }

    private func active() -> CallsModel {
        let model = placed()
        model.handle(CallScript.accepted())
        model.handle(.audio(.activated))
        model.handle(CallScript.connected(first))
        model.handle(.partnerVideo(FakeVideo()))
        model.handle(.firstFrame)
        return model
    }

    // MARK: Outgoing

    @Test func placing() { Golden.expect(calling(), "OutgoingCall", "placing") }
    @Test func ringing() { Golden.expect(placed(CallScript.rings(on: 2)), "OutgoingCall", "ringing on 2") }
    @Test func ringingOnOne() {
        Golden.expect(placed(CallScript.rings(on: 1)), "OutgoingCall", "ringing on 1")
    }
    @Test func pushOnly() { Golden.expect(placed(CallScript.rings(on: 0)), "OutgoingCall", "push only") }
    @Test(arguments: [
        (CallEnding.Outcome.busy, "busy"), (.unreachable, "unreachable"), (.declined, "declined"),
        (.unanswered, "unanswered"),
    ])
    func notAnswered(reason: CallEnding.Outcome, state: String) {
        let model = placed(.server(.ended(CallScript.end(reason, isOutgoing: true))))
        #expect(model.offersCallAgain)
        Golden.expect(model, "OutgoingCall", state)
    }
    @Test(arguments: [
        ("call_not_allowed", "This person is not accepting calls from you."),
        ("rate_limited", "Too many calls. Wait 10 minutes, then try again."),
    ])
    func refused(code: String, message: String) {
        let model = calling()
        guard let id = model.coordinator.current?.id else { return }
        model.handle(.server(.startRefused(id, ConfabError(.init(rawValue: code), message))))
        Golden.expect(model, "OutgoingCall", code)
    }
    @Test func canceled() {
        let model = placed()
        model.end()
        device.calls.carryOut()
        #expect(effects.all.last == .end(first))
        #expect(!model.isInCall)
    }

    @Test func aCallWithoutTheMicrophoneIsNotPlaced() {
        device.permissions.statuses[.microphone] = .refused
        let model = model()
        model.call(CallScript.ada, video: true)
        #expect(!model.hasCall)
        Golden.expect(model, "OutgoingCall", "no microphone")
        device.clock.pass(60)
        #expect(model.showsEnd, "it stays until it was read")
    }
    @Test func aCallWithoutTheCameraIsOneByVoice() {
        device.permissions.statuses[.camera] = .refused
        let model = model()
        model.call(CallScript.ada, video: true)
        #expect(model.coordinator.current?.sendsVideo == false)
    }
    @Test func anAdviceGoesAway() {
        let model = placed()
        model.call(CallScript.bob, video: true)
        #expect(model.adviceText == "You are already in a call. End it first.")
        device.clock.pass(60)
        #expect(model.adviceText.isEmpty)
    }

    // MARK: Incoming

    @Test func withoutTheCameraACallIsAnsweredByVoice() {
        device.permissions.statuses[.camera] = .refused
        let model = model(usesSystem: false)
        model.handle(CallScript.incoming())
        model.accept()
        #expect(effects.all.last == .accept(first, video: false))
        #expect(model.isCameraOff)
    }
    @Test func aCallThatRingsIsAnnounced() {
        let model = model(usesSystem: false)
        model.handle(CallScript.incoming())
        #expect(device.announcer.texts == [model.incomingText])
    }
    @Test func decliningDoesNotShowTheCall() {
        let model = model()
        model.handle(CallScript.incoming())
        device.calls.carryOut()
        model.decline()
        #expect(model.hasCall, "the system has not agreed yet")
        #expect(!model.isInCall)
    }
    @Test func incomingInTheApp() {
        let model = model(usesSystem: false)
        model.handle(CallScript.incoming())
        Golden.expect(model, "IncomingCall", "in the app")
        model.accept()
        #expect(effects.all.last == .accept(first, video: true))
    }
    @Test func incomingWithoutVideo() {
        let model = model(usesSystem: false)
        model.handle(CallScript.incoming(video: false))
        Golden.expect(model, "IncomingCall", "without video")
    }
    @Test func unknownCaller() {
        let model = model(usesSystem: false)
        model.handle(.push(callID: "\(first)", push: nil))
        Golden.expect(model, "IncomingCall", "known from a push")
    }
    @Test func waitingCall() {
        let model = active()
        model.handle(CallScript.incoming(CallScript.second, CallScript.bob))
        device.calls.carryOut()
        Golden.expect(model, "IncomingCall", "waiting during a call")
    }
    @Test(arguments: [
        (CallEnding.Outcome.answeredElsewhere, "answeredElsewhere"), (.declinedElsewhere, "declinedElsewhere"),
        (.cancelled, "canceled"), (.missed, "missed"),
    ])
    func endsElsewhere(reason: CallEnding.Outcome, state: String) {
        let model = model(usesSystem: false)
        model.handle(CallScript.incoming())
        model.handle(CallScript.ended(reason))
        #expect(effects.all.last == .seen(first))
        Golden.expect(model, "IncomingCall", state)
    }
    @Test func answeredWithoutMicrophone() {
        device.permissions.statuses[.microphone] = .refused
        let model = model()
        model.handle(CallScript.incoming())
        device.calls.carryOut()
        model.accept()
        device.calls.carryOut()
        device.calls.carryOut()
        #expect(effects.all.contains(.end(first)))
        #expect(device.announcer.notified == [model.adviceText], "the phone may be locked")
        Golden.expect(model, "IncomingCall", "no microphone")
    }

    // MARK: In a call

    @Test func mediaThatWasMutedInAnotherChatIsHeardInTheCall() {
        let model = placed()
        model.handle(.ownVideo(FakeVideo()))
        #expect(effects.all.suffix(2) == [.setMuted(first, false), .setVideo(true)])
    }
    @Test func theSizeOfThePictureIsThatOfTheSmallWindow() {
        let model = active()
        #expect(model.smallWindow?.size == .usual)
        model.pictureSize(PixelSize(width: 1280, height: 720))
        #expect(model.smallWindow?.size == PixelSize(width: 1280, height: 720))
    }
    @Test func connecting() {
        let model = placed()
        model.handle(CallScript.accepted())
        Golden.expect(model, "InCall", "connecting")
    }
    @Test func activeCall() {
        let model = active()
        device.clock.pass(67)
        Golden.expect(model, "InCall", "active")
    }
    @Test func audioOnly() {
        let model = active()
        model.toggleCamera()
        model.handle(CallScript.changed { $0.receivesVideo = false })
        Golden.expect(model, "InCall", "audio only")
    }
    @Test func partnerReconnecting() {
        let model = active()
        model.handle(CallScript.partnerAway())
        Golden.expect(model, "InCall", "partner reconnecting")
    }
    @Test func ownLineReconnecting() {
        let model = active()
        model.handle(.offline)
        Golden.expect(model, "InCall", "own line reconnecting")
    }
    @Test func rejoining() {
        let model = active()
        model.handle(CallScript.changed { ($0.isRejoining, $0.isPartnerConnected) = (true, false) })
        Golden.expect(model, "InCall", "rejoining after a restart")
    }
    @Test func paused() {
        let model = active()
        model.handle(.partnerPaused(true))
        Golden.expect(model, "InCall", "paused by the network")
    }
    @Test func held() {
        let model = active()
        model.toggleHold()
        device.calls.carryOut()
        #expect(model.isHeld)
        Golden.expect(model, "InCall", "held")
    }
    @Test func muted() {
        let model = active()
        model.toggleMute()
        #expect(!model.isMuted, "the system decides")
        device.calls.carryOut()
        #expect(model.isMuted)
        Golden.expect(model, "InCall", "muted")
    }
    @Test func ending() {
        let model = active()
        model.end()
        Golden.expect(model, "InCall", "ending")
    }
    @Test(arguments: [
        (CallEnding.Outcome.hungUp, "ended, hungUp"), (.ended, "ended, ended"),
        (.connectionLost, "ended, connectionLost"),
        (.failed, "ended, failed"),
    ])
    func ended(reason: CallEnding.Outcome, state: String) {
        let model = active()
        device.clock.pass(67)
        model.handle(.server(.ended(CallScript.end(reason, isOutgoing: true))))
        Golden.expect(model, "InCall", state)
        device.clock.pass(60)
        #expect(model.lines.isEmpty)
    }

    @Test func aPushIsReportedBeforeItsCallbackReturns() {
        let model = model()
        device.calls.onEvent?(.push(callID: "\(first)", push: 7))
        #expect(device.calls.take() == [.report(CallScript.firstID, nil, video: true, push: 7)])
        device.calls.onEvent?(.reportResult(CallScript.firstID, push: 7, .ok))
        device.clock.pass(10)
        #expect(device.calls.take() == [.completePush(7), .reportEnded(CallScript.firstID, .failed)])
        #expect(model.coordinator.current == nil)
    }

    // MARK: The camera and the screen

    @Test func aCameraThatTheSystemTookAwayIsNotAFrozenPicture() {
        let model = active()
        model.handle(.ownVideo(FakeVideo()))
        effects.all = []
        model.handle(.cameraInterrupted(true))
        #expect(effects.all == [.setVideo(false), .update(first, video: false)])
        #expect(model.ownPicture == nil && !model.isCameraOff && !model.canSwitchCamera)
        Golden.expect(model, "InCall", "camera taken by the system")
        effects.all = []
        model.handle(.cameraInterrupted(false))
        #expect(effects.all == [.setVideo(true), .update(first, video: true)])
        #expect(model.ownPicture != nil)
    }
    @Test func aShareThatTheSystemEndsLooksEnded() {
        let model = active()
        model.toggleScreen()
        #expect(requests.all == [.shareScreen(true)])
        model.handle(.shareStarted)
        model.handle(.shareEnded(.screenEnded))
        #expect(!model.isSharingScreen)
        Golden.expect(model, "InCall", "screen no longer shared")
    }
    @Test func aShareThatWasNotAllowedLooksEnded() {
        let model = active()
        effects.all = []
        model.toggleScreen()
        model.handle(.shareEnded(ConfabError("media_failed", "The screen is not shared.")))
        #expect(!model.isSharingScreen && model.adviceText == "The screen is not shared.")
        #expect(effects.all.isEmpty, "nothing was shown")
    }
    @Test func aSharedScreenIsSeenWithoutTheCamera() {
        let model = active()
        model.toggleCamera()
        model.toggleScreen()
        effects.all = []
        model.handle(.shareStarted)
        #expect(effects.all == [.update(first, video: true)], "the camera stays off")
        effects.all = []
        model.toggleScreen()
        #expect(effects.all == [.update(first, video: false)])
        #expect(requests.all == [.shareScreen(true), .shareScreen(false)])
    }
    @Test func anotherCallIsNotAShare() {
        let model = active()
        model.toggleScreen()
        model.handle(CallScript.ended(.hungUp))
        model.handle(.shareStarted)
        model.handle(.shareEnded(.screenEnded))
        #expect(model.adviceText.isEmpty)
    }
    @Test func aCameraThatMayNotBeUsedSaysWhereToAllowIt() {
        device.permissions.statuses[.camera] = .refused
        let model = active()
        model.toggleCamera()
        #expect(model.isCameraOff)
        Golden.expect(model, "InCall", "camera not allowed")
    }
    @Test func aCameraThatCannotBeOpenedIsOffAndSaysWhy() {
        let model = active()
        model.handle(.cameraFailed(ConfabError("media_failed", "The camera could not be started.")))
        #expect(model.isCameraOff && model.adviceText == "The camera could not be started.")
    }
    @Test func thePartnersLastFrameDoesNotStay() {
        let model = active()
        #expect(model.partnerVideo != nil)
        model.handle(CallScript.changed { $0.receivesVideo = false })
        #expect(model.partnerVideo == nil && model.lacksPicture)
        model.handle(CallScript.connected())
        #expect(model.partnerVideo != nil)
    }
    @Test func theSystemAsksBeforeACallIsPlaced() {
        device.permissions.statuses = [:]
        let model = model()
        model.call(CallScript.ada, video: true)
        #expect(!model.hasCall)
        device.permissions.answer(.allowed)
        device.permissions.answer(.refused)
        #expect(model.coordinator.current?.video == false)
    }

    // MARK: ContactOffer in touch

    @Test func peopleWhoTalkedCanBecomeContacts() {
        let model = active()
        #expect(model.canKeep)
        model.handle(.asked(.call(first)))
        Golden.expect(model, "InCall", "partner wants to keep in touch")
        model.keepInTouch()
        model.keepInTouch()
        #expect(kept.all == [first])
        model.handle(.added(CallScript.ada, .call(first)))
        #expect(model.keepText.contains("are now contacts") && !model.canKeep)
    }
    @Test func afterTheCallOneCanStillKeepInTouch() {
        let model = active()
        device.clock.pass(67)
        model.end()
        device.calls.carryOut()
        model.handle(CallScript.ended(.ended))
        Golden.expect(model, "InCall", "ended by this person")
        model.keepInTouch()
        #expect(kept.all == [first])
        let trouble = ConfabError("not_found", "The call is too long ago.")
        model.keepFailed(first, trouble)
        #expect(model.canKeep && model.adviceText == trouble.message)
    }
    @Test func contactsAndPeopleWhoDidNotTalkAreNotAsked() {
        let unanswered = placed(CallScript.ended(.unanswered))
        #expect(!unanswered.canKeep)
        let model = model(usesSystem: false)
        model.handle(CallScript.incoming(first, CallScript.bob))
        model.accept()
        model.handle(CallScript.accepted(first, CallScript.bob))
        model.handle(CallScript.changed(first, CallScript.bob))
        #expect(model.isInCall && !model.canKeep, "a contact already")
    }
    @Test func wishesOfFormerCallsAreForgotten() {
        let model = active()
        for number in 0..<100 { model.handle(.asked(.call(CallID(stringLiteral: "\(number)")))) }
        model.handle(.asked(.call(first)))
        #expect(model.keepText.contains("would like to keep in touch"))
    }
}
