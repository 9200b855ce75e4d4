import Signaling
import TestSupport
import Testing
import Wire

extension Stage {
    @discardableResult func create(_ name: RoomName? = .standUp, _ options: RoomChanges? = nil) -> OperatorReply? {
        operate(.create(RoomCreationRequest(name: name, options: options)))
    }

    func roomToken(_ role: RoomRole, _ displayName: String = "", lifetime: Int? = nil) -> String {
        let wish = RoomTokenRequest(role: role, displayName: displayName, lifetime: lifetime)
        return operate(.token(.standUp, wish))?.token?.token ?? ""
    }
}

/// Rooms that operators and applications create.
@Suite struct RoomOperatorTests {
    private let stage = Stage {
        $0.routesMedia = true
        $0.roomCreation = .operators
    }

    @Test func onlyOperatorsCreateRoomsAndPeopleJoinThem() throws {
        let ada = stage.arrive()
        #expect(ada.open()?.errorCode == .roomNotFound)
        let room = try #require(stage.create()?.room)
        #expect(room.summary.name == .standUp && room.people == [])
        #expect(room.summary.options.persistent, "it would end before anyone comes")
        let joined = try #require(ada.open()?.room?.joined)
        #expect(joined.role == .host)
        #expect(joined.admission.session == room.session)
        let bob = stage.arrive()
        #expect(bob.open()?.room?.joined?.role == .guest)
        let now = try #require(stage.operate(.describe(.standUp))?.room)
        #expect(now.summary.peopleCount == 2)
        #expect(now.people.map(\.connection) == [ada.connection, bob.connection])
    }

    @Test func aNameIsTakenOnlyOnce() {
        stage.create()
        #expect(stage.create(RoomName("STAND-UP"))?.errorCode == .roomExists)
        #expect(stage.create(nil)?.room != nil, "a random name")
        #expect(stage.hub.roomCount == 2)
    }

    @Test func whatDoesNotExistIsNotFound() {
        for action: OperatorRequest.Action in [
            .describe(.standUp), .change(.standUp, RoomChanges { $0.locked = true }), .close(.standUp),
            .token(.standUp, RoomTokenRequest(role: .host, displayName: "")),
        ] { #expect(stage.operate(action)?.errorCode == .roomNotFound) }
    }

    @Test func invalidOptionsCreateNothing() {
        #expect(
            stage.create(.standUp, RoomChanges { ($0.media, $0.capacity) = (.mesh, 7) })?.errorCode == .notPermitted)
        #expect(stage.hub.roomCount == 0)
        stage.create()
        let mesh = stage.operate(.change(.standUp, RoomChanges { $0.media = .mesh }))
        #expect(mesh?.errorCode == .notPermitted, "it never changes")
    }

    @Test func changesReachThePeopleInTheRoom() {
        stage.create()
        let ada = stage.arrive()
        ada.open()
        ada.take()
        let changed = stage.operate(.change(.standUp, RoomChanges { ($0.locked, $0.password) = (true, "x") }))
        #expect(changed?.room?.summary.options.locked == true)
        #expect(ada.takeRooms().compactMap(\.changed).map(\.password) == [true])
        #expect(stage.arrive().open(password: "x")?.errorCode == .roomLocked)
    }

    @Test func closingEndsTheRoomForEveryone() {
        stage.create()
        let ada = stage.arrive()
        ada.open()
        ada.take()
        #expect(stage.operate(.close(.standUp)) == .closed)
        #expect(ada.takeRooms().compactMap(\.ended).map(\.reason) == [.closed])
        #expect(stage.hub.roomCount == 0 && stage.archive.rooms.isEmpty)
    }

    @Test func anEmptyRoomEndsSoonOnceItIsNotPersistent() {
        stage.create()
        stage.pass(.seconds(3600))
        #expect(stage.hub.roomCount == 1)
        stage.operate(.change(.standUp, RoomChanges { $0.persistent = false }))
        stage.pass(.seconds(61))
        #expect(stage.hub.roomCount == 0)
        #expect(stage.archive.rooms.isEmpty)
    }

    @Test func aLockedRoomStaysOnceAPersonCanOpenIt() {
        let locked = RoomChanges { $0.locked = true }
        stage.create(.standUp, locked)
        stage.create(RoomName("other"), locked)
        #expect(!stage.roomToken(.host).isEmpty)
        stage.operate(.change(RoomName("other") ?? .unset, RoomChanges { $0.locked = false }))
        stage.pass(.seconds(3600))
        #expect(stage.hub.roomCount == 2)
        stage.operate(.change(RoomName("other") ?? .unset, locked))
        stage.pass(.seconds(61))
        #expect(stage.hub.roomCount == 1, "nobody could open it")
    }

    @Test func theListHasPagesOldestFirst() throws {
        for number in 0..<7 {
            stage.create(RoomName("room \(number)"))
            stage.pass(.milliseconds(number % 2))
        }
        var names: [String] = []
        var after: RoomCursor?
        repeat {
            let list = try #require(stage.operate(.list(after: after, limit: 3))?.list)
            #expect(list.rooms.count <= 3)
            names += list.rooms.map(\.name.text)
            after = list.next.flatMap { RoomCursor($0) }
        } while after != nil
        #expect(names.count == 7 && Set(names).count == 7)
        #expect(names.first?.hasPrefix("room ") == true)
        for text in ["", "-", "x-1", "1-2", "-1-00000000000000000000000000000000"] { #expect(RoomCursor(text) == nil) }
    }

    @Test func operatorsAreLimitedOnlyByTheNumberOfAllRooms() {
        let stage = Stage { ($0.maxRooms, $0.roomsPerAddress, $0.roomsPerPerson) = (5, 1, 1) }
        for number in 0..<5 { #expect(stage.create(RoomName("room \(number)"))?.room != nil) }
        #expect(stage.create(RoomName("room 5"))?.errorCode == .rateLimited)
    }

    @Test func figuresFollowThePeople() {
        stage.create(.standUp, RoomChanges { ($0.capacity, $0.password) = (2, "x") })
        let people = (0..<3).map { stage.arrive(address: "\($0)") }
        for guest in people { guest.open(password: "x") }
        people[2].open()
        #expect(stage.hub.roomFigures.people == 2)
        #expect(stage.hub.roomFigures.joins == ["joined": 2, "room_full": 1, "room_password": 1])
        people[0].set { $0.lobby = true }
        people[1].leaveRoom()
        people[2].open(password: "x")
        #expect(stage.hub.roomFigures.waiting == 1 && stage.hub.roomFigures.people == 1)
        stage.operate(.close(.standUp))
        #expect(stage.hub.roomFigures.waiting == 0 && stage.hub.roomFigures.people == 0)
    }
}

/// Tokens with which an application lets people into a room.
@Suite struct RoomTokenTests {
    private let stage = Stage { $0.routesMedia = true }

    init() { stage.create(.standUp, RoomChanges { ($0.lobby, $0.password) = (true, "x") }) }

    @Test func aTokenSetsRoleAndNameAndNeedsNoPassword() throws {
        let ada = stage.arrive()
        let joined = try #require(ada.open(nil, as: "", token: stage.roomToken(.host, "Ada"))?.room?.joined)
        #expect(joined.role == .host && joined.name == .standUp)
        #expect(joined.people.map(\.displayName) == ["Ada"])
        let bob = stage.arrive()
        #expect(bob.open(as: "Bob", token: stage.roomToken(.cohost))?.room?.joined?.role == .cohost)
        #expect(ada.takeRooms().compactMap(\.person).map(\.displayName) == ["Bob"], "the holder chooses a name")
        let eve = stage.arrive()
        #expect(eve.open(as: "Not Eve", token: stage.roomToken(.guest, "Eve"))?.room?.joined?.role == .guest)
        #expect(ada.takeRooms().compactMap(\.person).map(\.displayName) == ["Eve"])
    }

    @Test func whoHasNoTokenWaitsForTheHost() {
        let token = stage.roomToken(.host)
        let guest = stage.arrive()
        #expect(guest.open(password: "x")?.type == "room.waiting", "although the room is empty")
        let host = stage.arrive()
        host.open(token: token)
        #expect(host.takeRooms().compactMap(\.knock).count == 1)
        stage.restart()
        #expect(stage.arrive().open(password: "x")?.type == "room.waiting", "after a restart too")
    }

    @Test func aGuestIsHostOnlyUntilAHostComes() throws {
        let student = stage.arrive()
        let joined = try #require(student.open(token: stage.roomToken(.guest, "Student"))?.room?.joined)
        #expect(joined.role == .host, "a room has a host")
        student.enter(joined)
        let teacher = stage.arrive()
        #expect(teacher.open(token: stage.roomToken(.host, "Teacher"))?.room?.joined?.role == .host)
        #expect(student.takeRooms().compactMap(\.person).last?.role == .guest)
        #expect(student.remove(teacher)?.errorCode == .notPermitted)
        teacher.make(student, .host)
        let second = stage.arrive()
        second.open(token: stage.roomToken(.host))
        #expect(student.set { $0.locked = false }?.type == "ok", "a host's decision stays")
    }

    @Test func theTokenOfARemovedPersonIsDead() {
        let host = stage.arrive()
        host.open(token: stage.roomToken(.host))
        let token = stage.roomToken(.guest, "Mallory")
        let mallory = stage.arrive()
        mallory.open(token: token)
        #expect(host.remove(mallory)?.type == "ok")
        for _ in 0..<2 {
            let again = stage.arrive()
            #expect(again.open(token: token) == nil)
            #expect(again.refusals.last?.code == .tokenRevoked)
            #expect(again.closeCode == .token)
            stage.restart()
        }
        #expect(stage.arrive().open(token: stage.roomToken(.guest, "Mallory"))?.room?.joined != nil, "a new one works")
    }

    @Test func leavingDoesNotUseUpTheToken() {
        let token = stage.roomToken(.guest)
        stage.arrive().open(token: stage.roomToken(.host))
        let guest = stage.arrive()
        guest.open(token: token)
        guest.leaveRoom()
        #expect(guest.open(token: token)?.room?.joined != nil)
    }

    @Test func aBanHoldsForHoldersTooAndTheCapacityForGuests() {
        let host = stage.arrive()
        host.open(token: stage.roomToken(.host))
        let mallory = stage.arrive()
        mallory.open(token: stage.roomToken(.guest))
        host.remove(mallory, ban: true)
        #expect(mallory.open(token: stage.roomToken(.host))?.errorCode == .roomBanned)
        host.set { $0.capacity = 1 }
        #expect(stage.arrive().open(token: stage.roomToken(.guest))?.errorCode == .roomFull)
        #expect(stage.arrive().open(token: stage.roomToken(.host))?.room?.joined?.role == .host)
    }

    @Test func aLockStopsGuestsAndNoHosts() {
        stage.arrive().open(token: stage.roomToken(.host))
        stage.operate(.change(.standUp, RoomChanges { $0.locked = true }))
        #expect(stage.arrive().open(token: stage.roomToken(.guest))?.errorCode == .roomLocked)
        #expect(stage.arrive().open(token: stage.roomToken(.cohost))?.room?.joined?.role == .cohost)
    }

    @Test func aTokenIsForOneRoomAndOneLifeOfIt() {
        let token = stage.roomToken(.host)
        let lost = stage.arrive()
        #expect(lost.open(RoomName("lair"), token: token) == nil)
        #expect(lost.refusals.last?.code == .tokenRoom)
        stage.operate(.close(.standUp))
        #expect(stage.arrive().open(token: token)?.errorCode == .roomNotFound, "it does not create the room")
        let owner = stage.arrive()
        #expect(owner.open()?.room?.joined?.role == .host)
        #expect(stage.arrive().open(token: token)?.errorCode == .roomNotFound, "the name belongs to someone else now")
    }

    @Test func aTokenExpires() {
        let token = stage.roomToken(.guest, lifetime: 60)
        stage.pass(.seconds(61))
        let late = stage.arrive()
        #expect(late.open(token: token) == nil)
        #expect(late.refusals.last?.code == .tokenExpired)
    }

    @Test func otherTokensDoNotOpenRooms() {
        let project = stage.project
        let request = project.makeRequestToken(now: stage.now)
        let user = project.makeUserToken(user: "ada", name: nil, now: stage.now)
        for token in [request, user, stage.token(stage.room(.routed)), "a.b.c", ""] {
            let guest = stage.arrive()
            #expect(guest.open(token: token) == nil)
            #expect(guest.refusals.last?.code.isToken == true)
        }
    }

    @Test func tokensOfClientsAreNoRequestTokens() throws {
        let project = stage.project
        try project.verifyRequestToken(project.makeRequestToken(now: stage.now), now: stage.now)
        let others = [
            stage.roomToken(.host),
            project.makeUserToken(user: "ada", name: nil, now: stage.now, lifetime: .seconds(60)),
            stage.token(stage.room(.routed), lifetime: .seconds(60)),
        ]
        for token in others {
            #expect(throws: WireError.self) { try project.verifyRequestToken(token, now: stage.now) }
        }
        let long = project.makeRequestToken(now: stage.now, lifetime: .seconds(400))
        #expect(throws: WireError.self) { try project.verifyRequestToken(long, now: stage.now) }
        let old = project.makeRequestToken(now: stage.now - .seconds(61))
        #expect(throws: WireError.self) { try project.verifyRequestToken(old, now: stage.now) }
    }
}
