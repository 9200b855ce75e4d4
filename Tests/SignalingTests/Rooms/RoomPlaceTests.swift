import Signaling
import TestSupport
import Testing
import Wire

/// Who gets a place in a room and in its lobby when others want all of them.
@Suite struct RoomPlaceTests {
    private let stage = Stage { $0.routesMedia = true }
    private let ada: Guest

    init() { ada = stage.arrive(address: "home") }

    /// Lets strangers of one address come until one is refused, and returns how many came in.
    private func flood(from address: String, most: Int = 200, in room: RoomName = .standUp) -> Int {
        (0..<most).prefix { _ in stage.arrive(address: address).open(room)?.room?.joined != nil }.count
    }

    @Test func anAddressCannotFillARoom() {
        ada.open()
        #expect(flood(from: "flood") == 20, "80 % of 25 places")
        #expect(stage.arrive(address: "friend").open()?.room?.joined != nil)
        let refused = stage.arrive(address: "flood").open()
        #expect(refused?.errorCode == .roomFull)
    }

    @Test(arguments: [(2, 1), (3, 2), (4, 2), (5, 3), (6, 4), (25, 20), (32, 25), (100, 80)])
    func theShareOfAnAddressDependsOnTheCapacity(_ capacity: Int, _ share: Int) {
        ada.open(with: RoomChanges { $0.capacity = capacity })
        #expect(flood(from: "flood") == share)
    }

    @Test func aHostInTheNetworkKeepsItsPlacesWhenAnotherOwnerJoinsElsewhere() {
        let teacher = stage.arrive(address: "school")
        teacher.open()
        stage.arrive(teacher.identity, address: "home").open()
        #expect(flood(from: "school") == 23, "all 25 places, of which the teacher has two")
    }

    @Test func theCreatorComesIntoAFullRoom() throws {
        ada.open(with: RoomChanges { $0.capacity = 2 })
        ada.leaveRoom()
        stage.arrive(address: "x").open()
        stage.arrive(address: "y").open()
        #expect(stage.arrive(address: "z").open()?.errorCode == .roomFull)
        #expect(ada.open()?.room?.joined?.role == .host)
        #expect(stage.arrive(ada.identity, address: "home").open()?.errorCode == .roomFull, "with one device")
    }

    @Test func theHolderOfAHostsTokenComesIntoAFullRoom() throws {
        var creation = RoomCreationRequest()
        (creation.name, creation.options) = (.standUp, RoomChanges { $0.capacity = 1 })
        _ = stage.operate(.create(creation))
        guard case .token(let token)? = stage.operate(.token(.standUp, .init(role: .host, displayName: "Ada"))) else {
            Issue.record("no token")
            return
        }
        #expect(stage.arrive(address: "x").open()?.room?.joined != nil)
        #expect(stage.arrive(address: "y").open()?.errorCode == .roomFull)
        #expect(ada.open(nil, token: token.token)?.room?.joined?.role == .host)
    }

    @Test func aHostWhoReturnsWithoutTheTokenNeedsAnOrdinaryPlace() {
        var creation = RoomCreationRequest()
        (creation.name, creation.options) = (.standUp, RoomChanges { $0.capacity = 2 })
        _ = stage.operate(.create(creation))
        for address in ["x", "y"] { stage.arrive(address: address).open() }
        #expect(ada.open(nil, token: stage.roomToken(.host, "Ada"))?.room?.joined?.role == .host)
        ada.drop()
        #expect(stage.arrive(ada.identity, address: "home").open()?.errorCode == .roomFull)
        let token = stage.roomToken(.host, "Ada")
        #expect(stage.arrive(ada.identity, address: "home").open(nil, token: token)?.room?.joined?.role == .host)
    }

    /// A room of the greatest capacity has no place beyond it.
    @Test func onePlaceOfTheGreatestCapacityIsKeptForTheCreator() {
        ada.open(with: RoomChanges { ($0.media, $0.capacity) = (.mesh, 6) })
        ada.leaveRoom()
        let came = (0..<6).count { stage.arrive(address: "\($0)").open()?.room?.joined != nil }
        #expect(came == 5)
        #expect(ada.open()?.room?.joined?.people.count == 6)
        #expect(stage.arrive(address: "late").open()?.errorCode == .roomFull)
    }

    @Test func aClassBehindOneAddressFillsTheRoomOfItsTeacher() {
        ada.open()
        #expect(flood(from: "home") == 24, "all 25 places, with the teacher")
    }

    @Test func aClassOf25BehindOneAddressMeetsATeacherElsewhere() {
        ada.open(with: RoomChanges { $0.capacity = 32 })
        #expect(flood(from: "school", most: 25) == 25)
    }

    @Test func aHostMayAdmitMoreThanTheShareOfAnAddress() {
        ada.open(with: RoomChanges { ($0.capacity, $0.lobby) = (4, true) })
        for _ in 0..<3 {
            let guest = stage.arrive(address: "x")
            #expect(guest.open()?.type == "room.waiting")
            #expect(ada.admit(guest)?.type == "ok")
        }
    }

    @Test func turningTheLobbyOffKeepsPlacesForOtherAddresses() {
        ada.open(with: RoomChanges { ($0.capacity, $0.lobby) = (4, true) })
        for _ in 0..<5 { stage.arrive(address: "x").open() }
        let friend = stage.arrive(address: "friend")
        friend.open()
        ada.set { $0.lobby = false }
        #expect(friend.takeRooms().contains { $0.joined != nil })
        #expect(stage.hub.roomFigures.people == 4)
    }

    @Test func whoLostTheConnectionAndCannotResumeGetsThePlaceOfTheAddressBack() {
        ada.open(with: RoomChanges { $0.capacity = 6 })
        let bob = stage.arrive(address: "x")
        bob.open()
        #expect(flood(from: "x") == 3)
        bob.drop()
        #expect(stage.arrive(address: "x").open()?.errorCode == .roomFull)
        #expect(stage.arrive(bob.identity, address: "x").open()?.room?.joined != nil)
    }

    /// A client of PerchRTC's protocol has no creator's rights, so its room has no creator.
    @Test func aRoomWithoutACreatorHasPlacesForTheAddressOfItsHost() {
        var creation = RoomCreationRequest()
        (creation.name, creation.options) = (.standUp, RoomChanges { $0.capacity = 5 })
        _ = stage.operate(.create(creation))
        #expect(flood(from: "x") == 5)
    }

    @Test func twoAddressesCannotFillALobby() {
        ada.open(with: RoomChanges { $0.lobby = true })
        for address in ["x", "y", "z"] {
            let waiting = (0..<50).count { _ in stage.arrive(address: address).open()?.type == "room.waiting" }
            #expect(waiting == 30)
        }
        #expect(stage.arrive(address: "friend").open()?.type == "room.waiting")
    }
}
