import Foundation
import Testing

@testable import AppModel
@testable import Confab

@Suite @MainActor struct RouletteTests {
    private let clock = FakeClock()
    private let permissions = FakePermissions()
    private final class Requests { var all: [RouletteRequest] = [] }
    private let requests = Requests()

    init() { permissions.statuses = [.camera: .allowed, .microphone: .allowed] }

    private func model(_ events: RouletteEvent..., mode: Roulette.Mode = .video) -> RouletteModel {
        let model = RouletteModel(clock: clock, permissions: permissions) { [requests] in requests.all.append($0) }
        model.mode = mode
        if mode == .video { model.handle(.preview(FakeVideo())) }
        if !events.isEmpty { model.start() }
        for event in events { model.handle(event) }
        return model
    }

    private let matched = RouletteEvent.happened(.matched(name: "Ada", interests: ["chess"], hasChat: true))

    @Test func idle() {
        let model = RouletteModel(clock: clock, permissions: permissions) { _ in }
        model.handle(.online(3))
        Golden.expect(model, "Roulette", "idle")
    }
    @Test func preview() { Golden.expect(model(), "Roulette", "preview") }
    @Test func notConnected() {
        let model = model()
        model.connection(isUp: false)
        Golden.expect(model, "Roulette", "not connected")
    }
    @Test func waiting() { Golden.expect(model(.happened(.waiting(retryAfter: nil))), "Roulette", "waiting") }
    @Test func waitingAfterSeveralSkips() {
        let model = model(.happened(.waiting(retryAfter: .seconds(5))))
        clock.pass(2)
        Golden.expect(model, "Roulette", "waiting with a pause")
        clock.pass(3)
        #expect(model.statusText == "Looking for someone to talk to…")
    }
    @Test func matchedWithoutPicture() { Golden.expect(model(matched), "Roulette", "matched without picture") }
    @Test func talking() {
        let model = model(matched, .happened(.video(FakeVideo())), .firstFrame, .happened(.message("Hello")))
        model.draft = "Hi Ada "
        model.send()
        Golden.expect(model, "Roulette", "talking")
        #expect(requests.all.contains(.say("Hi Ada", id: 2)))
    }
    @Test func textChat() { Golden.expect(model(matched, mode: .text), "Roulette", "text chat") }
    @Test func partnerIsTyping() {
        Golden.expect(model(matched, .happened(.typing(true))), "Roulette", "partner typing")
    }
    @Test func partnerWithoutChat() {
        Golden.expect(
            model(
                .happened(.matched(name: "", interests: [], hasChat: false)), .happened(.video(FakeVideo())),
                .firstFrame), "Roulette",
            "partner without text chat")
    }
    @Test func partnerReconnecting() {
        let model = model(matched, .happened(.video(FakeVideo())), .firstFrame, .happened(.partner(isConnected: false)))
        Golden.expect(model, "Roulette", "partner reconnecting")
        model.handle(.happened(.partner(isConnected: true)))
        #expect(model.status == .talking)
    }
    @Test func aVideoThatMustBeBlurredIsHiddenAndTheStatusSaysWhy() {
        let model = model(matched, .happened(.video(FakeVideo())), .firstFrame, .happened(.partnerBlurred(true)))
        #expect(model.partner == nil)
        #expect(model.statusText == "This video is hidden because it may break the rules.")
        // A source that arrives meanwhile is hidden too.
        model.handle(.happened(.video(FakeVideo())))
        #expect(model.partner == nil)
        model.handle(.happened(.partnerBlurred(false)))
        #expect(model.partner != nil)
        #expect(model.statusText == "You are talking with \(isolated("Ada")). Have fun!")
        model.handle(.happened(.partnerBlurred(true)))
        model.handle(.happened(.ended(.partnerLeft)))
        #expect(!model.isPartnerBlurred)
    }
    @Test func noStream() { Golden.expect(model(matched, .happened(.noStream)), "Roulette", "no stream") }
    @Test(arguments: [
        (MatchEnding.partnerLeft, "ended, partner left"), (.partnerNext, "ended, partner moved on"),
        (.connectionLost, "ended, connection lost"), (.banned, "ended, ended by the operators"),
    ])
    func ended(ending: MatchEnding, state: String) {
        Golden.expect(model(matched, .happened(.ended(ending))), "Roulette", state)
    }
    @Test func stoppedByTheServer() {
        let trouble = ConfabError("elsewhere", "You are already chatting in another tab.")
        Golden.expect(model(.stopped(trouble)), "Roulette", "stopped by the server")
    }
    @Test func mutedWithoutCamera() {
        let model = model(matched, .happened(.video(FakeVideo())), .firstFrame)
        model.toggleMute()
        model.toggleCamera()
        #expect(requests.all.suffix(2) == [.mute(true), .camera(false)])
        Golden.expect(model, "Roulette", "muted, camera off")
    }
    @Test func keepInTouch() {
        let model = model(matched, .happened(.contactAsked))
        Golden.expect(model, "Roulette", "partner wants to keep in touch")
        model.keep()
        Golden.expect(model, "Roulette", "keep in touch, sent")
        model.handle(.added(CallScript.ada, .match("match")))
        Golden.expect(model, "Roulette", "keep in touch, agreed")
    }

    @Test func nextLeavesThePartnerAtOnce() {
        let model = model(matched, .happened(.video(FakeVideo())), .firstFrame)
        model.next()
        #expect(requests.all.last == .next)
        #expect(model.partner == nil && !model.lacksPicture, "there is nobody")
        #expect(model.statusText == "Looking for someone else…")
        model.next()
        #expect(requests.all.filter { $0 == .next }.count == 1, "there is nobody to leave")
    }
    @Test func blockingLeavesThePartner() {
        let model = model(matched)
        model.block()
        #expect(requests.all.last == .block(match: "match"))
        #expect(!model.canBlock)
        #expect(!model.isInChat)
    }
    @Test func aReportIsSentWithTheBlock() {
        let model = model(matched, .happened(.message("Buy this")))
        model.openReport()
        model.report?.reason = .spam
        model.report?.submit()
        #expect(requests.all.suffix(2) == [.report(.spam, match: "match"), .block(match: "match")])
        model.handle(.reported(nil))
        #expect(model.report?.status == .sent)
    }
    @Test func lateNewsOfAFormerPartnerChangesNothing() {
        let model = model(matched)
        model.stop()
        for event in [
            matched, .firstFrame, .happened(.message("late")), .happened(.typing(true)), .happened(.noStream),
            .happened(.ended(.partnerLeft)),
        ] {
            model.handle(event)
        }
        #expect(model.isIdle)
        #expect(model.chat.isEmpty)
        #expect(!model.isPartnerTyping)
    }
    @Test func aReportIsAboutThePartnerWithWhomItWasOpened() {
        let first = RouletteEvent.happened(.matched(name: "Ada", interests: [], hasChat: true, match: "first"))
        let second = RouletteEvent.happened(.matched(name: "Bob", interests: [], hasChat: true, match: "second"))
        let model = model(first)
        model.openReport()
        for event in [.happened(.ended(.partnerLeft)), second] { model.handle(event) }
        model.report?.reason = .sexual
        model.report?.submit()
        #expect(requests.all.suffix(2) == [.report(.sexual, match: "first"), .block(match: "first")])
        #expect(model.isInChat, "the chat with Bob continues")
    }
    @Test func thePartnerCanBeReportedAfterStop() {
        let model = model(matched)
        model.stop()
        #expect(model.canReport)
        model.start()
        #expect(!model.canReport, "there is no partner yet")
    }
    @Test func mediaThatIsOpenedAgainStaysMuted() {
        let model = model(matched)
        model.toggleMute()
        model.toggleCamera()
        model.stop()
        requests.all = []
        model.handle(.preview(FakeVideo()))
        #expect(requests.all == [.mute(true), .camera(false)])
    }
    @Test func aFrozenPictureIsNotSentFromTheBackground() {
        let model = model(matched)
        model.showsCamera(false)
        model.showsCamera(true)
        #expect(requests.all.suffix(2) == [.camera(false), .camera(true)])
        model.toggleCamera()
        model.showsCamera(false)
        #expect(requests.all.suffix(2) == [.camera(true), .camera(false)], "it is off already")
        model.toggleCamera()
        model.showsCamera(false)
        model.stop()
        model.showsCamera(true)
        #expect(requests.all.last == .camera(true), "the next chat begins with the camera")
    }
    @Test func theChatDoesNotGrowWithoutBound() {
        let model = model(matched)
        for number in 0..<500 { model.handle(.happened(.message("\(number)"))) }
        #expect(model.chat.count == RouletteModel.maxLines)
        #expect(model.chat.last?.text == "499")
    }
    @Test func typingIsReportedOnce() {
        let model = model(matched)
        for text in ["H", "He", ""] { model.draft = text }
        #expect(requests.all.suffix(2) == [.typing(true), .typing(false)])
    }

    // MARK: Devices

    @Test func aTextChatClosesThePreview() {
        let model = model()
        model.mode = .text
        #expect(requests.all.last == .closePreview)
        model.handle(.released)
        #expect(model.own == nil && !model.asksForDevices)
        #expect(model.statusText == "Ready when you are.")
        model.mode = .video
        #expect(model.asksForDevices)
    }
    @Test func afterTheSearchThePreviewIsClosed() {
        let model = model(.happened(.waiting(retryAfter: nil)))
        model.stop()
        model.handle(.released)
        #expect(model.own == nil && model.asksForDevices, "it would be a frozen picture")
    }
    @Test func withoutTheCameraOneTalksByVoice() {
        permissions.statuses[.camera] = .refused
        let model = RouletteModel(clock: clock, permissions: permissions) { [requests] in requests.all.append($0) }
        model.preview()
        #expect(!model.showsPreview)
        model.handle(.preview(nil))
        #expect(!model.asksForDevices && !model.showsPreview)
        model.start()
        #expect(
            requests.all == [.preview(video: false), .mute(false), .start(.video, interests: [], video: false)])
        model.toggleCamera()
        model.toggleCamera()
        Golden.expect(model, "Roulette", "waiting, no camera")
    }
    @Test func theSystemAsksBeforeTheSearchBegins() {
        permissions.statuses = [:]
        let model = RouletteModel(clock: clock, permissions: permissions) { [requests] in requests.all.append($0) }
        model.start()
        #expect(requests.all.isEmpty)
        permissions.answer(.allowed)
        model.stop()
        permissions.answer(.allowed)
        #expect(requests.all == [.stop], "the person has stopped meanwhile")
    }
    @Test func thePartnerDoesNotSeeACameraThatTheSystemTookAway() {
        let model = model(matched)
        model.handle(.cameraInterrupted(true))
        #expect(requests.all.last == .camera(false) && model.ownPicture == "camera paused")
        model.handle(.cameraInterrupted(false))
        #expect(requests.all.last == .camera(true) && model.ownPicture == "your video")
        model.handle(.cameraFaces(.back))
        #expect(!model.camera.isMirrored)
    }
    @Test func aCameraThatCannotBeOpenedIsOffAndSaysWhy() {
        let model = model(matched)
        model.handle(.cameraFailed(ConfabError("media_failed", "The camera could not be started.")))
        #expect(model.isCameraOff && model.noticeText == "The camera could not be started.")
    }

    // MARK: The partner

    @Test func aPartnerWhoTurnsTheVideoOffHasNoPicture() {
        let model = model(matched, .happened(.video(FakeVideo())), .firstFrame)
        model.handle(.happened(.audioOnly))
        #expect(model.partner == nil && model.lacksPicture, "the last frame would stay")
        Golden.expect(model, "Roulette", "talking, no video")
        model.handle(.happened(.partner(isConnected: false)))
        model.handle(.happened(.partner(isConnected: true)))
        #expect(model.status == .talking)
    }
    @Test func aMessageThatCouldNotBeSentCanBeSentAgain() {
        let model = model(matched)
        model.draft = "Hello"
        model.send()
        guard case .say("Hello", let id) = requests.all.last else {
            Issue.record("no message")
            return
        }
        model.handle(.sent(id: id, false))
        Golden.expect(model, "Roulette", "message not sent")
        model.sendAgain(id)
        #expect(requests.all.last == .say("Hello", id: id) && model.chat[0].isSent)
        let count = requests.all.count
        model.sendAgain(id)
        #expect(requests.all.count == count, "it is on its way")
    }
    @Test func aWishToKeepInTouchThatFailedCanBeRepeated() {
        let model = model(matched)
        model.keep()
        model.handle(
            .keepFailed(ConfabError("not_permitted", "You have 500 contacts. Remove one first.")))
        #expect(model.canKeep && model.noticeText == "You have 500 contacts. Remove one first.")
    }
    @Test func aChatThatThisPersonEndedElsewhereIsOver() {
        let model = model(matched, .happened(.ended(.stopped)))
        #expect(model.isIdle && model.statusText == "The chat ended because you continued elsewhere.")
    }
    @Test func aSearchThatEndedUnseenSaysWhy() {
        let model = model(.happened(.waiting(retryAfter: nil)))
        model.stopUnseen()
        #expect(model.isIdle && model.statusText == "The search ended because you left the app.")
    }
    @Test func theNumberOfPeopleIsAskedForWhileTheScreenIsShown() {
        let model = model()
        model.appear()
        model.connection(isUp: false)
        model.connection(isUp: true)
        #expect(requests.all.filter { $0 == .count }.count == 2)
        model.disappear()
        model.connection(isUp: false)
        model.connection(isUp: true)
        #expect(requests.all.filter { $0 == .count }.count == 2)
    }

    @Test func belowTheMessagesIsOnlyWhatThereIsToRead() {
        let model = model(matched)
        #expect(!model.notes.contains(""))
        model.handle(.happened(.typing(true)))
        #expect(model.notes.last == model.typingText && !model.notes.contains(""))
    }
}
