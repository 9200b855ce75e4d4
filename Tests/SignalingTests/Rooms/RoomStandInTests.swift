import Signaling
import TestSupport
import Testing
import Wire

/// What people may do who are host only because the room's owner is away, and what remains of it.
extension RoomRightsTests {
    // MARK: Options

    /// Neither by a small capacity nor by making the room end.
    @Test func aStandInTakesNoRoomFromAnApplication() {
        stage.create()
        #expect(come(bob)?.role == .host)
        #expect(bob.set { $0.capacity = 1 }?.errorCode == .notPermitted)
        #expect(bob.set { $0.capacity = 100 }?.errorCode == .notPermitted)
        #expect(bob.set { $0.persistent = false }?.errorCode == .notPermitted)
        #expect(bob.set { $0.password = "mine" }?.errorCode == .notPermitted)
        #expect(bob.set { ($0.locked, $0.password) = (true, "mine") }?.errorCode == .notPermitted, "all or nothing")
        #expect(come(ada, .host)?.options.locked == false)
        ada.leaveRoom()
        #expect(bob.set { ($0.locked, $0.capacity, $0.persistent, $0.password) = (true, 25, true, "") }?.type == "ok")
        bob.leaveRoom()
        stage.pass(.seconds(3600))
        #expect(stage.hub.hasRoom(.standUp), "although nobody was left who could unlock it")
        #expect(come(eve)?.options.locked == false)
    }

    @Test func aStandInDoesNotMakeATemporaryRoomPersistent() {
        stage.create(.standUp, RoomChanges { $0.persistent = false })
        come(bob)
        #expect(bob.set { $0.persistent = true }?.errorCode == .notPermitted)
        ada.open(RoomName("other"))
        let guest = stage.arrive()
        guest.open(RoomName("other"))
        ada.leaveRoom()
        #expect(guest.set { $0.persistent = true }?.errorCode == .notPermitted)
        #expect(stage.changes == [])
    }

    @Test func theErrorSaysWhoMayDoIt() {
        stage.create()
        come(bob)
        guard case .error(let refused)? = bob.set({ $0.capacity = 1 }) else { return #expect(Bool(false), "no error") }
        #expect(refused.error.message.contains("only hosts and cohosts chosen by the owner can change"))
        #expect(!refused.error.retryable)
    }

    @Test func whatAStandInChangesEndsWhenTheRoomIsEmpty() throws {
        open { ($0.persistent, $0.lobby) = (true, true) }
        ada.admit(bob)
        ada.leaveRoom()
        let before = stored
        #expect(bob.set { ($0.locked, $0.lobby, $0.chat, $0.share) = (true, false, false, .hosts) }?.type == "ok")
        #expect(stored == before, "nothing of it is stored")
        #expect(eve.open()?.errorCode == .roomLocked)
        bob.leaveRoom()
        #expect(eve.open()?.type == "room.waiting", "the owner's lobby holds again")
        let joined = try #require(ada.open(as: "Ada")?.room?.joined)
        #expect(joined.options.chat && joined.options.lobby && !joined.options.locked && joined.options.share == .all)
    }

    @Test func whatAStandInChangesStaysForThePeopleWhenTheOwnerComes() {
        open { $0.persistent = true }
        ada.leaveRoom()
        bob.set { $0.locked = true }
        #expect(ada.open(as: "Ada")?.room?.joined?.options.locked == true, "a lock never stops the owner")
        #expect(eve.open()?.errorCode == .roomLocked, "a lock that ended by itself would let in whom it kept out")
        ada.set { $0.chat = false }
        #expect(stored?.options.locked == false && stored?.options.chat == false)
        #expect(ada.set { $0.locked = true }?.type == "ok")
        #expect(stored?.options.locked == true, "now it is the owner's")
    }

    @Test func aRestartBringsBackWhatTheOwnerSet() {
        open { $0.persistent = true }
        ada.leaveRoom()
        bob.set { $0.locked = true }
        stage.restart()
        #expect(stage.arrive(eve.identity).open()?.room?.joined?.options.locked == false)
    }

    @Test func aCohostWhomTheOwnerChoseActsForTheOwnerAlsoAsAStandIn() {
        stage.create()
        #expect(come(bob, .cohost)?.role == .host)
        #expect(bob.set { ($0.capacity, $0.locked) = (7, true) }?.type == "ok")
        #expect(stored?.options.capacity == 7 && stored?.options.locked == true)
        #expect(come(eve, .cohost)?.role == .cohost)
        #expect(bob.make(eve, .host)?.errorCode == .notPermitted, "but not by making hosts")
        #expect(bob.remove(eve)?.errorCode == .notPermitted, "nor against another one")
    }

    @Test func aRoomThatAStandInCannotStoreIsStillLocked() {
        let full = WireError(.storageFull, "The disk is full.", retryable: true)
        open { $0.persistent = true }
        ada.leaveRoom()
        stage.permit = .none(full)
        #expect(bob.set { $0.locked = true }?.type == "ok", "nothing has to be stored")
    }

    // MARK: Lobby

    /// Once an application has made a token for a host, its lobby holds.
    @Test func whoWaitsForAnApplicationsHostStillWaitsWhenEveryoneHasLeft() {
        stage.create(.standUp, RoomChanges { $0.lobby = true })
        come(ada, .host)
        #expect(bob.open()?.type == "room.waiting")
        ada.leaveRoom()
        #expect(bob.takeRooms().compactMap(\.joined) == [])
        come(ada, .host)
        #expect(ada.admit(bob)?.type == "ok")
    }

    @Test func whomAStandInAdmitsIsAGuest() {
        stage.create(.standUp, RoomChanges { $0.lobby = true })
        #expect(come(bob)?.role == .host, "nobody else could open it")
        #expect(eve.open()?.type == "room.waiting")
        #expect(bob.admit(eve)?.type == "ok")
        #expect(role(of: eve) == .guest)
        #expect(come(ada, .host)?.role == .host, "without waiting")
    }

    // MARK: Files

    @Test func aStandInRemovesFilesOfGuestsButNotOfOwners() throws {
        open()
        eve.open(as: "Eve")
        func send(_ guest: Guest) throws -> RoomFileID {
            guard case .room(.upload(let upload))? = guest.ask(.room(.file(.init(name: "a.txt", size: 5)))) else {
                throw WireError(.notFound, "refused")
            }
            _ = stage.operate(.file(.standUp, upload.id, .begin(upload.secret)))
            _ = stage.operate(.file(.standUp, upload.id, .end(upload.secret, isComplete: true)))
            return upload.id
        }
        let (adas, bobs, eves) = (try send(ada), try send(bob), try send(eve))
        #expect(eve.ask(.room(.removeFile(.init(id: bobs))))?.errorCode == .notPermitted)
        ada.leaveRoom()
        #expect(bob.ask(.room(.removeFile(.init(id: adas))))?.errorCode == .notPermitted)
        #expect(bob.ask(.room(.removeFile(.init(id: eves))))?.type == "ok")
        ada.open(as: "Ada")
        #expect(ada.ask(.room(.removeFile(.init(id: adas))))?.type == "ok")
        #expect(bob.ask(.room(.removeFile(.init(id: bobs))))?.type == "ok")
    }

    // MARK: Phones

    @Test func aPhoneThatIsHostBecauseNobodyElseIsThereIsAGuestWhenAnOwnerComes() throws {
        let phone = stage.arrivePerch("Amy")
        func roles() -> [RoomRole] { stage.operate(.describe(.standUp))?.room?.people.map(\.role) ?? [] }
        #expect(roles() == [.host])
        come(bob)
        #expect(roles() == [.host, .host], "a phone cannot moderate")
        #expect(bob.set { $0.capacity = 6 }?.errorCode == .notPermitted, "the room is the operators'")
        come(ada, .host)
        #expect(roles() == [.guest, .guest, .host])
        #expect(phone.closeCode == nil)
    }
}
