import Signaling
import TestSupport
import Testing
import Wire

/// PerchRTC's clients in mesh rooms, with each other and with native clients.
@Suite struct PerchClientTests {
    let stage = Stage { $0.routesMedia = true }

    private func mesh(_ change: (inout RoomChanges) -> Void = { _ in }) -> RoomChanges {
        var options = RoomChanges()
        (options.media, options.capacity) = (.mesh, 6)
        change(&options)
        return options
    }

    /// A native client in the room and its session, with a camera.
    ///
    /// - Returns: also the session, and the streams that were there before.
    private func browser() throws -> (Guest, SessionID, [StreamID]) {
        let guest = stage.arrive(address: "a")
        let joined = try #require(guest.open(as: "Ada", with: mesh())?.room?.joined)
        guard case .session(.joined(let roster))? = guest.enter(joined) else {
            Issue.record("the session refused the browser")
            return (guest, joined.admission.session, [])
        }
        var publish = SessionVerb.Publish()
        (publish.session, publish.videoType) = (joined.admission.session, .camera)
        #expect(guest.ask(.session(.publish(publish)))?.published != nil)
        return (guest, joined.admission.session, roster.streams.map(\.id))
    }

    /// The streams that were published since the previous take.
    private func newStreams(_ guest: Guest) -> [StreamID] {
        guest.take().compactMap { if case .session(.streamCreated(let news)) = $0 { news.stream.id } else { nil } }
    }

    private func negotiations(_ guest: Guest) -> [SessionNotice.Negotiate] {
        guest.take().compactMap { if case .session(.negotiate(let news)) = $0 { news } else { nil } }
    }

    // MARK: With each other

    @Test(arguments: PerchEnvelope.allCases, PerchEnvelope.allCases)
    func theOneWhoWasThereFirstOffers(first: PerchEnvelope, second: PerchEnvelope) {
        let amy = stage.arrivePerch("Amy", first)
        #expect(amy.take() == [.peers([])])
        let bob = stage.arrivePerch("Bob", second)
        #expect(bob.take() == [.peers(["Amy"])])
        #expect(amy.take() == [.connected("Bob")])
        amy.send(.offer("o"), "c1", to: "Bob")
        #expect(bob.take() == [.message("offer", connection: "c1", from: "Amy", text: "o")])
        bob.send(.answer("a"), "c1", to: "Amy")
        bob.send(.candidate(PerchCandidate(label: 0, mid: "audio", candidate: "candidate:1")), "c1", to: "Amy")
        #expect(
            amy.take() == [
                .message("answer", connection: "c1", from: "Bob", text: "a"),
                .message("ice", connection: "c1", from: "Bob", text: "candidate:1"),
            ])
        stage.pass(.seconds(120))
        #expect(amy.take() == [], "an answered offer is not asked for again")
        bob.leave()
        #expect(
            amy.take() == [.message("bye", connection: "c1", from: "Bob", text: nil), .removed("Bob")])
    }

    @Test func messagesOfAnotherPeerConnectionAreIgnored() {
        let (amy, bob) = (stage.arrivePerch("Amy"), stage.arrivePerch("Bob"))
        amy.send(.offer("o"), "c1", to: "Bob")
        amy.take()
        bob.take()
        bob.send(.offer("glare"), "c2", to: "Amy")
        bob.send(.bye, "c2", to: "Amy")
        bob.send(.answer("a"), "c2", to: "Amy")
        amy.send(.bye, "c0", to: "Bob")
        amy.send(.offer("o"), "c1", to: "nobody")
        #expect(amy.take() == [])
        #expect(bob.take() == [])
        bob.send(.answer("a"), "c1", to: "Amy")
        #expect(amy.take() == [.message("answer", connection: "c1", from: "Bob", text: "a")])
    }

    @Test func anOfferThatIsRefusedOrLostIsAskedForAgain() {
        let (amy, bob) = (stage.arrivePerch("Amy"), stage.arrivePerch("Bob"))
        amy.take()
        stage.pass(.seconds(5))
        let again: [PerchGuest.Heard] = [
            .message("bye", connection: "none", from: "Bob", text: nil), .connected("Bob"),
        ]
        #expect(amy.take() == again, "it made no offer")
        amy.send(.offer("o"), "c1", to: "Bob")
        bob.send(.bye, "c1", to: "Amy")
        #expect(amy.take() == [.message("bye", connection: "c1", from: "Bob", text: nil)])
        stage.pass(.seconds(10))
        #expect(amy.take() == again)
    }

    @Test func twoPhonesWithTheSameNameSeeEachOther() {
        let first = stage.arrivePerch("iPhone")
        let second = stage.arrivePerch("iPhone", .layered)
        #expect(first.take() == [.peers([]), .connected("iPhone~2")])
        #expect(second.take() == [.peers(["iPhone~2"])])
        let third = stage.arrivePerch("Pad")
        #expect(third.take() == [.peers(["iPhone", "iPhone~2"])])
        first.send(.offer("o"), "c1", to: "iPhone~2")
        #expect(second.take().contains(.message("offer", connection: "c1", from: "iPhone~2", text: "o")))
    }

    @Test func aLobbyThatOnlyPhonesAreInLetsPeopleInAsAnEmptyRoomDoes() throws {
        let phone = stage.arrivePerch("Amy")
        let host = stage.arrive(address: "h")
        #expect(host.open(as: "Hal")?.room?.joined?.role == .host)
        #expect(host.set { $0.lobby = true }?.type == "ok")
        let waiting = stage.arrive(address: "w")
        #expect(waiting.open(as: "Wes")?.type == "room.waiting")
        host.leaveRoom()
        #expect(waiting.takeRooms().compactMap(\.joined).map(\.role) == [.host], "a phone could not admit anyone")
        waiting.leaveRoom()
        #expect(stage.arrive(address: "x").open(as: "Xia")?.room?.joined?.role == .host)
        #expect(phone.closeCode == nil)
    }

    // MARK: With native clients

    @Test(arguments: [true, false])
    func aPhoneOffersToABrowserInEitherOrder(browserFirst: Bool) throws {
        let early = browserFirst ? try browser() : nil
        let phone = stage.arrivePerch("Amy")
        let (ada, session, before) = try early ?? browser()
        #expect(phone.take() == [.peers([])])
        let stream = try #require((before + newStreams(ada)).first)
        #expect(ada.ask(.session(.subscribe(.init(session: session, stream: stream))))?.errorCode == nil)
        stage.pass(.milliseconds(300))
        #expect(phone.take() == [.connected("Ada")])
        ada.take()
        phone.send(.offer("v=0\r\na=msid:ARDAMS audio\r\n"), "c1", to: "Ada")
        let offer = try #require(negotiations(ada).first)
        #expect(offer.negotiationID == "c1")
        #expect(offer.offerNumber == 1)
        #expect(ada.connection < offer.from, "so the browser is polite")
        guard case .object(let names)? = offer.streams else {
            Issue.record("the stream has no name")
            return
        }
        #expect(names["ARDAMS"] == .string(stream.description))
        var answer = SessionVerb.Negotiate()
        (answer.session, answer.to) = (session, offer.from)
        (answer.negotiationID, answer.offerNumber) = ("c1", 1)
        answer.description = SessionDescription(type: .answer, sdp: "a")
        ada.ask(.session(.negotiate(answer)))
        #expect(phone.take() == [.message("answer", connection: "c1", from: "Ada", text: "a")])
        answer.negotiationID = "old"
        ada.ask(.session(.negotiate(answer)))
        #expect(phone.take() == [])
    }

    @Test func anOfferOfABrowserMakesThePhoneBeginAgain() throws {
        let (ada, session, _) = try browser()
        let phone = stage.arrivePerch("Amy")
        stage.pass(.seconds(1))
        phone.send(.offer("v=0\r\nm=audio 9\r\n"), "c1", to: "Ada")
        let from = try #require(negotiations(ada).first)
        #expect(from.description?.sdp.contains("a=msid:") == true, "a stream without a name gets one")
        var verb = SessionVerb.Negotiate()
        (verb.session, verb.to, verb.negotiationID, verb.offerNumber) = (session, from.from, "c1", 1)
        verb.description = SessionDescription(type: .answer, sdp: "a")
        ada.ask(.session(.negotiate(verb)))
        phone.take()
        verb.offerNumber = 2
        verb.description = SessionDescription(type: .offer, sdp: "more")
        for _ in 0..<10 { ada.ask(.session(.negotiate(verb))) }
        stage.pass(.seconds(5))
        #expect(phone.take() == [.message("bye", connection: "c1", from: "Ada", text: nil), .connected("Ada")])
    }

    // MARK: Rules of the room

    @Test func aRoomRefusesAPhoneWithAReason() throws {
        let cases: [(String, (inout RoomChanges) -> Void)] = [
            ("media_unavailable", { $0.media = .routed }), ("room_locked", { $0.locked = true }),
            ("room_password", { $0.password = "x" }), ("room_refused", { $0.lobby = true }),
            ("room_full", { $0.capacity = 1 }),
        ]
        for (index, (code, change)) in cases.enumerated() {
            let name = "room \(index)"
            stage.arrive(address: "h").open(RoomName(name), with: mesh(change))
            #expect(check(name)?.errorCode?.rawValue == code)
            let phone = stage.arrivePerch(room: name)
            #expect(phone.take() == [.refused(code)])
            #expect(phone.closeCode == .forbidden)
        }
        #expect(stage.arrivePerch(room: "a/b").take() == [.refused("invalid_name")])
        #expect(check("new") == .admissible)
        stage.arrive(address: "h").open(RoomName("open"), with: mesh { _ in })
        #expect(check("open") == .admissible)
        #expect(check("a/b")?.errorCode == .invalidName)
    }

    /// Asks whether the room would admit a phone.
    private func check(_ room: String) -> OperatorReply? {
        let place = PerchPlace(envelope: .flat, domain: "d", application: "a", room: room, user: "iPhone")
        return stage.operate(.check(PerchClient.application(place, address: "p", stage.project)))
    }

    @Test(arguments: [true, false])
    func aRemovedPhoneDoesNotComeBackByItself(isBan: Bool) throws {
        let (ada, _, _) = try browser()
        let phone = stage.arrivePerch()
        let person = try #require(ada.takeRooms().compactMap(\.person).last)
        ada.ask(.room(.remove(.init(connection: person.connection, ban: isBan))))
        #expect(phone.take().last == .refused(isBan ? "room_banned" : "room_refused"))
        #expect(phone.closeCode == .forbidden)
        phone.arrive()
        #expect(phone.take() == [.refused(isBan ? "room_banned" : "room_refused")])
        #expect(stage.arrivePerch("Pad").closeCode == nil)
        stage.pass(.seconds(61))
        phone.arrive()
        #expect((phone.closeCode == nil) == !isBan)
    }

    @Test func aPhoneIsHostOnlyWhileNobodyElseIsThere() throws {
        let phone = stage.arrivePerch()
        let ada = stage.arrive(address: "a")
        #expect(ada.open(as: "Ada")?.room?.joined?.role == .host)
        let bob = stage.arrive(address: "b")
        #expect(bob.open(as: "Bob")?.room?.joined?.role == .guest)
        ada.leaveRoom()
        #expect(bob.takeRooms().compactMap(\.person).contains { $0.connection == bob.connection && $0.role == .host })
        #expect(phone.closeCode == nil)
    }

    @Test func malformedMessagesEndTheConnection() {
        let phone = stage.arrivePerch()
        stage.handle(.perch(phone.socket, .ping))
        for _ in 0..<10 { stage.handle(.perch(phone.socket, .unreadable)) }
        #expect(phone.closeCode == nil)
        stage.handle(.perch(phone.socket, .unreadable))
        #expect(phone.closeCode == .malformed)
    }
}
