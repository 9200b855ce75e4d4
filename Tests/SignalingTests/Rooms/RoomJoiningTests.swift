import Signaling
import TestSupport
import Testing
import Wire

/// Creating, joining and leaving rooms.
@Suite struct RoomJoiningTests {
    private let stage = Stage { $0.routesMedia = true }
    private let ada: Guest
    private let bob: Guest
    private let eve: Guest

    init() { (ada, bob, eve) = (stage.arrive(), stage.arrive(), stage.arrive()) }

    // MARK: Creating

    @Test func openingANameThatDoesNotExistCreatesTheRoomAndMakesItsFirstPersonHost() throws {
        let joined = try #require(ada.open(as: "Ada")?.room?.joined)
        #expect(joined.name.text == "Stand-up")
        #expect(joined.role == .host)
        #expect(joined.people.map(\.connection) == [ada.connection])
        #expect(joined.people.map(\.displayName) == ["Ada"])
        #expect(joined.chat == [])
        #expect(joined.options.media == .routed && joined.options.capacity == 25)
        #expect(!joined.options.locked && !joined.options.lobby && !joined.options.password)
        let grant = try stage.project.verifySessionToken(
            joined.admission.token, for: joined.admission.session, now: stage.now)
        #expect(grant.role == .moderator)
        #expect(grant.mediaMode == .routed)
    }

    @Test func theNextPersonIsAGuestAndIsAnnounced() throws {
        ada.open()
        let joined = try #require(bob.open(RoomName("STAND-UP"), as: "Bob")?.room?.joined)
        #expect(joined.name.text == "Stand-up", "the creator's spelling")
        #expect(joined.role == .guest)
        #expect(joined.people.map(\.displayName) == ["Ada", "Bob"])
        let grant = try stage.project.verifySessionToken(
            joined.admission.token, for: joined.admission.session, now: stage.now)
        #expect(grant.role == .publisher)
        let news = ada.takeRooms().compactMap(\.person)
        #expect(news == [try #require(joined.people.last)])
        #expect(stage.hub.roomCount == 1)
    }

    @Test func aRoomWithoutANameGetsARandomOne() throws {
        let first = try #require(ada.open(nil)?.room?.joined).name
        let second = try #require(bob.open(nil)?.room?.joined).name
        #expect(first.text.wholeMatch(of: /[a-z]{3}-[a-z]{4}-[a-z]{3}/) != nil)
        #expect(first != second)
        #expect(eve.open(first)?.room?.joined?.role == .guest)
    }

    @Test func theCreatorChoosesTheOptions() throws {
        let options = RoomChanges {
            ($0.media, $0.capacity, $0.lobby, $0.password) = (.mesh, 4, true, "sesame")
            ($0.chat, $0.share, $0.persistent, $0.locked) = (false, .hosts, true, true)
        }
        let joined = try #require(ada.open(with: options)?.room?.joined)
        var expected = RoomOptions()
        (expected.media, expected.capacity, expected.lobby, expected.password) = (.mesh, 4, true, true)
        (expected.chat, expected.share, expected.persistent, expected.locked) = (false, .hosts, true, true)
        #expect(joined.options == expected)
        #expect(stage.project.mediaMode(of: joined.admission.session) == .relayed)
    }

    @Test func theOptionsOfWhoJoinsLaterAreIgnored() throws {
        ada.open()
        let joined = try #require(bob.open(with: RoomChanges { $0.capacity = 2 })?.room?.joined)
        #expect(joined.options.capacity == 25)
    }

    @Test func capacitiesBeyondTheLimitAreRefused() {
        for (media, capacity) in [(RoomMedia.mesh, 7), (.mesh, 100), (.routed, 101), (.routed, .max)] {
            let answer = ada.open(with: RoomChanges { ($0.media, $0.capacity) = (media, capacity) })
            #expect(answer?.errorCode == .notPermitted)
        }
        #expect(
            ada.open(with: RoomChanges { ($0.media, $0.capacity) = (.mesh, 6) })?.room?.joined?.options.capacity == 6)
        #expect(
            bob.open(RoomName("big"), with: RoomChanges { $0.capacity = 100 })?.room?.joined?.options.capacity == 100)
        #expect(eve.open(RoomName("mesh"), with: RoomChanges { $0.media = .mesh })?.room?.joined?.options.capacity == 3)
    }

    @Test func aServerThatRoutesNoMediaHasMeshRooms() {
        let stage = Stage()
        let guest = stage.arrive()
        #expect(guest.open(with: RoomChanges { $0.media = .routed })?.errorCode == .mediaUnavailable)
        #expect(guest.open()?.room?.joined?.options.media == .mesh)
    }

    @Test func onlyOperatorsCreateRoomsIfTheSiteSaysSo() {
        let stage = Stage { $0.roomCreation = .operators }
        let guest = stage.arrive()
        #expect(guest.open()?.errorCode == .roomNotFound)
        #expect(guest.open(nil)?.errorCode == .roomNotFound)
        #expect(stage.hub.roomCount == 0)
    }

    // MARK: Names

    @Test func twoPeopleMayHaveTheSameName() throws {
        ada.open(as: "Sam")
        let joined = try #require(bob.open(as: "Sam")?.room?.joined)
        #expect(joined.people.map(\.displayName) == ["Sam", "Sam"])
        #expect(Set(joined.people.map(\.connection)).count == 2)
    }

    @Test func onePersonMayJoinFromTwoTabs() throws {
        let tab = stage.arrive(ada.identity)
        let first = try #require(ada.open()?.room?.joined)
        let second = try #require(tab.open()?.room?.joined)
        #expect(ada.enter(first)?.type == "session.joined")
        #expect(tab.enter(second)?.type == "session.joined")
        #expect(ada.places.count == 1 && tab.places.count == 1, "neither takes the other's place")
        #expect(second.role == .host, "the creator is host on every device")
    }

    @Test func namesAreCheckedAndEmptyOnesGenerated() throws {
        #expect(ada.open(as: "a\u{202E}b")?.errorCode == .invalidName)
        #expect(ada.open(as: String(repeating: "x", count: 41))?.errorCode == .invalidName)
        let joined = try #require(ada.open(as: "  ")?.room?.joined)
        #expect(joined.people.first?.displayName.isEmpty == false)
    }

    @Test func aNameFromAnApplicationTakesPrecedence() throws {
        let guest = Guest(on: stage, as: stage.identity())
        guest.vouched = "Professor Plum"
        guest.arrive()
        #expect(guest.open(as: "Ada")?.room?.joined?.people.first?.displayName == "Professor Plum")
    }

    // MARK: Capacity

    @Test func aFullRoomRefusesTheNextPerson() {
        ada.open(with: RoomChanges { $0.capacity = 2 })
        bob.open()
        let answer = eve.open()
        #expect(answer?.errorCode == .roomFull)
        if case .error(let failure)? = answer { #expect(failure.error.retryable) }
        bob.leaveRoom()
        #expect(eve.open()?.room?.joined != nil)
    }

    @Test func aDroppedPersonKeepsThePlaceAndComesBack() throws {
        let joined = try #require(ada.open(with: RoomChanges { $0.capacity = 2 })?.room?.joined)
        let his = try #require(bob.open()?.room?.joined)
        bob.enter(his)
        ada.enter(joined)
        ada.take()
        bob.drop()
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.reconnecting])
        #expect(eve.open()?.errorCode == .roomFull)
        stage.pass(.seconds(20))
        bob.resume()
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.connected])
        #expect(bob.places == [his.admission.session])
        #expect(bob.write("back")?.type == "ok")
    }

    @Test func aPersonWhoDoesNotComeBackLeaves() {
        ada.open(with: RoomChanges { $0.capacity = 2 })
        bob.open()
        ada.take()
        bob.drop()
        stage.pass(.seconds(31))
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.reconnecting, .left])
        #expect(eve.open()?.room?.joined != nil)
    }

    @Test func aDroppedConnectionGivesWayToTheSamePersonIfTheRoomIsFull() {
        ada.open(with: RoomChanges { $0.capacity = 2 })
        bob.open(as: "Bob")
        bob.drop()
        let again = stage.arrive(bob.identity)
        let joined = again.open(as: "Bob")?.room?.joined
        #expect(joined?.people.map(\.connection) == [ada.connection, again.connection])
        bob.resume()
        #expect(bob.takeRooms().compactMap(\.ended).map(\.reason) == [.replaced])
        #expect(bob.write("still here?")?.errorCode == .notJoined)
    }

    // MARK: Leaving

    @Test func leavingIsAnnouncedAndItsTokenIsDead() throws {
        ada.open()
        let his = try #require(bob.open()?.room?.joined)
        bob.enter(his)
        ada.take()
        #expect(bob.leaveRoom()?.type == "ok")
        #expect(bob.take().map(\.type) == ["session.left"])
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.left])
        #expect(bob.enter(his)?.errorCode == .tokenMatchEnded)
        #expect(bob.closeCode == nil, "the join could have crossed with the end of the room")
        #expect(bob.open()?.room?.joined != nil, "he may come again")
    }

    @Test func closingTheTabLeaves() {
        ada.open()
        bob.open()
        ada.take()
        bob.leave()
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.left])
    }

    @Test func aConnectionIsInOneRoomAtATime() {
        ada.open()
        #expect(ada.open()?.errorCode == .alreadyJoined)
        #expect(ada.open(RoomName("other"))?.errorCode == .alreadyJoined)
        #expect(stage.hub.roomCount == 1)
        ada.leaveRoom()
        #expect(ada.open(RoomName("other"))?.room?.joined != nil)
    }

    @Test func withoutARoomAllOtherVerbsFail() {
        let verbs: [RoomVerb] = [
            .leave, .admit(.init()), .deny(.init()), .set(.init()), .mute(.init()), .stopShare(.init()),
            .remove(.init()), .role(.init()), .say(.init(text: "hi")), .hand(.init(raised: true)), .react(.init()),
        ]
        for verb in verbs { #expect(ada.ask(.room(verb))?.errorCode == .notJoined, "\(verb)") }
    }

    // MARK: Ending

    @Test func anEmptyRoomEndsAfterAMinute() {
        ada.open(with: RoomChanges { $0.capacity = 2 })
        ada.leaveRoom()
        stage.pass(.seconds(59))
        #expect(bob.open()?.room?.joined?.options.capacity == 2, "the same room")
        bob.leaveRoom()
        stage.pass(.seconds(61))
        #expect(stage.hub.roomCount == 0)
        #expect(stage.hub.sessionCount == 0)
        #expect(bob.open()?.room?.joined?.options.capacity == 25, "a new room")
    }

    @Test func aPersistentRoomStaysWithItsOptionsAndItsHost() {
        ada.open(with: RoomChanges { ($0.persistent, $0.capacity) = (true, 7) })
        ada.leaveRoom()
        stage.pass(.seconds(7 * 86400))
        #expect(bob.open()?.room?.joined?.options.capacity == 7)
        #expect(ada.open()?.room?.joined?.role == .host)
        for guest in [ada, bob] { guest.leaveRoom() }
        stage.pass(.seconds(366 * 86400))
        #expect(stage.hub.roomCount == 0, "nobody came for a year")
    }

    @Test func aPersistentRoomIntoWhichNobodyCouldComeEnds() {
        ada.open(with: RoomChanges { ($0.persistent, $0.locked) = (true, true) })
        ada.leaveRoom()
        stage.pass(.seconds(3600))
        #expect(ada.open()?.room?.joined?.role == .host, "a creator is not stopped by the lock")
        ada.set { $0.locked = false }
        bob.open()
        ada.make(bob, .host)
        ada.make(ada, .guest)
        bob.set { $0.locked = true }
        for guest in [ada, bob] { guest.leaveRoom() }
        #expect(ada.open()?.errorCode == .roomLocked)
        stage.pass(.seconds(61))
        #expect(stage.hub.roomCount == 0, "otherwise the name would be taken for a year")
    }

    @Test func anOperatorEndsARoomForAll() throws {
        let joined = try #require(ada.open(with: RoomChanges { $0.lobby = true })?.room?.joined)
        ada.enter(joined)
        bob.open()
        ada.take()
        bob.take()
        stage.handle(.closeRoom(.standUp))
        #expect(ada.takeRooms().compactMap(\.ended) == [.init(name: .standUp, reason: .closed)])
        #expect(bob.takeRooms().compactMap(\.refused).map(\.code) == [.roomNotFound])
        #expect(ada.places.isEmpty)
        #expect(stage.hub.roomCount == 0 && stage.hub.sessionCount == 0)
        #expect(ada.write("anyone?")?.errorCode == .notJoined)
        #expect(bob.open()?.room?.joined?.role == .host)
    }

    @Test func aRestartEndsRoomsAndTheirTokens() throws {
        let joined = try #require(ada.open()?.room?.joined)
        ada.enter(joined)
        stage.restart()
        ada.resume()
        #expect(ada.enter(joined) == nil)
        #expect(ada.refusals.last?.code == .tokenMatchEnded)
    }
}
