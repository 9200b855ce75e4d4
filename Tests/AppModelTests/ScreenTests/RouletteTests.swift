import Foundation
import Testing

@testable import AppModel

@Suite @MainActor struct RouletteTests {
    private let clock = FakeClock()
    private final class Requests { var all: [RouletteRequest] = [] }
    private let requests = Requests()

    private func model(_ events: RouletteEvent..., mode: RouletteMode = .video) -> RouletteModel {
        let model = RouletteModel(clock: clock) { [requests] in requests.all.append($0) }
        model.mode = mode
        model.handle(.preview(FakeVideo()))
        if !events.isEmpty { model.start() }
        for event in events { model.handle(event) }
        return model
    }

    private let matched = RouletteEvent.matched(name: "Ada", interests: ["chess"], hasChat: true)

    @Test func idle() {
        let model = RouletteModel(clock: clock) { _ in }
        model.handle(.online(3))
        Golden.expect(model, "Roulette", "idle")
    }
    @Test func preview() { Golden.expect(model(), "Roulette", "preview") }
    @Test func notConnected() {
        let model = model()
        model.connection(isUp: false)
        Golden.expect(model, "Roulette", "not connected")
    }
    @Test func waiting() { Golden.expect(model(.waiting(pause: nil)), "Roulette", "waiting") }
    @Test func waitingAfterSeveralSkips() {
        let model = model(.waiting(pause: .seconds(5)))
        clock.pass(2)
        Golden.expect(model, "Roulette", "waiting with a pause")
        clock.pass(3)
        #expect(model.statusText == "Looking for someone to talk to…")
    }
    @Test func matchedWithoutPicture() { Golden.expect(model(matched), "Roulette", "matched without picture") }
    @Test func talking() {
        let model = model(matched, .video(FakeVideo()), .firstFrame, .message("Hello"))
        model.draft = "Hi Ada "
        model.send()
        Golden.expect(model, "Roulette", "talking")
        #expect(requests.all.contains(.say("Hi Ada")))
    }
    @Test func textChat() { Golden.expect(model(matched, mode: .text), "Roulette", "text chat") }
    @Test func partnerIsTyping() { Golden.expect(model(matched, .typing(true)), "Roulette", "partner typing") }
    @Test func partnerWithoutChat() {
        Golden.expect(
            model(.matched(name: "", interests: [], hasChat: false), .video(FakeVideo()), .firstFrame), "Roulette",
            "partner without text chat")
    }
    @Test func partnerReconnecting() {
        let model = model(matched, .video(FakeVideo()), .firstFrame, .partner(isAway: true))
        Golden.expect(model, "Roulette", "partner reconnecting")
        model.handle(.partner(isAway: false))
        #expect(model.status == .talking)
    }
    @Test func noStream() { Golden.expect(model(matched, .noStream), "Roulette", "no stream") }
    @Test(arguments: [
        (RouletteEnding.partnerLeft, "partner left"), (.partnerNext, "partner moved on"),
        (.connectionLost, "connection lost"), (.operators, "ended by the operators"),
    ])
    func ended(ending: RouletteEnding, state: String) {
        Golden.expect(model(matched, .ended(ending)), "Roulette", "ended, \(state)")
    }
    @Test func stoppedByTheServer() {
        let trouble = CallTrouble(code: "elsewhere", message: "You are already chatting in another tab.")
        Golden.expect(model(.stopped(trouble)), "Roulette", "stopped by the server")
    }
    @Test func mutedWithoutCamera() {
        let model = model(matched, .video(FakeVideo()), .firstFrame)
        model.toggleMute()
        model.toggleCamera()
        #expect(requests.all.suffix(2) == [.mute(true), .camera(false)])
        Golden.expect(model, "Roulette", "muted, camera off")
    }
    @Test func keepInTouch() {
        let model = model(matched, .keepAsked)
        Golden.expect(model, "Roulette", "partner wants to keep in touch")
        model.keep()
        Golden.expect(model, "Roulette", "keep in touch, told")
        model.handle(.keepAgreed)
        Golden.expect(model, "Roulette", "keep in touch, agreed")
    }

    @Test func nextLeavesThePartnerAtOnce() {
        let model = model(matched, .video(FakeVideo()), .firstFrame)
        model.next()
        #expect(requests.all.last == .next)
        #expect(model.partner == nil)
        #expect(model.statusText == "Looking for someone else…")
        model.next()
        #expect(requests.all.filter { $0 == .next }.count == 1, "there is nobody to leave")
    }
    @Test func blockingLeavesThePartner() {
        let model = model(matched)
        model.block()
        #expect(requests.all.last == .block(match: nil))
        #expect(!model.canBlock)
        #expect(!model.isInChat)
    }
    @Test func aReportIsSentWithTheBlock() {
        let model = model(matched, .message("Buy this"))
        model.openReport()
        model.report?.reason = .spam
        model.report?.submit()
        #expect(requests.all.suffix(2) == [.report(.spam, match: nil), .block(match: nil)])
        model.handle(.reported(nil))
        #expect(model.report?.status == .sent)
    }
    @Test func lateNewsOfAFormerPartnerChangesNothing() {
        let model = model(matched)
        model.stop()
        for event in [matched, .firstFrame, .message("late"), .typing(true), .noStream, .ended(.partnerLeft)] {
            model.handle(event)
        }
        #expect(model.isIdle)
        #expect(model.chat.isEmpty)
        #expect(!model.isPartnerTyping)
    }
    @Test func aReportIsAboutThePartnerWithWhomItWasOpened() {
        let first = RouletteEvent.matched(name: "Ada", interests: [], hasChat: true, match: "first")
        let second = RouletteEvent.matched(name: "Bob", interests: [], hasChat: true, match: "second")
        let model = model(first)
        model.openReport()
        for event in [.ended(.partnerLeft), second] { model.handle(event) }
        model.report?.reason = .sexual
        model.report?.submit()
        #expect(requests.all.suffix(2) == [.report(.sexual, match: "first"), .block(match: "first")])
        #expect(model.isInChat, "the chat with Bob goes on")
    }
    @Test func thePartnerCanBeReportedAfterStop() {
        let model = model(matched)
        model.stop()
        #expect(model.canReport)
        model.start()
        #expect(!model.canReport, "there is no partner yet")
    }
    @Test func aLateConfirmationOfAStopDoesNotEndTheNextSearch() {
        let model = model(matched)
        model.stop()
        model.start()
        model.handle(.stopped(nil))
        #expect(!model.isIdle)
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
        for number in 0..<500 { model.handle(.message("\(number)")) }
        #expect(model.chat.count == RouletteModel.maxLines)
        #expect(model.chat.last?.text == "499")
    }
    @Test func typingIsToldOnce() {
        let model = model(matched)
        for text in ["H", "He", ""] { model.draft = text }
        #expect(requests.all.suffix(2) == [.typing(true), .typing(false)])
    }
}
