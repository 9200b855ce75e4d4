import Testing

@testable import AppModel
@testable import Confab

extension RoomTests {
    @Test func aRoomThatIsRecordedSaysSoUntilTheEnd() {
        let model = model(.joined, .capture(.recording, RoomCapture(isRunning: true)))
        #expect(device.announcer.texts.last == "This session is being recorded.")
        #expect(model.consentQuestion == nil)
        Golden.expect(model, "Room", "recorded")
        model.handle(.capture(.broadcast, RoomCapture(isRunning: true)))
        #expect(model.captureText == "This session is being recorded and broadcast live.")
        model.handle(.capture(.recording, RoomCapture()))
        #expect(device.announcer.texts.last == "The recording has stopped.")
        #expect(model.captureText == "This session is being broadcast live.")
        let announced = device.announcer.texts.count
        model.handle(.capture(.broadcast, RoomCapture(isRunning: true)))
        #expect(device.announcer.texts.count == announced, "nothing has changed")
        model.leave()
        #expect(model.captureText.isEmpty)
        model.handle(.capture(.recording, RoomCapture(isRunning: true)))
        #expect(model.captureText.isEmpty, "the event of a room that was left")
    }

    @Test func thePersonIsAskedBeforeTheyArePartOfARecordingOrABroadcast() {
        let asks = RoomCapture(isRunning: true, asksConsent: true)
        let model = model(.joined, .capture(.recording, asks), .capture(.broadcast, asks))
        #expect(device.announcer.texts.contains(RoomConsent.recording.text))
        Golden.expect(model, "Room", "recorded and broadcast, asked")
        requests.all = []
        model.answer(.recording, accepts: false)
        #expect(requests.all == [.consent(.recording, false)] && model.recording.isRunning)
        #expect(model.consentQuestion == .broadcast, "the answers are separate")
        #expect(device.announcer.texts.last == RoomConsent.broadcast.text)
        model.answer(.recording, accepts: true)
        #expect(requests.all.count == 1, "this question is no longer shown")
        model.answer(.broadcast, accepts: true)
        #expect(requests.all.last == .consent(.broadcast, true) && model.consentQuestion == nil)
        model.handle(.capture(.broadcast, asks))
        #expect(model.consentQuestion == .broadcast, "the server did not get the answer")
        model.handle(.reconnecting(true))
        #expect(model.consentQuestion == nil, "an answer could not be sent now")
    }

    @Test func oneAnswerAppliesToAllRecordingsUntilNoneIsLeft() {
        var recordings = RunningCaptures<Int>()
        recordings.setAnswered(true)
        recordings.started(1, asks: true)
        #expect(recordings.capture == RoomCapture(isRunning: true, asksConsent: true), "an early answer does not count")
        recordings.setAnswered(true)
        recordings.started(2, asks: true)
        #expect(recordings.capture == RoomCapture(isRunning: true))
        recordings.stopped(1)
        #expect(recordings.capture == RoomCapture(isRunning: true))
        recordings.stopped(2)
        recordings.stopped(2)
        #expect(recordings.capture == RoomCapture())
        recordings.started(3, asks: true)
        #expect(recordings.capture.asksConsent)
        recordings.setAnswered(true)
        #expect(!recordings.capture.asksConsent)
        recordings.setAnswered(false)
        #expect(recordings.capture.asksConsent, "the server did not get the answer")
        recordings.setAnswered(true)
        recordings.stopped(3)
        recordings.started(4, asks: true)
        #expect(recordings.capture.asksConsent, "an answer on its way was about the former recording")
        recordings.stopped(4)
        recordings.started(5, asks: false)
        #expect(recordings.capture == RoomCapture(isRunning: true))
    }
}
