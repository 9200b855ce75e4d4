import Signaling
import TestSupport
import Testing
import Wire

/// Lobby, lock, password and bans.
@Suite struct RoomAdmissionTests {
    private let stage = Stage { $0.routesMedia = true }
    private let ada: Guest
    private let bob: Guest
    private let eve: Guest

    init() {
        (ada, bob, eve) = (stage.arrive(address: "a"), stage.arrive(address: "b"), stage.arrive(address: "e"))
    }

    // MARK: Mesh

    @Test func aPersonWhoAcceptsOnlyRoutedMediaIsNotifiedBeforeJoiningAMeshRoom() {
        ada.open(with: RoomChanges { $0.media = .mesh })
        ada.take()
        #expect(bob.open(routedOnly: true)?.errorCode == .roomMesh)
        #expect(ada.take() == [], "nobody in the room notices")
        #expect(bob.write("hello")?.errorCode == .notJoined)
        #expect(bob.open()?.room?.joined?.options.media == .mesh)
    }

    @Test func whoAcceptsOnlyRoutedMediaJoinsAndCreatesRoutedRooms() {
        #expect(ada.open(routedOnly: true)?.room?.joined?.options.media == .routed)
        #expect(bob.open(routedOnly: true)?.room?.joined?.role == .guest)
    }

    @Test func aMeshRoomIsNotCreatedForThoseWhoAcceptOnlyRoutedMedia() {
        let mesh = RoomChanges { $0.media = .mesh }
        #expect(ada.open(with: mesh, routedOnly: true)?.errorCode == .roomMesh)
        #expect(stage.hub.roomCount == 0)
        let unrouted = Stage()
        #expect(unrouted.arrive().open(routedOnly: true)?.errorCode == .roomMesh, "such a server has only mesh rooms")
        #expect(unrouted.hub.roomCount == 0)
    }

    /// Otherwise a person who guesses names would learn how media travels in other people's rooms.
    @Test func onlyThoseWhoCouldComeInLearnThatARoomIsAMesh() {
        ada.open(with: RoomChanges { ($0.media, $0.password, $0.capacity) = (.mesh, "open sesame", 2) })
        #expect(bob.open(routedOnly: true)?.errorCode == .roomPassword)
        #expect(bob.open(password: "open barley", routedOnly: true)?.errorCode == .roomPassword)
        #expect(bob.open(password: "open sesame", routedOnly: true)?.errorCode == .roomMesh)
        bob.open(password: "open sesame")
        #expect(eve.open(password: "open sesame", routedOnly: true)?.errorCode == .roomFull)
        ada.set { $0.locked = true }
        #expect(eve.open(password: "open sesame", routedOnly: true)?.errorCode == .roomLocked)
    }

    /// Otherwise they would wait for a room that they cannot use, and a host would admit them in vain.
    @Test func whoCouldWaitForAMeshRoomLearnsItInsteadOfKnocking() {
        let stage = Stage { ($0.routesMedia, $0.roomLobby) = (true, 1) }
        let (ada, bob, eve) = (stage.arrive(address: "a"), stage.arrive(address: "b"), stage.arrive(address: "e"))
        ada.open(with: RoomChanges { ($0.media, $0.lobby) = (.mesh, true) })
        ada.take()
        #expect(bob.open(routedOnly: true)?.errorCode == .roomMesh)
        #expect(ada.take() == [], "nobody in the room notices")
        bob.open()
        #expect(eve.open(routedOnly: true)?.errorCode == .rateLimited, "the lobby is full, so she could not wait")
        ada.deny(bob)
        #expect(bob.open(routedOnly: true)?.errorCode == .roomRefused)
        #expect(eve.open(routedOnly: true)?.errorCode == .roomMesh)
    }

    // MARK: Lobby

    @Test func aLobbyLetsPeopleKnockAndHostsAdmit() throws {
        ada.open(with: RoomChanges { $0.lobby = true })
        #expect(bob.open(as: "Bob")?.room == .waiting(.init(re: bob.lastRequest, name: .standUp)))
        let knock = RoomNotice.Knock(connection: bob.connection, displayName: "Bob", waiting: true)
        #expect(ada.takeRooms() == [.knock(knock)])
        #expect(ada.admit(bob)?.type == "ok")
        let joined = try #require(bob.takeRooms().first?.joined)
        #expect(joined.re == nil)
        #expect(joined.role == .guest)
        #expect(bob.enter(joined)?.type == "session.joined")
        #expect(ada.takeRooms().map { $0.knock?.waiting ?? true } == [false, true], "the knock is over, and Bob is in")
    }

    @Test func aDeniedPersonIsNotifiedAndMustWaitBeforeTheNextKnock() {
        ada.open(with: RoomChanges { $0.lobby = true })
        bob.open()
        #expect(ada.deny(bob)?.type == "ok")
        #expect(bob.takeRooms().compactMap(\.refused).map(\.code) == [.roomRefused])
        #expect(bob.open()?.errorCode == .roomRefused)
        stage.pass(.seconds(61))
        #expect(bob.open()?.type == "room.waiting")
    }

    @Test func whoWaitsMaySayNothingAndGetsNothing() {
        ada.open(with: RoomChanges { $0.lobby = true })
        bob.open()
        #expect(bob.write("let me in")?.errorCode == .notJoined)
        #expect(bob.raise()?.errorCode == .notJoined)
        #expect(bob.admit(bob)?.errorCode == .notJoined)
        bob.take()
        ada.write("secret")
        #expect(bob.take() == [])
    }

    @Test func leavingTheLobbyIsReportedToTheHosts() {
        ada.open(with: RoomChanges { $0.lobby = true })
        for how in 0..<3 {
            let guest = stage.arrive(address: "g\(how)")
            guest.open()
            ada.take()
            switch how {
            case 0: guest.leaveRoom()
            case 1: guest.leave()
            default:
                guest.drop()
                stage.pass(.seconds(31))
            }
            #expect(ada.takeRooms().compactMap(\.knock).map(\.waiting) == [false])
            #expect(ada.admit(guest)?.errorCode == .notFound)
        }
    }

    @Test func whoDroppedWhileWaitingComesInAsReconnecting() {
        ada.open(with: RoomChanges { $0.lobby = true })
        bob.open()
        bob.drop()
        ada.take()
        #expect(ada.admit(bob)?.type == "ok")
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.reconnecting])
        bob.resume()
        #expect(bob.takeRooms().contains { $0.joined != nil })
        #expect(ada.takeRooms().compactMap(\.person).map(\.state) == [.connected])
    }

    @Test func turningTheLobbyOffLetsEveryoneInWhoFits() {
        ada.open(with: RoomChanges { ($0.lobby, $0.capacity) = (true, 2) })
        bob.open()
        eve.open()
        ada.take()
        #expect(ada.set { $0.lobby = false }?.type == "ok")
        #expect(bob.takeRooms().compactMap(\.joined).count == 1)
        #expect(eve.takeRooms() == [], "she still waits")
        #expect(stage.arrive().open()?.errorCode == .roomFull)
        bob.leaveRoom()
        #expect(eve.takeRooms().compactMap(\.joined).count == 1, "the place is hers")
    }

    @Test func aFullRoomAdmitsNobody() {
        ada.open(with: RoomChanges { ($0.lobby, $0.capacity) = (true, 2) })
        bob.open()
        eve.open()
        ada.admit(bob)
        #expect(ada.admit(eve)?.errorCode == .roomFull)
        #expect(stage.arrive().open()?.errorCode == .roomFull, "nobody waits for a full room")
    }

    @Test func aNewHostSeesWhoWaits() {
        ada.open()
        bob.open()
        ada.set { $0.lobby = true }
        eve.open(as: "Eve")
        bob.take()
        ada.leaveRoom()
        #expect(bob.takeRooms().compactMap(\.knock).map(\.displayName) == ["Eve"])
        #expect(bob.admit(eve)?.type == "ok")
    }

    @Test func aPersonWhoWaitsForARoomThatEndsIsNotified() {
        ada.open(with: RoomChanges { $0.lobby = true })
        bob.open()
        bob.take()
        ada.leaveRoom()
        stage.pass(.seconds(61))
        #expect(bob.takeRooms().compactMap(\.refused).map(\.code) == [.roomNotFound])
        #expect(bob.open()?.room?.joined?.role == .host)
    }

    @Test func whoDroppedWhileWaitingMayKnockOnAnotherConnection() {
        ada.open(with: RoomChanges { $0.lobby = true })
        bob.open(as: "Bob")
        #expect(stage.arrive(bob.identity).open()?.errorCode == .alreadyJoined, "he waits already")
        bob.drop()
        ada.take()
        let again = stage.arrive(bob.identity)
        #expect(again.open(as: "Bob")?.type == "room.waiting")
        #expect(ada.takeRooms().compactMap(\.knock).map(\.waiting) == [false, true])
        bob.resume()
        #expect(bob.takeRooms().compactMap(\.refused).map(\.code) == [.alreadyJoined])
        #expect(bob.write("still here?")?.errorCode == .notJoined)
        #expect(ada.admit(bob)?.errorCode == .notFound)
        #expect(ada.admit(again)?.type == "ok")
        #expect(again.takeRooms().compactMap(\.joined).count == 1)
    }

    @Test func aKnockThatIsRefusedCostsNobodyThePlace() {
        ada.open(with: RoomChanges { ($0.lobby, $0.capacity) = (true, 2) })
        bob.open(as: "Bob")
        ada.admit(bob)
        let tab = stage.arrive(bob.identity)
        #expect(tab.open()?.errorCode == .roomFull)
        ada.set { $0.capacity = 3 }
        tab.open()
        ada.deny(tab)
        ada.set { $0.capacity = 2 }
        bob.drop()
        ada.take()
        #expect(tab.open()?.errorCode == .roomRefused)
        #expect(ada.takeRooms() == [], "he still has his place")
        bob.resume()
        #expect(bob.write("back")?.type == "ok")
    }

    @Test func whoGivesWayInARoomWithALobbyWaits() {
        ada.open(with: RoomChanges { ($0.lobby, $0.capacity) = (true, 2) })
        bob.open(as: "Bob")
        ada.admit(bob)
        bob.drop()
        ada.take()
        let again = stage.arrive(bob.identity)
        #expect(again.open(as: "Bob")?.type == "room.waiting")
        let news = ada.takeRooms()
        #expect(news.compactMap(\.person).map(\.state) == [.left])
        #expect(news.compactMap(\.knock).map(\.connection) == [again.connection])
        #expect(ada.admit(again)?.type == "ok", "the place is free")
    }

    @Test func whoWaitsWhenEveryoneHasLeftARoomWithoutACreatorOpensIt() throws {
        ada.open(with: RoomChanges { ($0.lobby, $0.persistent) = (true, true) })
        bob.open()
        ada.admit(bob)
        ada.make(bob, .host)
        ada.make(ada, .guest)
        eve.open()
        let next = stage.arrive()
        next.open()
        ada.leaveRoom()
        eve.take()
        bob.leaveRoom()
        #expect(try #require(eve.takeRooms().compactMap(\.joined).first).role == .host)
        #expect(next.takeRooms() == [], "the next one waits for her")
        #expect(eve.admit(next)?.type == "ok")
    }

    // MARK: Lock

    @Test func nobodyComesIntoALockedRoomByWaiting() {
        ada.open(with: RoomChanges { ($0.lobby, $0.capacity) = (true, 2) })
        bob.open()
        eve.open()
        ada.set { ($0.lobby, $0.locked) = (false, true) }
        #expect(bob.takeRooms() == [] && eve.takeRooms() == [], "they still wait")
        #expect(ada.admit(bob)?.type == "ok", "a host may let them in")
        bob.leaveRoom()
        #expect(eve.takeRooms() == [])
        ada.set { $0.locked = false }
        #expect(eve.takeRooms().compactMap(\.joined).count == 1)
    }

    @Test func aLockedRoomRefusesEveryoneButItsCreator() {
        ada.open()
        bob.open()
        ada.set { $0.locked = true }
        #expect(eve.open()?.errorCode == .roomLocked)
        ada.leaveRoom()
        #expect(ada.open()?.room?.joined?.role == .host)
        bob.leaveRoom()
        #expect(bob.open()?.errorCode == .roomLocked)
        ada.set { $0.locked = false }
        #expect(bob.open()?.room?.joined != nil)
    }

    // MARK: Password

    @Test func aPasswordIsRequiredAndNeverSent() throws {
        let joined = try #require(ada.open(with: RoomChanges { $0.password = "open sesame" })?.room?.joined)
        #expect(joined.options.password)
        #expect(bob.open()?.errorCode == .roomPassword)
        #expect(bob.open(password: "open barley")?.errorCode == .roomPassword)
        #expect(bob.open(password: "")?.errorCode == .roomPassword)
        #expect(bob.open(password: "open sesame")?.room?.joined != nil)
        let sent = stage.effects.compactMap { if case .transmit(_, let bytes) = $0 { bytes } else { nil } }
        #expect(!sent.contains { String(decoding: $0, as: UTF8.self).contains("sesame") })
    }

    @Test func hostsChangeAndRemoveThePassword() {
        ada.open(with: RoomChanges { $0.password = "one" })
        #expect(ada.set { $0.password = "two" }?.type == "ok")
        #expect(bob.open(password: "one")?.errorCode == .roomPassword)
        #expect(bob.open(password: "two")?.room?.joined != nil)
        ada.take()
        #expect(ada.set { $0.password = "" }?.type == "ok")
        #expect(ada.takeRooms().compactMap(\.changed).map(\.password) == [false])
        #expect(eve.open()?.room?.joined != nil)
    }

    @Test func guessingPasswordsIsLimitedPerAddress() {
        ada.open(with: RoomChanges { $0.password = "open sesame" })
        for guess in 0..<10 { #expect(eve.open(password: "\(guess)")?.errorCode == .roomPassword) }
        #expect(eve.open(password: "open sesame")?.errorCode == .rateLimited, "not even the right one is tried")
        #expect(stage.arrive(address: "e").open(password: "open sesame")?.errorCode == .rateLimited)
        #expect(bob.open(password: "open sesame")?.room?.joined != nil, "others are not affected")
        stage.pass(.seconds(7))
        #expect(eve.open(password: "open sesame")?.room?.joined != nil)
    }

    @Test func rightPasswordsAreNotLimited() {
        ada.open(with: RoomChanges { $0.password = "open sesame" })
        for _ in 0..<20 {
            #expect(stage.arrive(address: "school").open(password: "open sesame")?.room?.joined != nil)
        }
    }

    // MARK: Bans

    @Test func aBannedPersonIsRemovedEverywhereAndStaysOut() throws {
        ada.open(with: RoomChanges { $0.lobby = false })
        let his = try #require(bob.open()?.room?.joined)
        bob.enter(his)
        let tab = stage.arrive(bob.identity)
        tab.open()
        #expect(ada.remove(bob, ban: true)?.type == "ok")
        for guest in [bob, tab] {
            #expect(guest.takeRooms().compactMap(\.ended).map(\.reason) == [.banned])
            #expect(guest.open()?.errorCode == .roomBanned)
        }
        #expect(bob.enter(his)?.errorCode == .tokenMatchEnded)
        ada.set { $0.lobby = true }
        #expect(bob.open()?.errorCode == .roomBanned, "not even to the lobby")
    }

    @Test func whoWaitsCanBeBanned() {
        ada.open(with: RoomChanges { $0.lobby = true })
        bob.open()
        bob.take()
        #expect(ada.remove(bob, ban: true)?.type == "ok")
        #expect(bob.takeRooms().compactMap(\.refused).map(\.code) == [.roomBanned])
        stage.pass(.seconds(100))
        #expect(bob.open()?.errorCode == .roomBanned)
    }
}
