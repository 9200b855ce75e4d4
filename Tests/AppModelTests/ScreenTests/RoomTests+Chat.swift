import Foundation
import Testing
import enum Wire.Limits

@testable import AppModel
@testable import Confab

/// The chat of a room, with its files.
extension RoomTests {
    @Test func aMessageThatCouldNotBeSentCanBeSentAgain() throws {
        let model = model(.joined)
        model.draft = " Hello "
        model.send()
        guard case .say("Hello", let id) = requests.all.last else {
            Issue.record("no message")
            return
        }
        #expect(model.chat.isEmpty, "it is shown when the server has it")
        model.handle(.sent(id: id, false))
        Golden.expect(model, "Room", "message not sent")
        model.sendAgain(id)
        #expect(requests.all.last == .say("Hello", id: id) && model.chat.isEmpty)
        model.handle(.sent(id: id, true))
        model.handle(.said(RoomMessage("You", "Hello"), isOwn: true))
        #expect(model.chat.map(\.isSent) == [true])
        model.sendAgain(model.chat[0].id)
        #expect(requests.all.count == 3, "it was sent already")
    }
    @Test func aMessageFitsIntoWhatTheServerTakes() {
        let model = model(.joined)
        model.draft = String(repeating: "👩‍👩‍👧‍👦", count: 500)
        model.send()
        guard case .say(let text, _) = requests.all.last else {
            Issue.record("no message")
            return
        }
        #expect(text.utf8.count <= Limits.roomText && text.utf8.count > Limits.roomText - 25)
        #expect(Set(text) == ["👩‍👩‍👧‍👦"], "no character is cut")
    }
    @Test func aFileInTheChatIsDownloadedAndShared() {
        let message = RoomMessage("Ada", "photo.jpg", file: ("7", 2_449_999))
        let model = model(.joined, .said(message))
        #expect(device.announcer.texts.last == "Ada: file photo.jpg, 2.4 MB")
        Golden.expect(model, "Room", "file")
        model.download("7")
        model.download("7")
        #expect(requests.all.suffix(1) == [.download(message.file!)] && requests.all.count == 2, "once")
        model.handle(.file("7", .downloading(percent: 40)))
        Golden.expect(model, "Room", "file, downloading")
        let url = URL(filePath: "/tmp/photo.jpg")
        model.handle(.file("7", .saved(url)))
        model.handle(.file("7", .downloading(percent: 100)))
        #expect(model.chat[0].file?.savedFile == url, "a late report changes nothing")
        Golden.expect(model, "Room", "file, downloaded")
        model.handle(.fileRemoved("7"))
        #expect(model.chat.isEmpty)
    }
    @Test func whatWasWrittenBeforeJoiningIsReadButNotSpoken() {
        let model = model(.joined, .said(RoomMessage("Ada", "Welcome"), isNew: false))
        #expect(model.chat.map(\.text) == ["Welcome"])
        #expect(!device.announcer.texts.contains("Ada: Welcome"))
    }
    @Test func aFileThatCannotBeDownloadedSaysWhyAndCanBeTriedAgain() {
        let message = RoomMessage("Ada", "notes.txt", file: ("7", 1))
        let model = model(.joined, .said(message))
        model.download("7")
        model.handle(.file("7", .failed("This file is no longer available.")))
        #expect(device.announcer.texts.last == "This file is no longer available.")
        Golden.expect(model, "Room", "file, failed")
        model.download("7")
        #expect(requests.all.last == .download(message.file!))
    }
    @Test(arguments: [
        (0, "0 kB"), (1, "1 kB"), (1000, "1 kB"), (1001, "2 kB"), (999_999, "1000 kB"), (1_000_000, "1.0 MB"),
        (20_971_520, "21.0 MB"), (1_949_999, "1.9 MB"), (Int.max, "9223372036854.8 MB"), (-1, "0 kB"),
    ])
    func sizesOfFilesAreThoseOfTheWebPage(size: Int, text: String) {
        #expect(ChatFile(SharedFile("7", size: size)).sizeText == text)
    }
    @Test func theNameIsThatOfThePersonUntilAnotherOneIsTyped() {
        let model = model()
        model.suggest(name: "Ada")
        #expect(model.yourName == "Ada")
        model.suggest(name: "Ada L.")
        #expect(model.yourName == "Ada L.")
        model.yourName = "Doctor"
        model.suggest(name: "Ada")
        #expect(model.yourName == "Doctor")
    }
}
