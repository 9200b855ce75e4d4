import Foundation
import Testing

@testable import AppModel
@testable import Confab

/// Each row of the table about calls that are going on, their audio, the connection and the system.
@Suite struct CallControlTests {
    private typealias Script = CallScript
    private let first = CallScript.first
    private let firstID = CallScript.firstID
    private let secondID = CallScript.secondID
    private let ownID = CallScript.ownID

    // MARK: Ending

    @Test func endingIsRequestedOfTheSystem() {
        for script in [Script.ringing(), .answering(), .connecting(), .active(), .held()] {
            var script = script
            #expect(script.on(.app(.end(firstID))) == [.request(.end(firstID))])
            #expect(script.coordinator.current?.phase == .ending)
            #expect(script.on(.app(.end(firstID))) == [], "once")
        }
    }

    @Test func theSystemEndsARingingCall() {
        var script = Script.ringing()
        #expect(script.on(.system(.end(firstID, 2))) == [.send(.end(first)), .fulfil(2)])
        #expect(script.coordinator.current == nil)
    }

    @Test func decliningInTheAppDeclines() {
        var script = Script.ringing()
        #expect(
            script.on(.app(.end(firstID)), .system(.end(firstID, 2))) == [.send(.end(first)), .fulfil(2)])
    }

    @Test func theSystemEndsAnAnsweredCall() {
        var script = Script.answering()
        #expect(
            script.on(.system(.end(firstID, 2))) == [.send(.end(first)), .fail(1), .fulfil(2)])
    }

    @Test func theSystemEndsAnActiveCall() {
        var script = Script.active()
        #expect(
            script.on(.system(.end(firstID, 2))) == [
                .send(.end(first)), .audio(.setEnabled(false)), .fulfil(2),
            ])
    }

    @Test func endingAnUnknownCallIsFulfilled() {
        var script = Script()
        #expect(script.on(.system(.end(firstID, 2))) == [.fulfil(2)])
    }

    @Test func aRefusedRequestToEndEndsTheCallAnyway() {
        var script = Script.active()
        script.on(.app(.end(firstID)))
        #expect(
            script.on(.system(.requestFailed(.end(firstID)))) == [
                .send(.end(first)), .reportEnded(firstID, .remoteEnded), .audio(.setEnabled(false)),
            ])
    }

    @Test(arguments: [
        (CallEnding.Outcome.hungUp, SystemEndReason.remoteEnded), (.connectionLost, .failed), (.failed, .failed),
        (.ended, .remoteEnded),
    ])
    func anActiveCallEndsForTheReasonOfTheServer(reason: CallEnding.Outcome, system: SystemEndReason) {
        var script = Script.active()
        #expect(
            script.on(Script.ended(reason)) == [
                .reportEnded(firstID, system), .audio(.setEnabled(false)), Script.ending(reason),
            ])
    }

    // MARK: Mute, hold, video

    @Test func theSystemMutesAnyCall() {
        for script in [Script.ringing(), .answering(), .active()] {
            var script = script
            #expect(script.on(.system(.mute(firstID, true, 5))) == [.send(.setMuted(first, true)), .fulfil(5)])
            #expect(script.coordinator.current?.isMuted == true)
        }
        var script = Script.active()
        #expect(script.on(.system(.mute(secondID, true, 5))) == [.fail(5)])
    }

    @Test func mutingInTheAppIsRequestedAndChangesNothingYet() {
        var script = Script.active()
        #expect(script.on(.app(.mute(true))) == [.request(.mute(firstID, true))])
        #expect(script.coordinator.current?.isMuted == false)
        #expect(script.on(.system(.requestFailed(.mute(firstID, true)))) == [.tell(.systemRefused)])
        #expect(script.coordinator.current?.isMuted == false)
    }

    @Test func holdingStopsSoundAndPicture() {
        var script = Script.active()
        #expect(
            script.on(.system(.hold(firstID, true, 5))) == [
                .send(.setMuted(first, true)), .send(.setVideo(false)), .send(.update(first, video: false)),
                .audio(.setEnabled(false)), .fulfil(5),
            ])
        #expect(script.coordinator.current?.phase == .held)
    }

    @Test func unholdingRestoresSoundAndPicture() {
        var script = Script.held()
        #expect(
            script.on(.system(.hold(firstID, false, 6))) == [
                .send(.setMuted(first, false)), .send(.setVideo(true)), .send(.update(first, video: true)),
                .fulfil(6), .audio(.configure(speaker: true)), .audio(.setEnabled(true)),
            ])
        #expect(script.coordinator.current?.phase == .active)
    }

    @Test func unholdingKeepsWhatThePersonTurnedOff() {
        var script = Script.active()
        script.on(.system(.mute(firstID, true, 4)), .app(.video(false)), .system(.hold(firstID, true, 5)))
        let effects = script.on(.system(.hold(firstID, false, 6)))
        #expect(effects.prefix(2) == [.send(.setMuted(first, true)), .fulfil(6)])
    }

    @Test func unholdingWithoutAnActiveSessionHasNoSoundYet() {
        var script = Script.held()
        script.on(.audio(.deactivated))
        #expect(script.on(.system(.hold(firstID, false, 6))).last == .audio(.configure(speaker: true)))
        #expect(
            script.on(.audio(.activated)) == [
                .audio(.sessionDidActivate), .audio(.configure(speaker: true)), .audio(.setEnabled(true)),
            ])
    }

    @Test func aCallThatRingsCannotBeHeld() {
        var script = Script.ringing()
        #expect(script.on(.system(.hold(firstID, true, 5))) == [.fail(5)])
    }

    @Test func theAppTurnsTheCameraOff() {
        var script = Script.active()
        #expect(
            script.on(.app(.video(false))) == [
                .send(.setVideo(false)), .send(.update(first, video: false)),
            ])
        #expect(script.on(.app(.video(false))) == [])
    }

    // MARK: Audio

    @Test func anActivatedSessionEnablesTheAudioOfACall() {
        var script = Script.connecting()
        #expect(
            script.on(.audio(.activated)) == [
                .audio(.sessionDidActivate), .audio(.configure(speaker: true)), .audio(.setEnabled(true)),
            ])
        var idle = Script()
        #expect(idle.on(.audio(.activated)) == [.audio(.sessionDidActivate), .audio(.configure(speaker: true))])
    }

    @Test func aDeactivatedSessionDisablesTheAudio() {
        var script = Script.active()
        #expect(script.on(.audio(.deactivated)) == [.audio(.setEnabled(false)), .audio(.sessionDidDeactivate)])
    }

    @Test func withoutTheSystemTheAppActivatesTheSession() {
        var script = Script(usesSystem: false)
        script.on(.online(isNew: true), Script.incoming(), .app(.answer(firstID)))
        #expect(
            Array(script.on(Script.accepted()).suffix(2)) == [
                .audio(.configure(speaker: true)), .audio(.setActive(true)),
            ])
        #expect(script.on(.audio(.activated)) == [.audio(.setEnabled(true))])
        #expect(
            script.on(Script.ended(.hungUp)) == [
                .stopRinging(firstID), .audio(.setEnabled(false)), .audio(.setActive(false)),
                Script.ending(.hungUp),
            ])
    }

    @Test func aSessionThatTheSystemRefusedIsTriedAgainAndNotTakenBack() {
        var script = Script(usesSystem: false)
        script.on(.online(isNew: true), Script.incoming(), .app(.answer(firstID)), Script.accepted())
        #expect(script.on(.audio(.refused)) == [])
        #expect(script.coordinator.audio.isRefused && !script.coordinator.audio.isEnabled)
        let again: [CallEffect] = [.audio(.configure(speaker: true)), .audio(.setActive(true))]
        #expect(script.on(.audio(.tryAgain)) == again)
        #expect(script.on(.audio(.tryAgain)) == [], "it is asked")
        script.on(.audio(.refused))
        #expect(!script.on(Script.ended(.hungUp)).contains(.audio(.setActive(false))), "WebRTC counts activations")
        #expect(!script.coordinator.audio.isRefused && script.on(.audio(.tryAgain)) == [])
    }

    @Test func withoutTheSystemButtonsWorkAtOnce() {
        var script = Script(usesSystem: false)
        script.on(.online(isNew: true))
        #expect(
            script.on(.app(.call(ownID, Script.ada, video: true))) == [.send(.start(ownID, Script.ada, video: true))])
        #expect(script.on(CallScript.placed(ownID, first)) == [])
        script.on(Script.accepted())
        #expect(script.on(.app(.mute(true))) == [.send(.setMuted(first, true))])
        #expect(script.on(.app(.end(ownID))).contains(.send(.end(first))))
        #expect(script.coordinator.current == nil)
    }

    // MARK: Trouble

    @Test func anAnswerThatTimedOutEndsTheCall() {
        var script = Script.answering()
        #expect(
            script.on(.system(.timedOut(1))) == [.send(.end(first)), .reportEnded(firstID, .failed)])
        #expect(script.coordinator.current == nil)
    }

    @Test func aStartThatTimedOutEndsTheCall() {
        var script = Script.starting()
        #expect(script.on(.system(.timedOut(1))) == [.reportEnded(ownID, .failed)])
        #expect(script.on(CallScript.placed(ownID, first)) == [.send(.end(first))])
    }

    @Test func otherActionsThatTimedOutAreIgnored() {
        var script = Script.active()
        #expect(script.on(.system(.timedOut(7))) == [])
        #expect(script.coordinator.current?.phase == .active)
    }

    @Test func aResetEndsEverythingAndReportsNothing() {
        var script = Script.activeAndWaiting()
        #expect(
            script.on(.system(.reset)) == [
                .send(.end(Script.second)), .send(.end(first)), .audio(.setEnabled(false)),
                .audio(.sessionDidDeactivate),
            ])
        #expect(script.coordinator.current == nil)
        #expect(script.coordinator.waiting == nil)
        #expect(!script.coordinator.audio.isActive, "the next call is not queued for a session that is gone")
    }

    @Test func aResetCompletesPushesAndForgetsReports() {
        var script = Script()
        script.on(.push(callID: "\(first)", push: 1))
        #expect(
            script.on(.system(.reset)) == [
                .send(.end(first)), .stopTimer(.unconfirmed(firstID)), .completePush(1),
            ])
        #expect(script.on(.reportResult(firstID, push: 1, .ok)) == [.reportEnded(firstID, .failed)], "a late answer")
        #expect(script.on(.reportResult(firstID, push: 1, .refused)) == [])
        #expect(script.on(Script.incoming()) == [.report(firstID, Script.ada, video: true, push: nil)])
    }

    @Test func aConnectionThatReturnsInTimeIsNotTheSystemsBusiness() {
        var script = Script.active()
        #expect(script.on(.offline) == [])
        #expect(!script.coordinator.isOnline)
        #expect(script.on(.online(isNew: false)) == [])
        #expect(script.coordinator.current?.phase == .active)
    }

    @Test func afterARestartTheSDKJoinsTheCallAgain() {
        var script = Script.active()
        #expect(script.on(.online(isNew: true)) == [.send(.appear)])
        #expect(script.on(Script.changed { ($0.isRejoining, $0.isPartnerConnected) = (true, false) }) == [])
        #expect(script.coordinator.current?.isRejoining == true)
        #expect(script.on(Script.connected()) == [])
        #expect(script.coordinator.current?.isRejoining == false)
        #expect(script.on(Script.ended(.connectionLost)).first == .reportEnded(firstID, .failed), "or it is gone")
    }

    @Test func afterARestartAHeldCallStaysHeld() {
        var script = Script.held()
        #expect(script.on(.online(isNew: true), Script.accepted(), Script.connected()) == [])
        #expect(script.coordinator.current?.phase == .held)
    }

    @Test func thePushTokenIsRegisteredAgainAfterEachWelcome() {
        var script = Script()
        #expect(script.on(.pushToken("aa")) == [])
        #expect(script.on(.online(isNew: true)) == [.send(.appear), .send(.registerPush("aa"))])
        #expect(script.on(.pushToken("bb")) == [.send(.registerPush("bb"))])
        #expect(script.on(.online(isNew: false)) == [.send(.registerPush("bb"))])
        #expect(script.on(.pushToken(nil)) == [.send(.unregisterPush("bb"))])
        #expect(script.on(.online(isNew: false)) == [])
    }

    @Test func thePartnersConnectionIsShown() {
        var script = Script.active()
        #expect(script.on(CallScript.partnerAway()) == [])
        #expect(script.coordinator.current?.call?.isPartnerConnected == false)
    }

    // MARK: Video

    @Test func aCameraThatTheSystemTakesAwayIsReported() {
        var script = Script.active()
        #expect(
            script.on(.app(.camera(works: false))) == [
                .send(.setVideo(false)), .send(.update(first, video: false)),
            ])
        #expect(script.on(.app(.camera(works: false))) == [], "once")
        #expect(script.on(.app(.video(false))) == [], "nothing was seen")
        #expect(script.on(.app(.camera(works: true))) == [], "the person has turned it off")
        #expect(
            script.on(.app(.video(true))) == [.send(.setVideo(true)), .send(.update(first, video: true))])
    }

    @Test func aCameraThatStoppedWhileItRangIsReportedWhenTheCallIsAccepted() {
        var script = Script.placing()
        #expect(script.on(.app(.camera(works: false))) == [])
        #expect(
            script.on(Script.accepted()).suffix(2) == [
                .send(.setVideo(false)), .send(.update(first, video: false)),
            ])
    }

    @Test func aCallIsAnsweredByVoiceWhileTheCameraIsTaken() {
        var script = Script.ringing()
        script.on(.app(.camera(works: false)))
        #expect(script.on(.system(.answer(firstID, 1))).last == .send(.accept(first, video: false)))
        script.on(Script.accepted())
        #expect(
            script.on(.app(.camera(works: true))) == [
                .send(.setVideo(true)), .send(.update(first, video: true)),
            ])
    }

    @Test func aScreenIsSeenWhileTheCameraIsOffAndNotWhileTheCallIsHeld() {
        var script = Script.active()
        script.on(.app(.video(false)))
        #expect(script.on(.app(.sharing(true))) == [.send(.update(first, video: true))])
        #expect(
            script.on(.system(.hold(firstID, true, 5))).prefix(3) == [
                .send(.setMuted(first, true)), .send(.update(first, video: false)), .audio(.setEnabled(false)),
            ])
        #expect(
            script.on(.system(.hold(firstID, false, 6))).prefix(2) == [
                .send(.setMuted(first, false)), .send(.update(first, video: true)),
            ])
        #expect(script.on(.app(.sharing(false))) == [.send(.update(first, video: false))])
    }

    @Test func aCameraThatChangesWhileTheCallIsHeldIsReportedWhenItResumes() {
        var script = Script.held()
        #expect(script.on(.app(.camera(works: false))) == [])
        #expect(
            script.on(.system(.hold(firstID, false, 6))).prefix(2) == [.send(.setMuted(first, false)), .fulfil(6)])
    }

    // MARK: The loudspeaker

    @Test func aVoiceCallUsesTheReceiverUntilTheCameraIsOn() {
        var script = Script()
        script.on(
            .online(isNew: true), .app(.call(ownID, Script.ada, video: false)), .system(.start(ownID, 1)),
            CallScript.placed(ownID, first), Script.accepted())
        #expect(script.on(.audio(.activated)).contains(.audio(.configure(speaker: false))))
        #expect(script.on(.app(.video(true))).contains(.audio(.configure(speaker: true))))
        #expect(script.on(.app(.video(false))).contains(.audio(.configure(speaker: false))))
    }
}
