import Foundation
import Testing

@testable import AppModel
@testable import Confab

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
            script.on(CallScript.placed(ownID, first)) == [
                .fulfil(1), .update(ownID, Script.ada, video: false), .reportConnecting(ownID),
            ])
        #expect(script.coordinator.current?.callID == first)
    }

    @Test func theSystemsStartFailsIfTheServerRefuses() {
        var script = Script.starting()
        let trouble = ConfabError("call_not_allowed", "They accept calls from contacts only.")
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
        (CallEnding.Outcome.busy, SystemEndReason.unanswered), (.declined, .remoteEnded), (.unanswered, .unanswered),
        (.unreachable, .failed),
    ])
    func aCallThatIsNotAnsweredShowsTheReason(reason: CallEnding.Outcome, system: SystemEndReason) {
        var script = Script.placing()
        #expect(script.on(Script.ended(reason)) == [.reportEnded(ownID, system), Script.ending(reason)])
        #expect(script.coordinator.current == nil)
    }

    @Test func theNumberOfRingingDevicesIsKnown() {
        var script = Script.placing()
        script.on(CallScript.rings(on: 2))
        #expect(script.coordinator.current?.call?.devices == 2)
    }

    @Test func anAcceptedCallJoinsAndIsReportedWithItsMedia() {
        var script = Script.placing()
        #expect(script.on(Script.accepted()) == [])
        #expect(script.on(CallScript.connected(first)) == [.reportConnected(ownID)])
        #expect(script.coordinator.current?.phase == .active)
    }

    @Test func cancelingBeforeTheCallExistsCancelsItThen() {
        var script = Script.starting()
        #expect(script.on(.system(.end(ownID, 2))) == [.fail(1), .fulfil(2)])
        #expect(script.on(CallScript.placed(ownID, first)) == [.send(.end(first))])
    }

    @Test func cancelingWhileItRingsCancels() {
        var script = Script.placing()
        #expect(script.on(.app(.end(ownID))) == [.request(.end(ownID))])
        #expect(script.coordinator.current?.phase == .ending)
        #expect(script.on(.system(.end(ownID, 2))) == [.send(.end(first)), .fulfil(2)])
    }

    // MARK: Both called

    @Test func ifBothCalledTheOtherCallContinuesAsTheOwn() {
        var script = Script.placing()
        script.on(Script.incoming(second), .reportResult(secondID, push: nil, .ok))
        #expect(script.on(Script.ended(.merged, second)) == [.reportEnded(secondID, .answeredElsewhere)])
        #expect(script.on(Script.merged()) == [.reportConnected(ownID)])
        #expect(script.coordinator.current?.callID == second && script.coordinator.current?.phase == .connecting)
        #expect(script.on(Script.connected(second)) == [], "it is reported once")
    }

    @Test func ifBothCalledAndNothingRangHereOnlyTheOwnIsReported() {
        var script = Script.placing()
        #expect(script.on(Script.merged()).first == .reportConnected(ownID))
    }

    @Test func aStartMayBeAnsweredWithTheCallOfTheOtherPerson() {
        var script = Script.starting()
        script.on(Script.incoming(second), .reportResult(secondID, push: nil, .ok), Script.ended(.merged, second))
        #expect(script.on(Script.accepted(second)) == [], "the answer is still to come")
        script.on(.server(.placed(ownID, Script.call(second, state: .joining))))
        #expect(script.coordinator.current?.callID == second && script.coordinator.current?.phase == .connecting)
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
