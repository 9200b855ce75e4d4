import Signaling
import TestSupport
import Testing
import Wire

/// Who may do what in a room while its owner is there, away, or was never seen. `docs/threat-model.md` has the table.
@Suite struct RoomRightsTests {
    let stage = Stage { $0.routesMedia = true }
    let ada: Guest
    let bob: Guest
    let eve: Guest

    init() {
        (ada, bob, eve) = (stage.arrive(address: "a"), stage.arrive(address: "b"), stage.arrive(address: "e"))
    }

    var stored: StoredRoom? { stage.storedRoom }

    @discardableResult func come(_ guest: Guest, _ token: RoomRole? = nil) -> RoomNotice.Joined? {
        stage.come(guest, token)
    }

    func role(of guest: Guest) -> RoomRole? { stage.role(of: guest) }

    func open(_ change: (inout RoomChanges) -> Void = { _ in }) {
        ada.open(as: "Ada", with: RoomChanges(change))
        bob.open(as: "Bob")
    }

    // MARK: Roles

    /// A person who holds a guest's token must not become a lasting host by way of a second tab.
    @Test func whatAStandInGrantsEndsWhenAnOwnerComes() throws {
        stage.create()
        #expect(come(bob, .guest)?.role == .host, "a room needs a host")
        let (tab, plain) = (stage.arrive(bob.identity), stage.arrive(bob.identity))
        #expect(come(tab, .guest)?.role == .guest)
        #expect(bob.make(tab, .host)?.errorCode == .notPermitted, "a token says what its holder is")
        #expect(come(plain)?.role == .guest)
        #expect(bob.make(plain, .host)?.type == "ok")
        plain.make(bob, .guest)
        #expect(come(ada, .host)?.role == .host)
        for guest in [bob, tab, plain] {
            #expect(role(of: guest) == .guest)
            #expect(guest.remove(ada, ban: true)?.errorCode == .notPermitted)
        }
        #expect(role(of: ada) == .host)
    }

    @Test func aCohostWhomAStandInChoseIsAGuestWhenTheCreatorComesBack() {
        open()
        eve.open(as: "Eve")
        ada.leaveRoom()
        #expect(bob.make(eve, .cohost)?.type == "ok")
        #expect(ada.open(as: "Ada")?.room?.joined?.role == .host)
        #expect(role(of: bob) == .guest && role(of: eve) == .guest)
        #expect(eve.takeRooms().compactMap(\.person).last?.role == .guest, "and everyone learns it")
    }

    @Test func aCohostWhomTheOwnerChoseIsACohostAgainWhenTheOwnerComesBack() {
        open()
        eve.open(as: "Eve")
        ada.make(eve, .cohost)
        ada.leaveRoom()
        #expect(role(of: eve) == .host)
        ada.open(as: "Ada")
        #expect(role(of: eve) == .cohost && role(of: bob) == .guest)
    }

    @Test func aHostWhomTheOwnerChoseStays() {
        open()
        ada.make(bob, .host)
        ada.leaveRoom()
        ada.open(as: "Ada")
        #expect(role(of: bob) == .host)
    }

    @Test func aStandInCannotChangeTheRoleOfACohostWhomTheOwnerChose() {
        stage.create()
        come(eve)
        come(ada, .cohost)
        #expect(role(of: eve) == .host && role(of: ada) == .cohost)
        for role in [RoomRole.guest, .host] { #expect(eve.make(ada, role)?.errorCode == .notPermitted) }
    }

    @Test func aStandInMayGiveUpTheirRole() {
        stage.create()
        come(bob, .guest)
        come(eve)
        #expect(bob.make(bob, .guest)?.errorCode == .notPermitted, "a room needs a host")
        bob.make(eve, .host)
        #expect(bob.make(bob, .guest)?.type == "ok")
        #expect(eve.make(bob, .host)?.errorCode == .notPermitted, "only a token or an owner gives it back")
    }

    // MARK: Creators

    /// Neither now, nor in what is stored.
    @Test func whoIsHostWhileTheCreatorIsAwayCannotKeepTheRoom() {
        open { $0.persistent = true }
        ada.leaveRoom()
        #expect(role(of: bob) == .host)
        #expect(ada.open(as: "Ada")?.room?.joined?.role == .host)
        #expect(role(of: bob) == .guest)
        #expect(bob.remove(ada, ban: true)?.errorCode == .notPermitted)
        #expect(bob.make(ada, .guest)?.errorCode == .notPermitted)
        #expect(stored?.creator == ada.identity && stored?.bans == [])
    }

    @Test(arguments: [0, 61, 86400])
    func whoComesBackFromARestartBeforeTheCreatorIsHostUntilThen(seconds: Int) {
        open { $0.persistent = true }
        stage.restart(after: .seconds(5))
        stage.pass(.seconds(seconds))
        let guest = stage.arrive(bob.identity)
        #expect(guest.open(as: "Bob")?.room?.joined?.role == .host)
        #expect(guest.set { $0.persistent = false }?.errorCode == .notPermitted)
        #expect(stage.arrive(ada.identity).open(as: "Ada")?.room?.joined?.role == .host)
        #expect(role(of: guest) == .guest)
        #expect(stored?.creator == ada.identity)
    }

    @Test func aCreatorWhoDropsForLongerThanTheGracePeriodIsHostAgain() {
        open()
        ada.drop()
        stage.pass(.seconds(31))
        #expect(role(of: bob) == .host)
        ada.resume()
        ada.open(as: "Ada")
        #expect(role(of: ada) == .host && role(of: bob) == .guest)
    }

    @Test func aRoomWhoseCreatorNeverReturnsKeepsWorking() {
        open()
        ada.leave()
        eve.open(as: "Eve")
        #expect(bob.set { ($0.lobby, $0.share, $0.chat) = (true, .hosts, false) }?.type == "ok")
        let guest = stage.arrive()
        #expect(guest.open()?.type == "room.waiting")
        #expect(bob.admit(guest)?.type == "ok")
        #expect(bob.make(eve, .cohost)?.type == "ok")
        #expect(eve.remove(guest)?.type == "ok")
        #expect(bob.mute(nil)?.type == "ok")
        #expect(bob.stopShare(nil)?.type == "ok")
        #expect(bob.remove(eve, ban: true)?.type == "ok")
        #expect(eve.open()?.errorCode == .roomBanned)
    }

    @Test func theCreatorIsHostOnAllTheirDevices() {
        open { $0.persistent = true }
        let phone = stage.arrive(ada.identity)
        #expect(phone.open(as: "Ada")?.room?.joined?.role == .host)
        #expect(ada.make(phone, .guest)?.errorCode == .notPermitted, "or the creator would lose the room by accident")
        #expect(ada.make(ada, .guest)?.type == "ok")
        #expect(stored?.creator == nil, "the creator gave it up, on this device")
        #expect(role(of: phone) == .host)
    }

    @Test func aCreatorWhoRemovesTheirOtherDeviceFromTheSessionStaysCreator() throws {
        open { $0.persistent = true }
        ada.leaveRoom()
        let session = try #require(come(ada)).admission.session
        let phone = stage.arrive(ada.identity)
        come(phone)
        let disconnect = SessionVerb.forceDisconnect(.init(session: session, connection: phone.connection))
        #expect(ada.ask(.session(disconnect))?.type == "ok")
        #expect(stored?.creator == ada.identity)
    }

    @Test func aHostWhomTheOwnerChoseMayTakeTheRoom() {
        open { $0.persistent = true }
        ada.make(bob, .host)
        #expect(bob.remove(ada, ban: true)?.type == "ok", "an owner who makes a host trusts them with everything")
        #expect(stored?.creator == nil && stored?.bans == [ada.identity])
        #expect(ada.open()?.errorCode == .roomBanned)
    }

    /// Older servers let a stand-in ban the creator.
    @Test func aStoredBanDoesNotStopTheCreator() throws {
        open { $0.persistent = true }
        var room = try #require(stored)
        room.bans = [ada.identity, bob.identity]
        stage.archive.apply(.roomStored(room))
        stage.restart()
        #expect(stage.arrive(ada.identity).open(as: "Ada")?.room?.joined?.role == .host)
        #expect(stage.arrive(bob.identity).open(as: "Bob")?.errorCode == .roomBanned)
    }

    // MARK: Bans and tokens

    @Test func aStandInsBanEndsWhenTheRoomIsEmptyAndStopsNoHost() {
        stage.create()
        come(bob)
        come(eve)
        #expect(bob.remove(eve, ban: true)?.type == "ok")
        #expect(stored?.bans == [])
        #expect(eve.open()?.errorCode == .roomBanned)
        #expect(eve.open(token: stage.roomToken(.guest))?.errorCode == .roomBanned)
        #expect(come(eve, .host)?.role == .host)
        #expect(role(of: bob) == .guest)
        eve.leaveRoom()
        bob.leaveRoom()
        #expect(come(eve)?.role == .host)
    }

    @Test func anOwnersBanHoldsForEveryoneAndLasts() {
        stage.create()
        come(ada, .host)
        come(bob)
        ada.remove(bob, ban: true)
        ada.leaveRoom()
        stage.restart()
        #expect(stage.arrive(bob.identity).open(token: stage.roomToken(.host))?.errorCode == .roomBanned)
    }

    @Test func aTokenThatAStandInTookWorksAgainWhenTheRoomIsEmpty() {
        stage.create()
        come(bob, .guest)
        let token = stage.roomToken(.guest)
        eve.open(token: token)
        #expect(bob.remove(eve)?.type == "ok")
        #expect(stored?.revokedTokens == [])
        let again = stage.arrive()
        #expect(again.open(token: token) == nil)
        #expect(again.refusals.last?.code == .tokenRevoked)
        bob.leaveRoom()
        #expect(stage.arrive().open(token: token)?.room?.joined != nil)
    }

    @Test func aHostsTokenThatAnotherOwnerTookStaysDead() {
        stage.create()
        come(ada, .host)
        let token = stage.roomToken(.host)
        bob.open(token: token)
        #expect(ada.remove(bob)?.type == "ok")
        ada.leaveRoom()
        #expect(come(eve)?.role == .host)
        let again = stage.arrive(bob.identity)
        #expect(again.open(token: token) == nil)
        #expect(again.refusals.last?.code == .tokenRevoked)
        #expect(stage.arrive(bob.identity).open()?.room?.joined?.role == .guest)
    }

    /// In the session too, where a host is a moderator.
    @Test(arguments: [RoomMedia.routed, .mesh])
    func aStandInCannotRemoveWhomTheOwnerChose(media: RoomMedia) throws {
        stage.create(.standUp, RoomChanges { ($0.media, $0.capacity) = (media, 6) })
        let session = try #require(come(bob, .guest)).admission.session
        come(eve, .cohost)
        let plain = stage.arrive(eve.identity)
        come(plain)
        #expect(bob.remove(eve)?.errorCode == .notPermitted)
        #expect(bob.remove(eve, ban: true)?.errorCode == .notPermitted)
        #expect(bob.remove(plain, ban: true)?.errorCode == .notPermitted, "the same person")
        let disconnect = SessionVerb.forceDisconnect(.init(session: session, connection: eve.connection))
        #expect(bob.ask(.session(disconnect))?.errorCode == .notPermitted)
        let other = SessionVerb.forceDisconnect(.init(session: session, connection: plain.connection))
        #expect(bob.ask(.session(other))?.type == "ok")
        #expect(eve.remove(bob)?.type == "ok", "while a cohost whom the owner chose may remove the stand-in")
        #expect(role(of: eve) == .host)
    }

    @Test func aTokenThatAStandInTookThroughTheSessionWorksAgainToo() throws {
        stage.create()
        let session = try #require(come(bob)).admission.session
        let token = stage.roomToken(.guest)
        eve.enter(eve.open(token: token)?.room?.joined)
        #expect(bob.ask(.session(.forceDisconnect(.init(session: session, connection: eve.connection))))?.type == "ok")
        #expect(stored?.revokedTokens == [])
        bob.leaveRoom()
        #expect(stage.arrive().open(token: token)?.room?.joined != nil)
    }
}
