import Signaling
import TestSupport
import Testing
import Wire

/// Files in the chat of a room.
@Suite struct RoomFileTests: InStandUp {
    let room: StandUp

    init() throws { room = try StandUp() }

    private func announce(_ guest: Guest, name: String = "plan.pdf", size: Int = 5) -> ServerMessage? {
        guest.ask(.room(.file(.init(name: name, size: size))))
    }

    private func upload(_ guest: Guest) throws -> RoomNotice.Upload {
        guard case .room(.upload(let upload)) = announce(guest) else { throw NoUpload() }
        return upload
    }

    private struct NoUpload: Error {}

    @discardableResult private func ask(_ id: RoomFileID, _ action: RoomFileAction) -> RoomReply? {
        stage.operate(.file(.standUp, id, action))
    }

    /// Sends a file, and returns its id.
    private func send(_ guest: Guest) throws -> RoomFileID {
        let upload = try upload(guest)
        _ = ask(upload.id, .begin(upload.secret))
        _ = ask(upload.id, .end(upload.secret, isComplete: true))
        return upload.id
    }

    private let noKey = RoomFileKey(high: 1, low: 1)

    @Test func everyoneGetsALineWhenTheFileHasArrived() throws {
        let upload = try upload(bob)
        #expect(ada.takeRooms() == [], "nothing has arrived yet")
        #expect(ask(upload.id, .begin(upload.secret)) != nil)
        _ = ask(upload.id, .end(upload.secret, isComplete: true))
        let line = RoomLine(
            connection: bob.connection, displayName: "Bob", text: "plan.pdf", at: stage.now,
            file: RoomFile(id: upload.id, size: 5))
        #expect(ada.takeRooms() == [.said(line)])
    }

    @Test func onlyAMemberDownloadsAndOnlyWhileInTheRoom() throws {
        let id = try send(bob)
        let eve = stage.arrive()
        let key = try #require(eve.open()?.room?.joined?.files?.key)
        #expect(ask(id, .download(key))?.errorCode == nil)
        #expect(ask(id, .download(noKey))?.errorCode == .notFound)
        #expect(ada.remove(eve)?.type == "ok")
        #expect(ask(id, .download(key))?.errorCode == .notFound)
    }

    @Test func anUploadWorksOnceAndOnlyWithItsSecret() throws {
        let upload = try upload(bob)
        #expect(ask(upload.id, .begin(noKey))?.errorCode == .notFound)
        #expect(ask(upload.id, .begin(upload.secret))?.errorCode == nil)
        #expect(ask(upload.id, .begin(upload.secret))?.errorCode == .notFound)
    }

    /// The room may have deleted the file before the disk had it, and has given its space to others.
    @Test func anUploadThatHasBegunCanBeChecked() throws {
        let upload = try upload(bob)
        #expect(ask(upload.id, .check(upload.secret))?.errorCode == .notFound, "it has not begun")
        let begun = ask(upload.id, .begin(upload.secret))
        #expect(ask(upload.id, .check(upload.secret)) == begun)
        #expect(ask(upload.id, .check(noKey))?.errorCode == .notFound)
        #expect(bob.leaveRoom()?.type == "ok")
        #expect(ask(upload.id, .check(upload.secret))?.errorCode == .notFound)
    }

    @Test func anUploadThatDoesNotBeginIsGivenUp() throws {
        let upload = try upload(bob)
        stage.pass(.seconds(31))
        #expect(ask(upload.id, .begin(upload.secret))?.errorCode == .notFound)
    }

    @Test func aPersonHasFewUploadsAtATime() throws {
        for _ in 0..<3 { _ = try upload(bob) }
        #expect(announce(bob)?.errorCode == .rateLimited)
    }

    @Test func namesAndSizesAreChecked() {
        let names = ["", ".", "..", ".profile", "a/b", "a\\b", "a\u{0}", "a\nb", "a\u{202E}fdp.exe", "a\"b"]
        for name in names {
            #expect(announce(bob, name: name)?.errorCode == .invalidName, "\(name.debugDescription)")
            stage.pass(.seconds(1))
        }
        #expect(announce(bob, size: 20 * 1024 * 1024 + 1)?.errorCode == .messageTooLarge)
    }

    @Test func whoSentAFileAndHostsRemoveIt() throws {
        let first = try send(bob)
        #expect(eve.ask(.room(.removeFile(.init(id: first))))?.errorCode == .notPermitted)
        #expect(bob.ask(.room(.removeFile(.init(id: first))))?.type == "ok")
        let second = try send(bob)
        #expect(ada.ask(.room(.removeFile(.init(id: second))))?.type == "ok")
        #expect(stage.arrive().open()?.room?.joined?.chat == [])
    }

    @Test func aFileIsDeletedAfterItsLifetime() throws {
        let id = try send(bob)
        let key = try #require(stage.arrive().open()?.room?.joined?.files?.key)
        stage.pass(.seconds(86_399))
        #expect(ask(id, .download(key))?.errorCode == nil)
        _ = ada.takeRooms()
        stage.pass(.seconds(1))
        #expect(ada.takeRooms() == [.fileRemoved(.init(id: id))])
        #expect(ask(id, .download(key))?.errorCode == .notFound)
    }

    @Test func whoHasNoKeyDoesNotLearnWhetherARoomExists() throws {
        let id = try send(bob)
        let nowhere = try #require(RoomName("nowhere"))
        let actions = [RoomFileAction.begin(noKey), .check(noKey), .end(noKey, isComplete: true), .download(noKey)]
        for action in actions {
            #expect(stage.operate(.file(nowhere, id, action)) == ask(id, action))
        }
    }

    @Test func anUploadEndsWithItsSendersPlace() throws {
        let upload = try upload(bob)
        _ = ask(upload.id, .begin(upload.secret))
        #expect(ada.remove(bob)?.type == "ok")
        #expect(ask(upload.id, .end(upload.secret, isComplete: true))?.errorCode == .notFound)
    }
}
