import Foundation
import Testing

@testable import AppModel

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
        #expect(script.on(.system(.end(firstID, 2))) == [.send(.decline(callID: first)), .fulfil(2)])
        #expect(script.coordinator.current == nil)
    }

    @Test func decliningInTheAppDeclines() {
        var script = Script.ringing()
        #expect(
            script.on(.app(.end(firstID)), .system(.end(firstID, 2))) == [.send(.decline(callID: first)), .fulfil(2)])
    }

    @Test func theSystemEndsAnAnsweredCall() {
        var script = Script.answering()
        #expect(
            script.on(.system(.end(firstID, 2))) == [.send(.end(callID: first)), .fail(1), .fulfil(2)])
    }

    @Test func theSystemEndsAnActiveCall() {
        var script = Script.active()
        #expect(
            script.on(.system(.end(firstID, 2))) == [
                .leave(firstID), .send(.end(callID: first)), .audio(.setEnabled(false)), .fulfil(2),
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
                .send(.end(callID: first)), .reportEnded(firstID, .remoteEnded), .leave(firstID),
                .audio(.setEnabled(false)),
            ])
    }

    @Test(arguments: [
        (CallEndReason.hungUp, SystemEndReason.remoteEnded), (.connectionLost, .failed), (.failed, .failed),
        (.ended, .remoteEnded),
    ])
    func anActiveCallEndsForTheReasonOfTheServer(reason: CallEndReason, system: SystemEndReason) {
        var script = Script.active()
        #expect(
            script.on(Script.ended(reason)) == [
                .reportEnded(firstID, system), .leave(firstID), .audio(.setEnabled(false)), Script.ending(reason),
            ])
    }

    @Test func aMergedCallContinuesAsTheOther() {
        var script = Script.active()
        #expect(
            script.on(Script.ended(.merged, into: Script.second)) == [.leave(firstID), .audio(.setEnabled(false))])
        #expect(
            script.on(Script.accepted(Script.second)) == [
                .join(firstID), .publish(firstID, video: true), .audio(.setEnabled(true)),
            ])
    }

    @Test func aMergedCallWithoutAnotherEnds() {
        var script = Script.active()
        #expect(script.on(Script.ended(.merged)).first == .reportEnded(firstID, .remoteEnded))
    }

    // MARK: Mute, hold, video

    @Test func theSystemMutesAnyCall() {
        for script in [Script.ringing(), .answering(), .active()] {
            var script = script
            #expect(script.on(.system(.mute(firstID, true, 5))) == [.setMuted(firstID, true), .fulfil(5)])
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
                .setMuted(firstID, true), .setVideo(firstID, false), .send(.update(callID: first, video: false)),
                .audio(.setEnabled(false)), .fulfil(5),
            ])
        #expect(script.coordinator.current?.phase == .held)
    }

    @Test func unholdingRestoresSoundAndPicture() {
        var script = Script.held()
        #expect(
            script.on(.system(.hold(firstID, false, 6))) == [
                .setMuted(firstID, false), .setVideo(firstID, true), .send(.update(callID: first, video: true)),
                .fulfil(6), .audio(.configure(speaker: true)), .audio(.setEnabled(true)),
            ])
        #expect(script.coordinator.current?.phase == .active)
    }

    @Test func unholdingKeepsWhatThePersonTurnedOff() {
        var script = Script.active()
        script.on(.system(.mute(firstID, true, 4)), .app(.video(false)), .system(.hold(firstID, true, 5)))
        let effects = script.on(.system(.hold(firstID, false, 6)))
        #expect(Array(effects.prefix(2)) == [.setMuted(firstID, true), .setVideo(firstID, false)])
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
                .setVideo(firstID, false), .send(.update(callID: first, video: false)),
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
                .stopRinging(firstID), .leave(firstID), .audio(.setEnabled(false)), .audio(.setActive(false)),
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
        #expect(script.on(.server(.placed(ownID, callID: first))) == [])
        script.on(Script.accepted())
        #expect(script.on(.app(.mute(true))) == [.setMuted(ownID, true)])
        #expect(script.on(.app(.end(ownID))).contains(.send(.end(callID: first))))
        #expect(script.coordinator.current == nil)
    }

    // MARK: Trouble

    @Test func anAnswerThatTimedOutEndsTheCall() {
        var script = Script.answering()
        #expect(
            script.on(.system(.timedOut(1))) == [.send(.end(callID: first)), .reportEnded(firstID, .failed)])
        #expect(script.coordinator.current == nil)
    }

    @Test func aStartThatTimedOutEndsTheCall() {
        var script = Script.starting()
        #expect(script.on(.system(.timedOut(1))) == [.reportEnded(ownID, .failed)])
        #expect(script.on(.server(.placed(ownID, callID: first))) == [.send(.cancel(callID: first))])
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
                .send(.decline(callID: Script.second)), .send(.end(callID: first)), .leave(firstID),
                .audio(.setEnabled(false)), .audio(.sessionDidDeactivate),
            ])
        #expect(script.coordinator.current == nil)
        #expect(script.coordinator.waiting == nil)
        #expect(!script.coordinator.audio.isActive, "the next call is not queued for a session that is gone")
    }

    @Test func aResetCompletesPushesAndForgetsReports() {
        var script = Script()
        script.on(.push(callID: first, push: 1))
        #expect(
            script.on(.system(.reset)) == [
                .send(.decline(callID: first)), .stopTimer(.unconfirmed(firstID)), .completePush(1),
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

    @Test func afterARestartTheCallIsJoinedAgain() {
        var script = Script.active()
        #expect(
            script.on(.online(isNew: true)) == [
                .appear, .leave(firstID), .send(.rejoin(callID: first)), .audio(.setEnabled(false)),
            ])
        #expect(script.coordinator.current?.phase == .rejoining)
        #expect(
            script.on(Script.accepted()) == [
                .join(firstID), .publish(firstID, video: true), .audio(.setEnabled(true)),
            ])
    }

    @Test func afterARestartACallMayBeGone() {
        var script = Script.active()
        script.on(.online(isNew: true))
        #expect(script.on(.server(.rejoinRefused(callID: first))) == [.reportEnded(firstID, .failed)])
        #expect(script.coordinator.current == nil)
    }

    @Test func afterARestartACallThatRangArrivesAgainOrEnds() {
        var script = Script.ringing()
        #expect(script.on(.online(isNew: true)) == [.appear, .startTimer(.unconfirmed(firstID))])
        #expect(script.on(Script.incoming()) == [.stopTimer(.unconfirmed(firstID))])
        script.on(.online(isNew: true))
        #expect(script.on(.timer(.unconfirmed(firstID))) == [.reportEnded(firstID, .failed)])
    }

    @Test func thePushTokenIsRegisteredAgainAfterEachWelcome() {
        var script = Script()
        #expect(script.on(.pushToken("aa")) == [])
        #expect(script.on(.online(isNew: true)) == [.appear, .registerPush("aa")])
        #expect(script.on(.pushToken("bb")) == [.registerPush("bb")])
        #expect(script.on(.online(isNew: false)) == [.registerPush("bb")])
        #expect(script.on(.pushToken(nil)) == [.unregisterPush("bb")])
        #expect(script.on(.online(isNew: false)) == [])
    }

    @Test func thePartnersConnectionIsShown() {
        var script = Script.active()
        #expect(script.on(.server(.partner(callID: first, isAway: true))) == [])
        #expect(script.coordinator.current?.isPartnerAway == true)
    }

    // MARK: Video

    @Test func aCameraThatTheSystemTakesAwayIsTold() {
        var script = Script.active()
        #expect(
            script.on(.app(.camera(works: false))) == [
                .setVideo(firstID, false), .send(.update(callID: first, video: false)),
            ])
        #expect(script.on(.app(.camera(works: false))) == [], "once")
        #expect(script.on(.app(.video(false))) == [], "nothing was seen")
        #expect(script.on(.app(.camera(works: true))) == [], "the person has turned it off")
        #expect(
            script.on(.app(.video(true))) == [.setVideo(firstID, true), .send(.update(callID: first, video: true))])
    }

    @Test func aCameraThatStoppedWhileItRangIsToldWhenTheCallIsAccepted() {
        var script = Script.placing()
        #expect(script.on(.app(.camera(works: false))) == [])
        #expect(
            script.on(Script.accepted()).suffix(2) == [
                .setVideo(ownID, false), .send(.update(callID: first, video: false)),
            ])
    }

    @Test func aCallIsAnsweredByVoiceWhileTheCameraIsTaken() {
        var script = Script.ringing()
        script.on(.app(.camera(works: false)))
        #expect(script.on(.system(.answer(firstID, 1))).last == .send(.accept(callID: first, video: false)))
        script.on(Script.accepted())
        #expect(
            script.on(.app(.camera(works: true))) == [
                .setVideo(firstID, true), .send(.update(callID: first, video: true)),
            ])
    }

    @Test func aScreenIsSeenWhileTheCameraIsOffAndNotWhileTheCallIsHeld() {
        var script = Script.active()
        script.on(.app(.video(false)))
        #expect(script.on(.app(.sharing(true))) == [.send(.update(callID: first, video: true))])
        #expect(
            script.on(.system(.hold(firstID, true, 5))).prefix(3) == [
                .setMuted(firstID, true), .setVideo(firstID, false), .send(.update(callID: first, video: false)),
            ])
        #expect(
            script.on(.system(.hold(firstID, false, 6))).prefix(3) == [
                .setMuted(firstID, false), .setVideo(firstID, false), .send(.update(callID: first, video: true)),
            ])
        #expect(script.on(.app(.sharing(false))) == [.send(.update(callID: first, video: false))])
    }

    @Test func aCameraThatChangesWhileTheCallIsHeldIsToldWhenItGoesOn() {
        var script = Script.held()
        #expect(script.on(.app(.camera(works: false))) == [])
        #expect(
            script.on(.system(.hold(firstID, false, 6))).prefix(3) == [
                .setMuted(firstID, false), .setVideo(firstID, false), .send(.update(callID: first, video: false)),
            ])
    }

    // MARK: The loudspeaker

    @Test func aVoiceCallUsesTheReceiverUntilTheCameraIsOn() {
        var script = Script()
        script.on(
            .online(isNew: true), .app(.call(ownID, Script.ada, video: false)), .system(.start(ownID, 1)),
            .server(.placed(ownID, callID: first)), Script.accepted())
        #expect(script.on(.audio(.activated)).contains(.audio(.configure(speaker: false))))
        #expect(script.on(.app(.video(true))).contains(.audio(.configure(speaker: true))))
        #expect(script.on(.app(.video(false))).contains(.audio(.configure(speaker: false))))
    }
}
