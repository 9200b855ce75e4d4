import Foundation
import Testing

@testable import AppModel
@testable import Confab

/// Each row of the table about incoming calls.
@Suite struct IncomingCallTests {
    private typealias Script = CallScript
    private let first = CallScript.first
    private let second = CallScript.second
    private let firstID = CallScript.firstID
    private let secondID = CallScript.secondID

    @Test func theServersCallIDIsTheSystemsID() {
        let id = CallID(text: "0123456789abcdef0123456789abcdef")
        #expect(id.map { SystemCallID($0).uuidString } == "01234567-89AB-CDEF-0123-456789ABCDEF")
    }

    // MARK: Pushes

    @Test func aPushIsReportedAtOnceAndOpensTheSocket() {
        var script = Script()
        #expect(
            script.on(.push(callID: "\(first)", push: 1)) == [
                .report(firstID, nil, video: true, push: 1), .send(.openSocket), .startTimer(.unconfirmed(firstID)),
            ])
        #expect(script.coordinator.current?.phase == .reported)
    }

    @Test func aPushAboutAKnownCallIsReportedAgain() {
        var script = Script.pushed()
        #expect(
            script.on(.push(callID: "\(first)", push: 2)) == [.report(firstID, nil, video: true, push: 2)])
        #expect(script.on(.reportResult(firstID, push: 2, .known)) == [.completePush(2)])
        #expect(script.coordinator.current?.phase == .reported)
    }

    @Test func aPushAboutASecondCallIsReportedAsWaiting() {
        var script = Script.active()
        #expect(
            script.on(.push(callID: "\(second)", push: 2)) == [
                .report(secondID, nil, video: true, push: 2), .send(.openSocket), .startTimer(.unconfirmed(secondID)),
            ])
        #expect(script.coordinator.current?.phase == .active)
        #expect(script.coordinator.waiting?.phase == .reported)
    }

    @Test func aPushAboutAThirdCallIsReportedAndEnds() {
        var script = Script.activeAndWaiting()
        let third = CallID(text: String(repeating: "c", count: 32))!
        let thirdID = SystemCallID(third)
        #expect(script.on(.push(callID: "\(third)", push: 3)) == [.report(thirdID, nil, video: true, push: 3)])
        #expect(
            script.on(.reportResult(thirdID, push: 3, .ok)) == [.completePush(3), .reportEnded(thirdID, .failed)])
    }

    @Test func aPushWithAnUnreadableIDIsReportedAndEnds() throws {
        var script = Script()
        let effects = script.on(.push(callID: "nonsense", push: 1))
        guard case .report(let id, nil, video: true, push: 1) = effects.first, effects.count == 1 else {
            Issue.record("\(effects)")
            return
        }
        #expect(script.on(.reportResult(id, push: 1, .ok)) == [.completePush(1), .reportEnded(id, .failed)])
        #expect(script.coordinator.current == nil)
    }

    @Test func withoutTheSystemsScreenAPushRingsInTheApp() {
        var script = Script(usesSystem: false)
        #expect(
            script.on(.push(callID: "\(first)", push: nil)) == [
                .ring(firstID), .send(.openSocket), .startTimer(.unconfirmed(firstID)),
            ])
    }

    // MARK: The socket

    @Test func anIncomingCallIsReported() {
        var script = Script()
        #expect(script.on(Script.incoming()) == [.report(firstID, Script.ada, video: true, push: nil)])
        #expect(script.coordinator.current?.phase == .reported)
        #expect(
            ShownCall(script.coordinator.current?.person, hasVideo: true).personID == "\(Script.ada.id)",
            "to be called back")
    }

    @Test func detailsOfAReportedCallUpdateItAndStopTheTimer() {
        var script = Script.pushed()
        #expect(
            script.on(Script.incoming(video: false)) == [
                .update(firstID, Script.ada, video: false), .stopTimer(.unconfirmed(firstID)),
            ])
        #expect(script.coordinator.current?.phase == .ringing)
    }

    @Test func theSameDetailsAgainChangeNothing() {
        var script = Script.ringing()
        #expect(script.on(Script.incoming()) == [])
    }

    @Test(arguments: [SystemReportResult.filtered, .refused])
    func aCallThatTheSystemRefusesIsDeclined(result: SystemReportResult) {
        var script = Script()
        script.on(.push(callID: "\(first)", push: 1))
        #expect(
            script.on(.reportResult(firstID, push: 1, result)) == [
                .send(.end(first)), .stopTimer(.unconfirmed(firstID)), .completePush(1),
            ])
        #expect(script.coordinator.current == nil)
    }

    @Test func anAcceptedReportCompletesThePush() {
        var script = Script()
        script.on(.push(callID: "\(first)", push: 1))
        #expect(script.on(.reportResult(firstID, push: 1, .ok)) == [.completePush(1)])
        #expect(script.coordinator.current?.phase == .reported)
    }

    @Test func aCallThatNobodyKnowsAfterTenSecondsEnds() {
        #expect(CallTimer.unconfirmed(firstID).interval == .seconds(10))
        var script = Script.pushed()
        #expect(script.on(.timer(.unconfirmed(firstID))) == [.reportEnded(firstID, .failed)])
        #expect(script.coordinator.current == nil)
    }

    @Test(arguments: [
        (CallEnding.Outcome.answeredElsewhere, SystemEndReason.answeredElsewhere),
        (.declinedElsewhere, .declinedElsewhere),
        (.cancelled, .remoteEnded), (.missed, .unanswered), (.unreachable, .failed), (.failed, .failed),
    ])
    func aRingingCallEndsForTheReasonOfTheServer(reason: CallEnding.Outcome, system: SystemEndReason) {
        var script = Script.ringing()
        #expect(script.on(Script.ended(reason)) == [.reportEnded(firstID, system), Script.ending(reason)])
        #expect(script.coordinator.current == nil)
        #expect(script.on(.app(.shown(first))) == [.send(.seen(first))])
    }

    @Test func aCallThatEndsBeforeTheSystemKnowsItEndsThen() {
        var script = Script()
        script.on(.push(callID: "\(first)", push: 1))
        #expect(script.on(Script.ended(.cancelled)) == [.stopTimer(.unconfirmed(firstID)), Script.ending(.cancelled)])
        #expect(
            script.on(.reportResult(firstID, push: 1, .ok)) == [.completePush(1), .reportEnded(firstID, .remoteEnded)])
    }

    @Test func theEndOfAnUnknownCallIsShown() {
        var script = Script()
        #expect(script.on(Script.ended(.missed)) == [Script.ending(.missed)])
    }

    // MARK: Answering

    @Test func anAnswerPreparesTheAudioAndAccepts() {
        var script = Script.ringing()
        #expect(
            script.on(.system(.answer(firstID, 1))) == [
                .audio(.configure(speaker: true)), .send(.accept(first, video: true)),
            ])
        #expect(script.coordinator.current?.phase == .answering)
    }

    @Test func anAnswerBeforeTheSocketIsUpIsRemembered() {
        var script = Script.pushed()
        #expect(script.on(.system(.answer(firstID, 1))) == [.audio(.configure(speaker: true)), .send(.openSocket)])
        #expect(script.on(.online(isNew: true)) == [.send(.appear)])
        #expect(
            script.on(Script.incoming(video: false)) == [
                .update(firstID, Script.ada, video: false), .stopTimer(.unconfirmed(firstID)),
                .send(.accept(first, video: true)),
            ])
    }

    @Test(arguments: [(CallEnvironment.Microphone.undetermined, true), (.refused, true), (.refused, false)])
    func anAnswerWithoutAMicrophoneEndsTheCall(microphone: CallEnvironment.Microphone, isLocked: Bool) {
        var script = Script.ringing(microphone: microphone, isLocked: isLocked)
        #expect(
            script.on(.system(.answer(firstID, 1))) == [
                .fulfil(1), .send(.end(first)), .tell(.allowMicrophone(Script.ada)),
                .request(.end(firstID)),
            ])
        #expect(script.coordinator.current?.phase == .ending)
        #expect(script.on(.system(.end(firstID, 2))) == [.fulfil(2)])
        #expect(script.coordinator.current == nil)
    }

    @Test func anUnlockedPhoneAsksForTheMicrophoneLater() {
        var script = Script.ringing(microphone: .undetermined)
        #expect(script.on(.system(.answer(firstID, 1))).contains(.send(.accept(first, video: true))))
    }

    @Test func anAcceptedCallFulfilsTheAnswerAndJoins() {
        var script = Script.answering()
        #expect(
            script.on(Script.accepted()) == [
                .fulfil(1)
            ])
        #expect(script.coordinator.current?.phase == .connecting)
        #expect(!script.coordinator.audio.isEnabled, "sound waits for the system")
    }

    @Test(arguments: ["call_state", "not_found"]) func aRefusedAnswerFails(code: String) {
        var script = Script.answering()
        let trouble = ConfabError(.init(rawValue: code), "Gone.")
        #expect(
            script.on(.server(.acceptRefused(first, trouble))) == [
                .fail(1), .reportEnded(firstID, .failed), .tell(.trouble(trouble)),
            ])
        #expect(script.coordinator.current == nil)
    }

    @Test func mediaMakesTheCallActive() {
        var script = Script.connecting()
        #expect(script.on(CallScript.connected(first)) == [])
        #expect(script.coordinator.current?.phase == .active)
    }

    @Test func answeringTheWaitingCallEndsTheFirst() {
        var script = Script.activeAndWaiting()
        #expect(
            script.on(.system(.answer(secondID, 2))) == [
                .send(.end(first)), .reportEnded(firstID, .remoteEnded),
                .audio(.setEnabled(false)), .audio(.configure(speaker: true)),
                .send(.accept(second, video: true)),
            ])
        #expect(script.coordinator.current?.id == secondID)
        #expect(script.coordinator.waiting == nil)
    }

    @Test func theSystemMayEndTheFirstBeforeItAnswersTheWaitingCall() {
        var script = Script.activeAndWaiting()
        #expect(
            script.on(.system(.end(firstID, 2))) == [
                .send(.end(first)), .audio(.setEnabled(false)), .fulfil(2),
            ])
        #expect(
            script.on(.system(.answer(secondID, 3))) == [
                .audio(.configure(speaker: true)), .send(.accept(second, video: true)),
            ])
    }

    @Test func theSystemMayHoldTheFirstBeforeItAnswersTheWaitingCall() {
        var script = Script.activeAndWaiting()
        #expect(script.on(.system(.hold(firstID, true, 2))).last == .fulfil(2))
        #expect(script.on(.system(.answer(secondID, 3))).first == .send(.end(first)))
        #expect(script.coordinator.current?.id == secondID)
    }

    @Test func decliningTheWaitingCallLeavesTheFirst() {
        var script = Script.activeAndWaiting()
        #expect(script.on(.system(.end(secondID, 2))) == [.send(.end(second)), .fulfil(2)])
        #expect(script.coordinator.current?.phase == .active)
    }
}
