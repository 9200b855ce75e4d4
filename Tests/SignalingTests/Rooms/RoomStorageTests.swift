import Signaling
import TestSupport
import Testing
import Wire

/// Persistent rooms: what is stored, and what a restart brings back.
@Suite struct RoomStorageTests {
    private let stage = Stage { $0.routesMedia = true }
    private let ada: Guest
    private let bob: Guest

    init() { (ada, bob) = (stage.arrive(address: "a"), stage.arrive(address: "b")) }

    private static let persistent = RoomChanges { $0.persistent = true }

    private var stored: StoredRoom? { stage.archive.rooms.values.first }

    private func arrive(as guest: Guest) -> Guest { stage.arrive(guest.identity, address: guest.address) }

    @Test func onlyPersistentRoomsAreStored() {
        bob.open(RoomName("other"))
        #expect(stage.changes == [])
        ada.open(with: Self.persistent)
        #expect(stored?.name == .standUp)
        #expect(stored?.creator == ada.identity)
        #expect(stored?.options.persistent == true)
    }

    /// The answer must not say that something is done before it is stored.
    @Test func whatIsStoredComesBeforeTheAnswer() throws {
        ada.open(with: Self.persistent)
        func isStoredFirst() throws -> Bool {
            let change = try #require(stage.effects.firstIndex { if case .persist = $0 { true } else { false } })
            let message = try #require(stage.effects.firstIndex { if case .transmit = $0 { true } else { false } })
            return change < message
        }
        #expect(try isStoredFirst())
        ada.set { $0.locked = true }
        #expect(try isStoredFirst())
    }

    @Test func aRestartBringsTheRoomBackAndItsCreatorIsHost() throws {
        ada.open(
            with: RoomChanges { ($0.persistent, $0.lobby, $0.capacity, $0.share) = (true, true, 7, .hosts) })
        stage.restart(after: .seconds(5))
        let waiting = arrive(as: bob)
        #expect(waiting.open(as: "Bob")?.type == "room.waiting", "the lobby holds while the room is empty")
        let host = arrive(as: ada)
        let joined = try #require(host.open()?.room?.joined)
        #expect(joined.role == .host)
        #expect(joined.options.capacity == 7 && joined.options.share == .hosts && joined.options.persistent)
        #expect(host.enter(joined)?.capabilities?.forceDisconnect == true)
        #expect(host.admit(waiting)?.type == "ok")
        #expect(arrive(as: ada).open(RoomName("Stand-Up"))?.room?.joined?.role == .host, "on another device too")
    }

    /// The page of a guest may be faster than that of the host.
    @Test func whoComesBackBeforeTheCreatorIsHostOnlyUntilThen() throws {
        ada.open(with: Self.persistent)
        bob.open(as: "Bob")
        stage.restart()
        let guest = arrive(as: bob)
        #expect(guest.open(as: "Bob")?.room?.joined?.role == .host, "a room needs a host")
        guest.take()
        let host = arrive(as: ada)
        #expect(host.open()?.room?.joined?.role == .host)
        let changed = guest.takeRooms().compactMap(\.person).first { $0.connection == guest.connection }
        #expect(changed?.role == .guest)
        #expect(guest.remove(host)?.errorCode == .notPermitted)
    }

    @Test func persistentRoomsLeaveRoomForOthers() {
        let stage = Stage { rules in
            rules.routesMedia = true
            (rules.maxRooms, rules.maxPersistentRooms, rules.persistentRoomsPerAddress) = (10, 3, 2)
        }
        func open(_ name: String, from address: String, persistent: Bool = true) -> ServerMessage? {
            stage.arrive(address: address).open(RoomName(name), with: RoomChanges { $0.persistent = persistent })
        }
        #expect(open("1", from: "a")?.room?.joined != nil)
        #expect(open("2", from: "a")?.room?.joined != nil)
        #expect(open("3", from: "a")?.errorCode == .rateLimited, "one address takes only some of them")
        #expect(open("3", from: "b")?.room?.joined != nil)
        #expect(open("4", from: "c")?.errorCode == .rateLimited)
        let host = stage.arrive(address: "d")
        #expect(host.open(RoomName("5"))?.room?.joined != nil, "rooms that end can still be opened")
        #expect(host.set { $0.persistent = true }?.errorCode == .rateLimited, "nor can such a room become persistent")
        stage.handle(.closeRoom(RoomName("3") ?? .unset))
        #expect(host.set { $0.persistent = true }?.type == "ok")
        #expect(host.set { $0.persistent = false }?.type == "ok")
        #expect(open("4", from: "c")?.room?.joined != nil, "the place is free again")
        stage.restart()
        #expect(open("6", from: "e")?.errorCode == .rateLimited, "rooms from before a restart count")
        var operators = RoomCreationRequest()
        operators.name = RoomName("7")
        guard case .room? = stage.operate(.create(operators)) else {
            Issue.record("operators are not limited by this")
            return
        }
    }

    @Test func persistentRoomsLeaveRoomForOthersAlsoIfOnlyTheNumberOfAllRoomsIsSet() {
        let stage = Stage { ($0.routesMedia, $0.maxRooms) = (true, 4) }
        let answers = (0..<4).map { number in
            let persistent = RoomChanges { $0.persistent = true }
            return stage.arrive(address: "\(number)").open(RoomName("\(number)"), with: persistent)?.errorCode
        }
        #expect(answers == [nil, nil, .rateLimited, .rateLimited])
        #expect(stage.arrive().open(RoomName("other"))?.room?.joined != nil)
    }

    @Test func thePasswordSurvivesAndIsNotStored() throws {
        ada.open(with: RoomChanges { ($0.persistent, $0.password) = (true, "open sesame") })
        let password = try #require(stored?.password)
        #expect(password.salt.count == 16 && password.digest.count == 32)
        #expect(!"\(stage.changes)".contains("sesame"))
        stage.restart()
        let guest = arrive(as: bob)
        #expect(guest.open(password: "open barley")?.errorCode == .roomPassword)
        #expect(guest.open(password: "open sesame")?.room?.joined?.role == .host, "the first person who comes")
        let host = arrive(as: ada)
        host.open()
        #expect(host.set { $0.password = "another" }?.type == "ok")
        #expect(stored?.password != password, "the room had a password before, too")
    }

    @Test func bansSurviveARestart() {
        ada.open(with: Self.persistent)
        bob.open()
        ada.remove(bob, ban: true)
        stage.restart()
        #expect(arrive(as: bob).open()?.errorCode == .roomBanned)
    }

    @Test func aCreatorWhoWasRemovedIsAGuestAfterARestart() {
        ada.open(with: Self.persistent)
        bob.open()
        ada.make(bob, .host)
        bob.remove(ada)
        #expect(stored?.creator == nil)
        stage.restart()
        arrive(as: bob).open()
        #expect(arrive(as: ada).open()?.room?.joined?.role == .guest)
    }

    @Test func becomingPersistentStoresWhatHappenedBefore() {
        ada.open()
        bob.open()
        ada.remove(bob, ban: true)
        #expect(stage.changes == [])
        ada.set { $0.persistent = true }
        #expect(stored?.bans == [bob.identity])
        ada.set { $0.persistent = false }
        #expect(stage.archive.rooms.isEmpty)
        stage.restart()
        #expect(stage.hub.roomCount == 0)
    }

    @Test func aRoomThatEndsIsDeleted() {
        ada.open(with: Self.persistent)
        stage.handle(.closeRoom(.standUp))
        #expect(stage.archive.rooms.isEmpty)
    }

    // MARK: Failures

    @Test func aRoomWhoseChangeWasNotStoredIsAsStorageHasIt() throws {
        ada.open(with: Self.persistent)
        bob.open(as: "Bob")
        let before = try #require(stored)
        ada.set { $0.locked = true }
        ada.remove(bob, ban: true)
        let other = stage.arrive(address: "o")
        other.open(RoomName("other"))
        stage.handle(.roomsNotStored([before.id], [before]))
        #expect(ada.closeCode == .serviceRestart, "her page reconnects and joins again")
        #expect(other.closeCode == nil)
        #expect(stage.hub.roomCount == 2)
        let guest = arrive(as: bob)
        #expect(guest.open(as: "Bob")?.room?.joined?.options.locked == false, "neither lock nor ban was stored")
        #expect(arrive(as: ada).open()?.room?.joined?.role == .host)
    }

    @Test func aRoomThatWasNeverStoredEndsIfItCannotBe() throws {
        ada.open(with: Self.persistent)
        let id = try #require(stored).id
        stage.handle(.roomsNotStored([id], []))
        #expect(stage.hub.roomCount == 0)
        #expect(arrive(as: bob).open(as: "Bob")?.room?.joined?.role == .host, "the name is free")
    }

    /// Otherwise they would be on the disk, and would use up the space of all rooms, until a restart.
    @Test func theFilesOfARoomThatIsLoadedAgainAreDeleted() throws {
        ada.open(with: Self.persistent)
        let before = try #require(stored)
        guard case .room(.upload(let upload))? = ada.ask(.room(.file(.init(name: "plan.pdf", size: 5)))) else {
            Issue.record("the upload was refused")
            return
        }
        #expect(stage.hub.roomFileSpace.all.bytes == 4096)
        stage.handle(.roomsNotStored([before.id], [before]))
        #expect(stage.effects.contains(.deleteFile(upload.id)))
        #expect(stage.hub.roomFileSpace.all.bytes == 0)
    }

    @Test func aRoomThatCouldNotBeDeletedExistsAgain() throws {
        ada.open(with: Self.persistent)
        let before = try #require(stored)
        stage.handle(.closeRoom(.standUp))
        #expect(stage.hub.roomCount == 0)
        stage.handle(.roomsNotStored([before.id], [before]))
        #expect(stage.hub.hasRoom(.standUp))
    }

    /// Otherwise the closed room, with its creator and its bans, would have the name again after a restart.
    @Test func aRoomThatCouldNotBeDeletedIsDeletedLaterIfAnotherOneHasItsName() throws {
        ada.open(with: Self.persistent)
        let closed = try #require(stored)
        stage.handle(.closeRoom(.standUp))
        stage.pass(.seconds(1))
        bob.open(RoomName("STAND-UP"), as: "Bob", with: Self.persistent)
        let new = try #require(stored)
        for _ in 0..<3 {
            stage.archive.apply(.roomStored(closed))
            stage.handle(.roomsNotStored([closed.id], [closed, new]))
            #expect(Set(stage.archive.rooms.keys) == [closed.id, new.id], "storage gets a pause")
            stage.pass(.seconds(10))
            #expect(Set(stage.archive.rooms.keys) == [new.id])
        }
        #expect(bob.closeCode == nil)
        stage.restart()
        #expect(arrive(as: bob).open(as: "Bob")?.room?.joined?.role == .host)
        #expect(arrive(as: ada).open()?.room?.joined?.role == .guest)
    }

    @Test func ofTwoStoredRoomsWithOneNameTheNewerComesBack() throws {
        ada.open(with: Self.persistent)
        let closed = try #require(stored)
        stage.handle(.closeRoom(.standUp))
        stage.pass(.seconds(1))
        bob.open(as: "Bob", with: Self.persistent)
        let new = try #require(stored)
        stage.archive.apply(.roomStored(closed))
        stage.restart()
        #expect(arrive(as: bob).open(as: "Bob")?.room?.joined?.role == .host)
        stage.pass(.seconds(10))
        #expect(Set(stage.archive.rooms.keys) == [new.id])
    }

    /// Storage clears the creator together with the person's data. The room in memory must not store the creator again.
    @Test func aRoomWhoseCreatorDeletesThemselvesContinuesWithoutACreator() throws {
        ada.open(with: RoomChanges { ($0.persistent, $0.lobby) = (true, true) })
        ada.ask(.presence(.delete))
        #expect(stored?.name == .standUp && stored?.creator == nil)
        let joined = try #require(bob.open(as: "Bob")?.room?.joined, "nobody could admit people from the lobby")
        #expect(joined.role == .host)
        bob.set { $0.capacity = 5 }
        #expect(stored?.creator == nil)
        stage.restart()
        #expect(stored?.name == .standUp && stored?.creator == nil)
    }

    // MARK: Retention

    @Test func aRoomEndsAYearAfterItsLastUseAlsoAcrossRestarts() {
        ada.open(with: Self.persistent)
        ada.leave()
        for _ in 0..<3 {
            stage.pass(.seconds(100 * 86400))
            stage.restart()
            #expect(stage.hub.hasRoom(.standUp))
        }
        stage.pass(.seconds(66 * 86400))
        #expect(!stage.hub.hasRoom(.standUp))
        #expect(stage.archive.rooms.isEmpty)
    }

    @Test func usingARoomKeepsItWithoutAWriteForEachVisit() {
        ada.open(with: Self.persistent)
        ada.leave()
        let writes = stage.changes.count
        for _ in 0..<10 {
            let guest = arrive(as: bob)
            guest.open()
            guest.leave()
        }
        #expect(stage.changes.count == writes)
        stage.pass(.seconds(300 * 86400))
        let guest = arrive(as: bob)
        guest.open()
        guest.leave()
        stage.pass(.seconds(100 * 86400))
        stage.restart()
        #expect(stage.hub.hasRoom(.standUp))
    }

    /// The stored time of use is old if people stayed in the room for long, and the server crashed.
    @Test func peopleWhoWereInARoomForAYearCanReturnAfterARestart() {
        let stage = Stage { $0.roomRetention = .seconds(10) }
        let ada = stage.arrive()
        ada.open(with: Self.persistent)
        stage.pass(.seconds(100))
        stage.restart()
        #expect(stage.hub.hasRoom(.standUp))
        stage.pass(.seconds(61))
        #expect(!stage.hub.hasRoom(.standUp))
    }

    // MARK: Limits

    @Test func roomsFromBeforeARestartCount() {
        let stage = Stage { $0.roomsPerPerson = 2 }
        let ada = stage.arrive()
        for number in 0..<2 {
            ada.open(RoomName("room \(number)"), with: Self.persistent)
            ada.leaveRoom()
        }
        stage.restart()
        let again = stage.arrive(ada.identity)
        #expect(again.open(RoomName("third"))?.errorCode == .rateLimited)
        stage.handle(.closeRoom(RoomName("room 0") ?? .unset))
        #expect(again.open(RoomName("third"))?.room?.joined != nil)
    }

    @Test func withLittleStorageNothingNewIsStoredAndPeopleStayProtected() {
        let full = WireError(.storageFull, "The disk is nearly full.", retryable: true)
        stage.permit = .essential(full)
        #expect(ada.open(with: Self.persistent)?.errorCode == .storageFull)
        #expect(!stage.hub.hasRoom(.standUp))
        ada.open()
        #expect(ada.set { $0.persistent = true }?.errorCode == .storageFull)
        stage.permit = .all
        ada.set { $0.persistent = true }
        bob.open()
        stage.permit = .essential(full)
        #expect(ada.set { $0.locked = true }?.type == "ok")
        #expect(ada.remove(bob, ban: true)?.type == "ok")
        stage.permit = .none(full)
        #expect(ada.set { $0.locked = false }?.errorCode == .storageFull)
        #expect(ada.write("still here")?.type == "ok")
    }

    @Test func aRoutedRoomOnAServerWithoutMediaSaysSo() {
        ada.open(with: Self.persistent)
        let stage = Stage()
        guard let stored else { return #expect(Bool(false), "nothing was stored") }
        stage.handle(.restoredRoom(stored))
        #expect(stage.arrive().open()?.errorCode == .mediaUnavailable)
    }
}
