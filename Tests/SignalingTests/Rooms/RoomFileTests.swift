import Signaling
import TestSupport
import Testing
import Wire

extension InStandUp {
    fileprivate func announce(_ guest: Guest, name: String = "plan.pdf", size: Int = 5) -> ServerMessage? {
        guest.ask(.room(.file(.init(name: name, size: size))))
    }

    fileprivate func upload(_ guest: Guest) throws -> RoomNotice.Upload {
        guard case .room(.upload(let upload)) = announce(guest) else { throw NoUpload() }
        return upload
    }

    @discardableResult fileprivate func ask(_ id: RoomFileID, _ action: RoomFileAction) -> OperatorReply? {
        stage.operate(.file(.standUp, id, action))
    }

    /// Sends a file, and returns its id.
    fileprivate func send(_ guest: Guest) throws -> RoomFileID {
        let upload = try upload(guest)
        _ = ask(upload.id, .begin(upload.secret))
        _ = ask(upload.id, .end(upload.secret, isComplete: true))
        return upload.id
    }
}

private struct NoUpload: Error {}

/// Files in the chat of a room.
@Suite struct RoomFileTests: InStandUp {
    let room: StandUp

    init() throws { room = try StandUp() }

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
        let tab = stage.arrive(bob.identity, address: "tab")
        tab.open(as: "Bob")
        #expect(announce(tab)?.errorCode == .rateLimited, "it is the same person")
        tab.leaveRoom()
        tab.open(RoomName("Tea"), as: "Bob")
        #expect(announce(tab)?.errorCode == .rateLimited, "also in another room")
        #expect(announce(eve)?.room != nil)
        bob.leaveRoom()
        #expect(announce(tab)?.room != nil)
    }

    /// A slow one holds its space while nothing is stored.
    @Test func anUploadHasTimeByItsSize() throws {
        let upload = try upload(bob)
        ask(upload.id, .begin(upload.secret))
        stage.pass(.seconds(31))
        #expect(ask(upload.id, .check(upload.secret))?.errorCode == .notFound)
        guard case .room(.upload(let large))? = announce(bob, size: 1024 * 1024) else { throw NoUpload() }
        ask(large.id, .begin(large.secret))
        stage.pass(.seconds(61))
        #expect(ask(large.id, .check(large.secret))?.errorCode == nil, "30 s, and 32 s at 32 KiB/s")
        stage.pass(.seconds(2))
        #expect(ask(large.id, .check(large.secret))?.errorCode == .notFound)
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

    @Test func nobodyDeletesFilesByWritingLongMessages() throws {
        let id = try send(ada)
        for _ in 0..<6 { #expect(bob.write(String(repeating: "x", count: 4096))?.type == "ok") }
        let chat = try #require(stage.arrive().open()?.room?.joined).chat
        #expect(chat.map(\.file?.id) == [id, nil, nil, nil, nil])
    }

    /// Otherwise it would take space of the room, although who comes later could neither see nor remove it.
    @Test func aFileIsDeletedWhenItsLineLeavesTheChat() throws {
        let id = try send(bob)
        for number in 1..<100 {
            ada.write("\(number)")
            stage.pass(.seconds(1))
        }
        #expect(eve.takeRooms().count == 100, "a file and 99 messages")
        ada.write("100")
        let heard = eve.takeRooms()
        #expect(heard.first?.said?.text == "100")
        #expect(heard.dropFirst() == [.fileRemoved(.init(id: id))])
        #expect(stage.effects.contains(.deleteFile(id)))
        #expect(stage.hub.roomFileSpace.all.bytes == 0)
        #expect(bob.ask(.room(.removeFile(.init(id: id))))?.errorCode == .notFound)
        #expect(stage.arrive().open()?.room?.joined?.chat.count == 100)
    }

    @Test func aServerThatKeepsNoLinesTakesNoFiles() throws {
        let room = try StandUp(Stage { ($0.routesMedia, $0.roomChatLines) = (true, 0) })
        #expect(room.joined[room.bob]?.files == nil)
        #expect(announce(room.bob)?.errorCode == .notPermitted)
    }
}

/// The space that files take, and how much of it an address gets.
@Suite struct RoomFileSpaceTests: InStandUp {
    private static let block = 4096
    let room: StandUp

    init() throws {
        room = try StandUp(
            Stage {
                $0.routesMedia = true
                ($0.fileBytesPerAddress, $0.fileBytes) = (2 * Self.block, 4 * Self.block)
            })
    }

    private var space: RoomFileSpace { stage.hub.roomFileSpace }

    /// Otherwise a few promises would reserve the space of everyone, without a byte being sent.
    @Test func anAddressReservesOnlyItsShareInAllRooms() throws {
        _ = try upload(bob)
        _ = try send(bob)
        #expect(announce(bob)?.errorCode == .storageQuota)
        let neighbor = stage.arrive(address: "b")
        neighbor.open(RoomName("Tea"), as: "Neighbor")
        #expect(announce(neighbor)?.errorCode == .storageQuota)
        _ = try upload(ada)
    }

    /// Otherwise the space would hold any number of small files, each of which takes a block of the disk.
    @Test func aSmallFileTakesABlock() throws {
        _ = announce(bob, size: 1)
        #expect(space.all.bytes == Self.block)
        _ = announce(ada, size: Self.block)
        #expect(space.all.bytes == 2 * Self.block)
        _ = announce(eve, size: Self.block + 1)
        #expect(space.all.bytes == 4 * Self.block)
        #expect(announce(bob, size: 1)?.errorCode == .storageFull, "bob has a share left, but the server has no space")
        #expect(space.addresses.mapValues(\.bytes) == ["a": Self.block, "b": Self.block, "e": 2 * Self.block])
    }

    /// A promise costs nothing. Eight addresses could hold the space of all rooms with promises that they renew.
    @Test func fewAddressesCannotHoldAllSpaceWithUnfinishedUploads() throws {
        let block = Self.block
        let room = try StandUp(
            Stage {
                $0.routesMedia = true
                ($0.unfinishedFileBytes, $0.unfinishedFileBytesPerAddress) = (4 * block, 2 * block)
                ($0.roomUploads, $0.roomTalk) = (100, .init(perSecond: 100, burst: 100))
            })
        let accepted = (0..<5).count { _ in room.bob.ask(.room(.file(.init(name: "x", size: block))))?.room != nil }
        #expect(accepted == 2)
        let first = room.ada.ask(.room(.file(.init(name: "x", size: 3 * block))))
        #expect(first?.errorCode == .rateLimited, "all addresses together have four blocks")
        guard case .room(.upload(let upload))? = room.ada.ask(.room(.file(.init(name: "x", size: 2 * block)))) else {
            throw NoUpload()
        }
        #expect(room.eve.ask(.room(.file(.init(name: "x", size: 1))))?.errorCode == .rateLimited)
        for action: RoomFileAction in [.begin(upload.secret), .end(upload.secret, isComplete: true)] {
            _ = room.stage.operate(.file(.standUp, upload.id, action))
        }
        #expect(room.eve.ask(.room(.file(.init(name: "x", size: 1))))?.room != nil, "a stored file is finished")
    }

    @Test func theShareComesBackWhenAFileOrAPromiseEnds() throws {
        func expectNone(_ way: String) {
            #expect(space == RoomFileSpace(), "\(way): \(space)")
        }
        _ = try upload(bob)
        stage.pass(.seconds(31))
        expectNone("a promise that was not used")
        let broken = try upload(bob)
        ask(broken.id, .begin(broken.secret))
        ask(broken.id, .end(broken.secret, isComplete: false))
        expectNone("an upload that failed")
        let sent = try send(bob)
        for _ in 0..<2 { _ = ada.ask(.room(.removeFile(.init(id: sent)))) }
        expectNone("a file that was removed")
        _ = try send(bob)
        stage.pass(.seconds(86_400))
        expectNone("an old file")
        _ = try upload(eve)
        eve.leaveRoom()
        expectNone("an upload of a person who left")
        _ = try send(bob)
        stage.handle(.closeRoom(.standUp))
        expectNone("a file of a room that ended")
    }
}
