import Foundation
import Testing

@testable import AppModel

/// Each row of the table about outgoing calls.
@Suite struct OutgoingCallTests {
    private typealias Script = CallScript
    private let first = CallScript.first
    private let second = CallScript.second
    private let ownID = CallScript.ownID
    private let secondID = CallScript.secondID

    @Test func aCallIsRequestedOfTheSystem() {
        var script = Script()
        #expect(
            script.on(.app(.call(ownID, Script.ada, video: true))) == [.request(.start(ownID, Script.ada, video: true))]
        )
        #expect(script.coordinator.current?.phase == .placing)
    }

    @Test func theSystemsStartIsSentAndFulfilledWhenTheCallExists() {
        var script = Script()
        script.on(.online(isNew: true), .app(.call(ownID, Script.ada, video: false)))
        #expect(script.on(.system(.start(ownID, 1))) == [.send(.start(ownID, Script.ada, video: false))])
        #expect(
            script.on(.server(.placed(ownID, callID: first))) == [
                .fulfil(1), .update(ownID, Script.ada, video: false), .reportConnecting(ownID),
            ])
        #expect(script.coordinator.current?.callID == first)
    }

    @Test func theSystemsStartFailsIfTheServerRefuses() {
        var script = Script.starting()
        let trouble = CallTrouble(code: "call_not_allowed", message: "They accept calls from contacts only.")
        #expect(script.on(.server(.startRefused(ownID, trouble))) == [.fail(1), .tell(.trouble(trouble))])
        #expect(script.coordinator.current == nil)
    }

    @Test func aStartOfAnUnknownCallFails() {
        var script = Script()
        #expect(script.on(.system(.start(ownID, 1))) == [.fail(1)])
    }

    @Test func aSecondCallIsRefused() {
        var script = Script.placing()
        #expect(script.on(.app(.call(secondID, Script.bob, video: true))) == [.tell(.alreadyInCall)])
    }

    @Test(arguments: [
        (CallEndReason.busy, SystemEndReason.unanswered), (.declined, .remoteEnded), (.unanswered, .unanswered),
        (.unreachable, .failed),
    ])
    func aCallThatIsNotAnsweredShowsTheReason(reason: CallEndReason, system: SystemEndReason) {
        var script = Script.placing()
        #expect(script.on(Script.ended(reason)) == [.reportEnded(ownID, system), Script.ending(reason)])
        #expect(script.coordinator.current == nil)
    }

    @Test func theNumberOfRingingDevicesIsKnown() {
        var script = Script.placing()
        script.on(.server(.ringing(callID: first, devices: 2)))
        #expect(script.coordinator.current?.ringingDevices == 2)
    }

    @Test func anAcceptedCallJoinsAndIsReportedWithItsMedia() {
        var script = Script.placing()
        #expect(
            script.on(Script.accepted()) == [.join(ownID), .publish(ownID, video: true)])
        #expect(script.on(.server(.mediaConnected(callID: first))) == [.reportConnected(ownID)])
        #expect(script.coordinator.current?.phase == .active)
    }

    @Test func cancelingBeforeTheCallExistsCancelsItThen() {
        var script = Script.starting()
        #expect(script.on(.system(.end(ownID, 2))) == [.fail(1), .fulfil(2)])
        #expect(script.on(.server(.placed(ownID, callID: first))) == [.send(.cancel(callID: first))])
    }

    @Test func cancelingWhileItRingsCancels() {
        var script = Script.placing()
        #expect(script.on(.app(.end(ownID))) == [.request(.end(ownID))])
        #expect(script.coordinator.current?.phase == .ending)
        #expect(script.on(.system(.end(ownID, 2))) == [.send(.cancel(callID: first)), .fulfil(2)])
    }

    // MARK: Both called

    @Test func ifBothCalledTheOtherCallContinuesAsTheOwn() {
        var script = Script.placing()
        script.on(Script.incoming(second, Script.ada), .reportResult(secondID, push: nil, .ok))
        #expect(
            script.on(Script.accepted(second)) == [
                .reportEnded(secondID, .answeredElsewhere), .reportConnected(ownID), .join(ownID),
                .publish(ownID, video: true),
            ])
        #expect(script.coordinator.current?.callID == second)
        #expect(script.on(Script.ended(.merged, first, into: second)) == [])
        #expect(script.on(.server(.mediaConnected(callID: second))) == [], "it is reported once")
    }

    @Test func ifBothCalledAndNothingRangHereOnlyTheOwnIsReported() {
        var script = Script.placing()
        #expect(script.on(Script.accepted(second)).first == .reportConnected(ownID))
    }

    @Test func theMergedCallMayEndBeforeTheOtherIsAccepted() {
        var script = Script.placing()
        script.on(Script.incoming(second, Script.ada), .reportResult(secondID, push: nil, .ok))
        #expect(
            script.on(Script.ended(.merged, first, into: second)) == [.reportEnded(secondID, .answeredElsewhere)])
        #expect(script.on(Script.accepted(second)).first == .reportConnected(ownID))
    }

    @Test func theOtherCallMayBeMergedIntoTheOwn() {
        var script = Script.placing()
        script.on(Script.incoming(second, Script.ada), .reportResult(secondID, push: nil, .ok))
        #expect(
            script.on(Script.ended(.merged, second, into: first)) == [.reportEnded(secondID, .answeredElsewhere)])
        #expect(script.on(Script.accepted(first)).first == .join(ownID))
    }

    @Test func acceptingACallOfAThirdPersonIsNotMutual() {
        var script = Script.placing()
        #expect(script.on(Script.accepted(second, Script.bob)) == [.send(.end(callID: second))])
        #expect(script.coordinator.current?.callID == first)
    }

    // MARK: Audio of the previous call

    @Test func aCallWaitsForTheAudioOfThePreviousOne() {
        var script = Script.active()
        script.on(.system(.end(Script.firstID, 3)))
        #expect(script.on(.app(.call(ownID, Script.ada, video: true))) == [.startTimer(.queued)])
        #expect(
            script.on(.audio(.deactivated)) == [
                .audio(.sessionDidDeactivate), .stopTimer(.queued), .request(.start(ownID, Script.ada, video: true)),
            ])
    }

    @Test func aCallWaitsTwoSecondsAtMost() {
        #expect(CallTimer.queued.interval == .seconds(2))
        var script = Script.active()
        script.on(.system(.end(Script.firstID, 3)), .app(.call(ownID, Script.ada, video: true)))
        #expect(script.on(.timer(.queued)) == [.request(.start(ownID, Script.ada, video: true))])
        #expect(script.on(.timer(.queued)) == [])
    }

    @Test func aQueuedCallCanBeCanceled() {
        var script = Script.active()
        script.on(.system(.end(Script.firstID, 3)), .app(.call(ownID, Script.ada, video: true)))
        #expect(script.on(.app(.end(ownID))) == [.stopTimer(.queued)])
        #expect(script.on(.audio(.deactivated)) == [.audio(.sessionDidDeactivate)])
    }
}
