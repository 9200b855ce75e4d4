import Signaling
import TestSupport
import Testing
import Wire

/// What hosts and cohosts may do, and who becomes host.
@Suite struct RoomModerationTests: InStandUp {
    let room: StandUp

    init() throws { room = try StandUp() }

    private func roles(_ guest: Guest) -> [RoomRole] { guest.takeRooms().compactMap(\.person).map(\.role) }

    // MARK: Who is host

    @Test func whenTheLastHostLeavesTheLongestCohostBecomesHost() {
        ada.make(eve, .cohost)
        bob.take()
        ada.leaveRoom()
        let news = bob.takeRooms().compactMap(\.person)
        #expect(news.map(\.state) == [.left, .connected])
        #expect(news.last?.connection == eve.connection && news.last?.role == .host)
        #expect(eve.remove(bob)?.type == "ok")
    }

    @Test func withoutACohostTheLongestGuestBecomesHost() {
        ada.leave()
        #expect(bob.takeRooms().compactMap(\.person).last?.connection == bob.connection)
        #expect(eve.remove(bob)?.errorCode == .notPermitted)
        #expect(bob.set { $0.locked = true }?.type == "ok")
    }

    @Test func aDroppedHostStaysHostUntilTheGracePeriodEnds() {
        ada.drop()
        stage.pass(.seconds(29))
        #expect(bob.set { $0.locked = true }?.errorCode == .notPermitted)
        stage.pass(.seconds(2))
        #expect(bob.set { $0.locked = true }?.type == "ok")
    }

    @Test func aConnectedGuestBecomesHostBeforeADroppedOne() {
        bob.drop()
        ada.leaveRoom()
        #expect(eve.set { $0.locked = true }?.type == "ok")
    }

    @Test func aNewHostIsAModeratorInTheSessionToo() throws {
        #expect(
            bob.ask(.session(.forceDisconnect(.init(session: room.session, connection: eve.connection))))?
                .errorCode == .notPermitted)
        #expect(ada.make(bob, .host)?.type == "ok")
        #expect(
            bob.ask(.session(.forceDisconnect(.init(session: room.session, connection: eve.connection))))?
                .type == "ok")
        #expect(eve.takeRooms().compactMap(\.ended).map(\.reason) == [.removed], "and leaves the room with it")
        #expect(ada.make(bob, .guest)?.type == "ok")
        #expect(
            bob.ask(.session(.forceDisconnect(.init(session: room.session, connection: ada.connection))))?
                .errorCode == .notPermitted)
    }

    @Test func anOldTokenHasTheNewRole() throws {
        ada.make(bob, .host)
        ada.make(bob, .guest)
        ada.make(bob, .host)
        bob.ask(.session(.leave(.init(session: room.session))))
        let again = try #require(bob.enter(room.joined[bob]))
        #expect(again.capabilities?.forceDisconnect == true)
    }

    @Test func handingOverTakesTwoSteps() {
        #expect(ada.make(ada, .guest)?.errorCode == .notPermitted, "a room needs a host")
        #expect(ada.make(bob, .host)?.type == "ok")
        #expect(roles(eve) == [.host])
        #expect(ada.make(ada, .guest)?.type == "ok")
        #expect(ada.set { $0.locked = true }?.errorCode == .notPermitted)
        ada.leaveRoom()
        #expect(ada.open()?.room?.joined?.role == .guest, "the creator gave the room away")
    }

    @Test func rolesOfPeopleWhoLeftCannotChange() {
        bob.leaveRoom()
        #expect(ada.make(bob, .host)?.errorCode == .notFound)
    }

    // MARK: What roles allow

    @Test func guestsModerateNothing() {
        let verbs: [RoomVerb] = [
            .admit(.init(connection: eve.connection)), .deny(.init(connection: eve.connection)),
            .set(.init(options: RoomChanges { $0.lobby = true })), .mute(.init(connection: eve.connection)),
            .mute(.init()), .stopShare(.init(connection: eve.connection)), .stopShare(.init()),
            .remove(.init(connection: ada.connection)), .remove(.init(connection: eve.connection, ban: true)),
            .role(.init(connection: bob.connection, role: .host)),
        ]
        for verb in verbs { #expect(bob.ask(.room(verb))?.errorCode == .notPermitted, "\(verb)") }
        #expect(ada.takeRooms() == [] && eve.takeRooms() == [])
    }

    @Test func cohostsModerateGuestsButNotHosts() {
        ada.make(bob, .cohost)
        #expect(bob.make(bob, .host)?.errorCode == .notPermitted)
        #expect(bob.make(eve, .cohost)?.errorCode == .notPermitted)
        #expect(bob.remove(ada)?.errorCode == .notPermitted)
        #expect(bob.remove(ada, ban: true)?.errorCode == .notPermitted)
        #expect(
            bob.ask(.session(.forceDisconnect(.init(session: room.session, connection: ada.connection))))?
                .errorCode == .notPermitted)
        #expect(bob.mute(ada)?.type == "ok")
        #expect(bob.set { $0.lobby = true }?.type == "ok")
        let guest = stage.arrive()
        guest.open()
        #expect(bob.takeRooms().compactMap(\.knock).count == 1)
        #expect(bob.admit(guest)?.type == "ok")
        #expect(bob.remove(eve, ban: true)?.type == "ok")
    }

    @Test func aHostRemovesAnotherHost() {
        ada.make(bob, .host)
        #expect(bob.remove(ada)?.type == "ok")
        #expect(ada.takeRooms().compactMap(\.ended).map(\.reason) == [.removed])
        #expect(ada.open()?.room?.joined?.role == .guest, "the creator has lost the room")
    }

    @Test func nobodyRemovesThemselves() {
        #expect(ada.remove(ada)?.errorCode == .notPermitted)
        let tab = stage.arrive(ada.identity)
        tab.open()
        #expect(ada.remove(tab, ban: true)?.errorCode == .notPermitted, "the same person")
        #expect(ada.remove(tab)?.type == "ok")
    }

    @Test func aCreatorWhoRemovesAnOwnDeviceStaysCreator() {
        let tab = stage.arrive(ada.identity)
        tab.open()
        #expect(ada.remove(tab)?.type == "ok")
        ada.set { $0.locked = true }
        #expect(tab.open()?.room?.joined?.role == .host)
    }

    @Test func aRemovedPersonMayComeBackWithANewTokenOnly() throws {
        #expect(ada.remove(bob)?.type == "ok")
        #expect(bob.takeRooms().compactMap(\.ended) == [.init(name: .standUp, reason: .removed)])
        #expect(bob.places.isEmpty)
        #expect(eve.takeRooms().compactMap(\.person).map(\.state) == [.left])
        #expect(bob.enter(room.joined[bob])?.errorCode == .tokenMatchEnded)
        #expect(bob.write("hello?")?.errorCode == .notJoined)
        let again = try #require(bob.open(as: "Bob")?.room?.joined)
        #expect(bob.enter(again)?.type == "session.joined")
    }

    @Test func theTokenOfARemovedPersonIsDeadBeforeItIsUsed() throws {
        let guest = stage.arrive()
        let joined = try #require(guest.open()?.room?.joined)
        ada.remove(guest)
        #expect(guest.enter(joined)?.errorCode == .tokenMatchEnded)
    }

    // MARK: Options

    @Test func optionsChangeForEveryone() throws {
        #expect(ada.set { ($0.locked, $0.capacity, $0.chat) = (true, 2, false) }?.type == "ok")
        for guest in [ada, bob, eve] {
            let options = try #require(guest.takeRooms().compactMap(\.changed).first)
            #expect(options.locked && options.capacity == 2 && !options.chat)
        }
        #expect(stage.arrive().open()?.errorCode == .roomLocked)
        #expect(bob.write("still here")?.errorCode == .notPermitted, "the chat is off; everyone stays")
    }

    @Test func settingWhatIsSetTellsNobody() {
        #expect(ada.set { ($0.locked, $0.chat) = (false, true) }?.type == "ok")
        #expect(bob.take() == [])
    }

    @Test func howMediaTravelsNeverChanges() {
        #expect(ada.set { $0.media = .mesh }?.errorCode == .notPermitted)
        #expect(ada.set { $0.media = .routed }?.type == "ok")
        #expect(ada.set { ($0.capacity, $0.media, $0.locked) = (5, .mesh, true) }?.errorCode == .notPermitted)
        #expect(bob.take() == [], "all or nothing")
    }

    // MARK: Muting and sharing

    @Test func mutingAPersonSilencesTheirStreamsOnce() throws {
        let stream = try #require(bob.publish(room.session))
        let other = try #require(eve.publish(room.session))
        for guest in [ada, bob, eve] { guest.take() }
        #expect(ada.mute(bob)?.type == "ok")
        #expect(
            bob.take().first == .session(.muted(.init(session: room.session, active: true, stream: stream.id))))
        #expect(
            stage.media == [.update(stream.id, by: stream.connection, audio: false, video: true)],
            "the server forwards no more audio")
        #expect(bob.update(room.session, stream.id, audio: true)?.type == "ok", "only Bob unmutes Bob")
        #expect(stage.media == [.update(stream.id, by: stream.connection, audio: true, video: true)])
        _ = other
    }

    @Test func mutingAllSparesWhoAskedAndDoesNotLast() throws {
        let streams = try [ada, bob, eve].map { try #require($0.publish(room.session)) }
        for guest in [ada, bob, eve] { guest.take() }
        #expect(ada.mute(nil)?.type == "ok")
        #expect(
            stage.media == [
                .update(streams[1].id, by: streams[1].connection, audio: false, video: true),
                .update(streams[2].id, by: streams[2].connection, audio: false, video: true),
            ])
        #expect(!ada.take().contains { $0.type == "session.muted" })
        let late = try #require(eve.publish(room.session))
        #expect(late.hasAudio)
    }

    @Test func thereIsNoVerbThatUnmutes() throws {
        let stream = try #require(bob.publish(room.session))
        ada.mute(bob)
        ada.take()
        ada.mute(bob)
        ada.mute(nil)
        let changes = stage.changes.count
        #expect(stage.media.allSatisfy { if case .update(_, _, let audio, _) = $0 { !audio } else { true } })
        #expect(changes == stage.changes.count)
        _ = stream
    }

    @Test func hostsStopAScreenButNotACamera() throws {
        #expect(bob.publish(room.session) != nil)
        let screen = try #require(bob.share(room.session)?.published)
        bob.take()
        #expect(ada.stopShare(bob)?.type == "ok")
        let event = ServerMessage.session(
            .streamDestroyed(.init(session: room.session, stream: screen.id, reason: .forceUnpublished)))
        #expect(bob.take() == [event])
        #expect(bob.share(room.session)?.type == "session.published", "he may share again")
        #expect(ada.stopShare(nil)?.type == "ok")
        #expect(bob.take().count == 1)
    }

    @Test func onlyHostsShareIfTheRoomSaysSo() throws {
        ada.make(eve, .cohost)
        for guest in [bob, eve] { #expect(guest.share(room.session)?.type == "session.published") }
        bob.take()
        ada.set { $0.share = .hosts }
        #expect(bob.take().map(\.type) == ["room.changed", "session.streamDestroyed"])
        #expect(bob.share(room.session)?.errorCode == .notPermitted)
        #expect(eve.share(room.session)?.type == "session.published")
        #expect(bob.publish(room.session) != nil, "cameras are not concerned")
        eve.take()
        ada.make(eve, .guest)
        #expect(eve.take().map(\.type).filter { $0 == "session.streamDestroyed" }.count == 2)
        ada.set { $0.share = .all }
        #expect(bob.share(room.session)?.type == "session.published")
    }

    @Test func theRuleAboutScreensSurvivesAnEmptyRoom() throws {
        ada.set { $0.share = .hosts }
        for guest in [eve, bob, ada] { guest.leaveRoom() }
        #expect(stage.hub.sessionCount == 0)
        ada.open()
        let joined = try #require(bob.open()?.room?.joined)
        bob.enter(joined)
        #expect(bob.share(room.session)?.errorCode == .notPermitted)
    }

    @Test func moderatingPeopleWhoAreGoneFails() {
        bob.leaveRoom()
        for verb: RoomVerb in [
            .mute(.init(connection: bob.connection)), .stopShare(.init(connection: bob.connection)),
            .remove(.init(connection: bob.connection)), .admit(.init(connection: bob.connection)),
            .deny(.init(connection: bob.connection)),
        ] { #expect(ada.ask(.room(verb))?.errorCode == .notFound, "\(verb)") }
    }
}
