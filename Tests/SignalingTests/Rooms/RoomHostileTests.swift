import Signaling
import TestSupport
import Testing
import Wire

/// Attacks on rooms: forged verbs, floods, other people's tokens.
@Suite struct RoomHostileTests: InStandUp {
    let room: StandUp

    init() throws { room = try StandUp() }

    // MARK: Coming in without being let in

    @Test func theSessionOfARoomTakesOnlyTokensOfPeopleInTheRoom() throws {
        ada.set { $0.lobby = true }
        ada.take()
        let mallory = stage.arrive(address: "m")
        mallory.open()
        for member in [ada, bob] {
            #expect(mallory.enter(room.joined[member]) == nil)
            #expect(mallory.refusals.last?.code == .tokenIdentity, "each token has its person")
            mallory.arrive()
        }
        #expect(ada.take().allSatisfy { $0.type == "room.knock" }, "nobody came in")
    }

    @Test func someoneWhoWaitsHasNoToken() throws {
        ada.set { $0.lobby = true }
        let mallory = stage.arrive()
        let answer = try #require(mallory.open())
        #expect(answer == .room(.waiting(.init(re: mallory.lastRequest, name: .standUp))))
        #expect(mallory.take() == [])
        #expect(mallory.admit(mallory)?.errorCode == .notJoined)
        #expect(mallory.set { $0.lobby = false }?.errorCode == .notJoined)
        #expect(mallory.signal(room.session)?.errorCode == .notJoined)
    }

    @Test func aTokenWorksForOnePlaceOnly() throws {
        let tab = stage.arrive(bob.identity)
        #expect(tab.enter(room.joined[bob])?.type == "session.joined", "the same person, on another connection")
        // The place is Bob's first connection's: it left the session, so it left the room, and the token died.
        #expect(bob.takeRooms().compactMap(\.ended).map(\.reason) == [.removed])
        #expect(tab.places.isEmpty)
        #expect(eve.takeRooms().compactMap(\.person).map(\.state) == [.left])
    }

    @Test func verbsForAnotherRoomDoNotExist() throws {
        let mallory = stage.arrive()
        mallory.open(RoomName("lair"), as: "Mallory")
        for verb: RoomVerb in [
            .remove(.init(connection: ada.connection)), .mute(.init(connection: ada.connection)),
            .role(.init(connection: ada.connection, role: .guest)), .admit(.init(connection: ada.connection)),
        ] { #expect(mallory.ask(.room(verb))?.errorCode == .notFound, "\(verb)") }
        #expect(ada.take() == [])
    }

    @Test func aBannedPersonStaysOutWhateverHappens() throws {
        ada.remove(bob, ban: true)
        let tabs = (0..<3).map { _ in stage.arrive(bob.identity) }
        for (index, tab) in tabs.enumerated() {
            ada.set { ($0.lobby, $0.locked, $0.password) = (index == 0, index == 1, index == 2 ? "x" : "") }
            #expect(tab.open(password: "x")?.errorCode == .roomBanned)
        }
        for guest in [ada, eve] { guest.leaveRoom() }
        #expect(tabs[0].open()?.errorCode == .roomBanned, "not even to the empty room")
    }

    // MARK: Floods

    @Test func aThousandKnocksReachHostsOnlyWithinTheBudgets() {
        ada.set { $0.lobby = true }
        ada.take()
        var answers: [String: Int] = [:]
        for _ in 0..<1000 { answers[stage.arrive(address: "flood").open()?.type ?? "", default: 0] += 1 }
        #expect(answers["room.waiting"] == 30)
        #expect(ada.takeRooms().count == 30)
        let friend = stage.arrive(address: "friend")
        #expect(friend.open()?.type == "room.waiting", "others can still knock")
        #expect(ada.admit(friend)?.type == "ok")
    }

    @Test func knockingAgainAndAgainIsLimited() {
        ada.set { $0.lobby = true }
        ada.take()
        var waiting = 0
        for _ in 0..<90 {
            let mallory = stage.arrive(address: "m")
            if mallory.open()?.type == "room.waiting" { waiting += 1 }
            mallory.leave()
        }
        #expect(waiting == 60)
        #expect(ada.takeRooms().count == 120)
    }

    @Test func onePersonWaitsOnce() {
        ada.set { $0.lobby = true }
        let mallory = stage.arrive()
        mallory.open()
        #expect(stage.arrive(mallory.identity).open()?.errorCode == .alreadyJoined)
    }

    @Test func aFloodOfReactionsIsRefusedAndThenCut() {
        for _ in 0..<2000 where bob.socket != nil { bob.react("🎉") }
        #expect(bob.closeCode == .tooMany)
        #expect(ada.takeRooms().compactMap(\.reacted).count == 10)
    }

    @Test func onePersonCannotCreateRoomsWithoutEnd() {
        var created = 0
        for number in 0..<50 {
            let tab = stage.arrive(bob.identity, address: "tabs")
            if tab.open(RoomName("room \(number)"))?.room?.joined != nil { created += 1 }
        }
        #expect(created == 10)
        #expect(stage.hub.roomCount == 11)
    }

    @Test func oneAddressCannotCreateRoomsWithoutEnd() {
        let stage = Stage { ($0.roomsPerAddress, $0.maxRooms) = (20, 30) }
        for number in 0..<40 { stage.arrive(address: "flood").open(RoomName("flood \(number)")) }
        #expect(stage.hub.roomCount == 20)
        for number in 0..<40 { stage.arrive(address: "\(number)").open(RoomName("other \(number)")) }
        #expect(stage.hub.roomCount == 30)
        stage.handle(.closeRoom(RoomName("flood 0") ?? .unset))
        #expect(stage.arrive(address: "flood").open(RoomName("again"))?.room?.joined != nil)
    }

    @Test func creatingAndLeavingRoomsLeavesNothingBehind() {
        for number in 0..<30 {
            let guest = stage.arrive(address: "g\(number)")
            guest.open(nil)
            guest.leave()
        }
        stage.pass(.seconds(61))
        #expect(stage.hub.roomCount == 1)
        for guest in [ada, bob, eve] { guest.leave() }
        stage.pass(.seconds(3600))
        #expect(stage.hub.roomCount == 0 && stage.hub.sessionCount == 0 && stage.hub.clientCount == 0)
    }

    @Test func roomsThatEndedLeaveNoTimersBehind() {
        let stage = Stage()
        let guest = stage.arrive()
        for _ in 0..<50 {
            guest.open(with: RoomChanges { $0.persistent = true })
            guest.leaveRoom()
            stage.handle(.closeRoom(.standUp))
            stage.pass(.seconds(1))
        }
        guest.leave()
        stage.pass(.seconds(3600))
        #expect(stage.hub.nextTimeout == nil, "no timer waits for a year")
    }

    @Test func manyBansKeepTheNewest() throws {
        let stage = Stage { ($0.roomBans, $0.routesMedia) = (3, true) }
        let host = stage.arrive()
        host.open()
        let guests = (0..<5).map { _ in stage.arrive() }
        for guest in guests {
            guest.open()
            #expect(host.remove(guest, ban: true)?.type == "ok")
            stage.pass(.seconds(1))
        }
        #expect(guests.map { $0.open()?.errorCode == .roomBanned } == [false, false, true, true, true])
    }

    // MARK: People who vanish

    @Test func anOperatorsBanEndsThePlaceInTheRoom() {
        stage.handle(.banned(Ban(subject: .identity(bob.person), reason: "rude", createdAt: stage.now)))
        #expect(bob.closeCode == .forbidden)
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.left])
    }

    @Test func aResumeThatFailsEndsThePlaceInTheRoom() {
        bob.drop()
        for _ in 0..<300 {
            eve.write("x")
            ada.react("👏")
            stage.pass(.milliseconds(50))
        }
        bob.resume(received: 0)
        stage.pass(.seconds(31))
        #expect(ada.takeRooms().compactMap(\.person).last?.state == .left)
        #expect(bob.write("?")?.errorCode == .notJoined)
    }
}
