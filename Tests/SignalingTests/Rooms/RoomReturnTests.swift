import Signaling
import TestSupport
import Testing
import Wire

/// Coming back to a room whose name may be another room's by now.
@Suite struct RoomReturnTests {
    private let stage = Stage { $0.routesMedia = true }
    private let ada: Guest
    private let bob: Guest
    private let mallory: Guest

    init() {
        (ada, bob, mallory) = (stage.arrive(address: "a"), stage.arrive(address: "b"), stage.arrive(address: "m"))
    }

    private static let sesame = RoomChanges { $0.password = "open sesame" }

    private func arrive(as guest: Guest) -> Guest { stage.arrive(guest.identity, address: guest.address) }

    @Test func membersDoNotJoinAStrangersRoomThatHasTheNameNow() throws {
        let id = try #require(ada.open(with: Self.sesame)?.room?.joined?.room)
        bob.open(password: "open sesame")
        stage.restart()
        arrive(as: mallory).open()
        let guest = arrive(as: bob)
        #expect(guest.open(password: "open sesame", with: Self.sesame, again: id)?.errorCode == .roomOther)
        #expect(guest.open(password: "open sesame")?.errorCode == .roomNoPassword)
        #expect(guest.open()?.room?.joined?.people.count == 2, "the person may still choose to join it")
    }

    @Test func clientsThatSendNoIDJoinAsBefore() throws {
        ada.open()
        stage.restart()
        arrive(as: mallory).open()
        #expect(arrive(as: ada).open()?.room?.joined?.role == .guest)
    }

    /// The first who comes back opens the room again. The others know the id of the room that has ended.
    @Test func membersMeetAgainInTheRoomThatOneOfThemOpensAgain() throws {
        let id = try #require(ada.open(with: Self.sesame)?.room?.joined?.room)
        bob.open(password: "open sesame")
        stage.restart()
        let host = arrive(as: ada)
        let again = try #require(
            host.open(password: "open sesame", with: Self.sesame, again: id)?.room?.joined)
        #expect(again.room == id)
        #expect(arrive(as: mallory).open()?.errorCode == .roomPassword)
        guard case .room(let description)? = stage.operate(.describe(.standUp)) else { return }
        #expect(description.summary.id != id, "tokens that an application made for the room that ended stay dead")
        stage.restart()
        let eve = stage.arrive()
        #expect(arrive(as: ada).open(with: Self.sesame, again: id)?.room?.joined != nil)
        #expect(arrive(as: bob).open(password: "open sesame", again: id)?.room?.joined != nil, "he missed a restart")
        #expect(eve.open(again: again.room)?.errorCode == .roomPassword)
    }

    @Test func membersStillMeetInARoomThatTheyOpenedAgainAndThenMadePersistent() throws {
        let id = try #require(ada.open()?.room?.joined?.room)
        bob.open()
        stage.restart()
        let host = arrive(as: ada)
        host.open(again: id)
        #expect(arrive(as: bob).open(again: id)?.room?.joined != nil)
        #expect(host.set { $0.persistent = true }?.type == "ok")
        stage.restart()
        #expect(arrive(as: bob).open(again: id)?.room?.joined?.room == id)
        #expect(arrive(as: ada).open(again: id)?.room?.joined?.role == .host)
    }

    @Test func aPersistentRoomKeepsItsID() throws {
        let id = try #require(ada.open(with: RoomChanges { $0.persistent = true })?.room?.joined?.room)
        stage.restart()
        #expect(arrive(as: bob).open(again: id)?.room?.joined?.room == id)
    }

    @Test func whoKnowsAPasswordDoesNotJoinARoomWithoutOne() {
        mallory.open()
        #expect(bob.open(password: "open sesame")?.errorCode == .roomNoPassword)
        #expect(ada.open(with: Self.sesame)?.errorCode == .roomNoPassword, "nor who wants to open a room with one")
        #expect(stage.hub.roomFigures.people == 1)
        #expect(mallory.leaveRoom()?.type == "ok")
        #expect(mallory.open(password: "x")?.room?.joined != nil, "the creator needs none")
    }

    @Test func aPasswordDoesNotOpenARoomWithoutOne() {
        #expect(bob.open(password: "open sesame")?.errorCode == .roomNoPassword)
        #expect(bob.open(RoomName?.none, password: "open sesame")?.errorCode == .roomNoPassword)
        #expect(stage.hub.roomCount == 0)
        #expect(bob.open(password: "open sesame", with: Self.sesame)?.room?.joined?.options.password == true)
    }

    @Test func aMemberMayStillHaveThePasswordThatAHostTookAway() throws {
        let id = try #require(ada.open(with: Self.sesame)?.room?.joined?.room)
        bob.open(password: "open sesame")
        ada.set { $0.password = "" }
        bob.leave()
        #expect(arrive(as: bob).open(password: "open sesame", again: id)?.room?.joined != nil)
        stage.restart()
        #expect(arrive(as: bob).open(password: "open sesame", again: id)?.room?.joined?.role == .host)
    }

    @Test func theNameOfARoomWithAPasswordIsKeptWhileItsPeopleHaveNoNetwork() throws {
        let id = try #require(ada.open(with: Self.sesame)?.room?.joined?.room)
        bob.open(password: "open sesame")
        for guest in [ada, bob] { guest.drop() }
        stage.pass(.seconds(300))
        #expect(mallory.open()?.errorCode == .roomPassword)
        #expect(arrive(as: bob).open(password: "open sesame", again: id)?.room?.joined?.room == id)
    }

    @Test func theNameOfARoomWithAPasswordIsFreeAfterAWhile() {
        ada.open(with: Self.sesame)
        ada.leave()
        stage.pass(.seconds(601))
        #expect(stage.hub.roomCount == 0)
    }
}
