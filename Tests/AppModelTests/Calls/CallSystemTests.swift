import Testing

@testable import AppModel
@testable import Confab

/// What the system's call screen receives and asks, without its types.
@Suite struct CallSystemTests {
    @Test func aValueIsTakenOnce() {
        var pending = PendingValues<String>()
        let (first, _) = pending.keep("answer")
        let (second, _) = pending.keep("end")
        #expect(first != second)
        #expect(pending.take(first) == "answer" && pending.take(first) == nil)
        #expect(pending.drop { $0 == "end" } == second && pending.take(second) == nil)
        #expect(pending.drop { $0 == "end" } == nil, "it timed out after its answer")
    }

    @Test func aResetForgetsActionsButNotTheirNumbers() {
        var pending = PendingValues<String>()
        let (first, _) = pending.keep("answer")
        pending.reset()
        #expect(pending.take(first) == nil)
        #expect(pending.keep("end").id != first)
    }

    @Test func aValueThatWaitsForTooLongIsAnsweredByOthers() {
        var pending = PendingValues<Int>()
        let expired = (0..<PendingValues<Int>.maxKept + 2).compactMap { pending.keep($0).expired }
        #expect(expired == [0, 1])
        #expect(pending.count == PendingValues<Int>.maxKept)
    }

    @Test func aCallerKnownOnlyFromAPushHasTheNameOfTheApp() {
        #expect(ShownCall(nil, hasVideo: true).name == "Confab")
        let call = ShownCall(Person(id: "a", name: "Ada"), hasVideo: false)
        #expect(call.name == "Ada" && call.personID == "\(PersonID("a"))" && !call.hasVideo)
        #expect(call.canBeHeld && !call.canBeGrouped && !call.hasTones)
    }

    @Test func oneCallIsActiveWhileAnotherWaits() {
        #expect(CallScreenFeatures.maxGroups == 2 && CallScreenFeatures.maxCallsPerGroup == 1)
    }

    @Test func nothingSoundsAtTheLaunch() {
        #expect(!AudioMachine.isEnabledAtLaunch)
        #expect(AudioMode(speaker: AudioMachine.usesSpeakerAtLaunch) == .videoChat)
        #expect(AudioMode(speaker: false) == .voiceChat, "the phone is at the ear")
    }
}
