import Signaling
import TestSupport
import Testing
import Wire

@Suite struct LeavingTests {
    private let stage = Stage()

    /// Returns two people in one session. The second one publishes.
    private func room() throws -> (Guest, Guest, SessionID, StreamID) {
        let session = stage.room()
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        let stream = try #require(bob.publish(session))
        ada.take()
        return (ada, bob, session, stream.id)
    }

    @Test func closingATabLeavesImmediately() throws {
        let (ada, bob, session, stream) = try room()
        bob.leave()
        #expect(
            ada.take() == [
                .session(.streamDestroyed(.init(session: session, stream: stream, reason: .clientDisconnected))),
                .session(
                    .connectionDestroyed(
                        .init(session: session, connection: bob.connection, reason: .clientDisconnected))),
            ])
        #expect(stage.hub.clientCount == 1)
    }

    @Test func byeLeavesImmediatelyAndClosesTheSocket() throws {
        let (ada, bob, _, _) = try room()
        bob.sayUnnumbered(.bye)
        #expect(bob.closeCode == .normal)
        #expect(ada.takeTypes() == ["session.streamDestroyed", "session.connectionDestroyed"])
        #expect(stage.hub.clientCount == 1)
    }

    @Test(arguments: [
        (UInt16(1000), true), (1001, true), (1005, true), (1006, false), (1011, false), (4408, false), (3000, false),
    ])
    func someCloseCodesAreLeavingAndAllOthersADrop(_ code: UInt16, _ isLeaving: Bool) {
        #expect(CloseCode(rawValue: code).isLeaving == isLeaving)
    }

    @Test func aDropIsReconnectingUntilTheGracePeriodEnds() throws {
        let (ada, bob, session, stream) = try room()
        bob.drop()
        #expect(ada.take() == [.session(.connectionReconnecting(.init(session: session, connection: bob.connection)))])
        stage.pass(.milliseconds(29_999))
        #expect(ada.take() == [])
        stage.pass(.milliseconds(1))
        #expect(
            ada.take() == [
                .session(.streamDestroyed(.init(session: session, stream: stream, reason: .networkDisconnected))),
                .session(
                    .connectionDestroyed(
                        .init(session: session, connection: bob.connection, reason: .networkDisconnected))),
            ])
        #expect(stage.hub.clientCount == 1)
    }

    @Test func returningWithinTheGracePeriodChangesNothing() throws {
        let (ada, bob, session, stream) = try room()
        bob.drop()
        stage.pass(.milliseconds(29_999))
        bob.resume()
        #expect(
            ada.take() == [
                .session(.connectionReconnecting(.init(session: session, connection: bob.connection))),
                .session(.connectionReconnected(.init(session: session, connection: bob.connection))),
            ])
        stage.pass(.seconds(60))
        #expect(ada.subscribe(session, stream)?.type == "ok")
        #expect(bob.takeTypes() == ["session.subscribed"])
    }

    @Test func everyDropStartsANewGracePeriod() throws {
        let (ada, bob, _, _) = try room()
        bob.drop()
        stage.pass(.seconds(20))
        bob.resume()
        stage.pass(.seconds(5))
        bob.drop()
        stage.pass(.seconds(29))
        ada.take()
        #expect(stage.hub.clientCount == 2)
        stage.pass(.seconds(1))
        #expect(stage.hub.clientCount == 1)
        #expect(ada.takeTypes() == ["session.streamDestroyed", "session.connectionDestroyed"])
    }

    @Test func aPartnerIsNotifiedOfADropAndMayPressNext() {
        let (ada, bob, matched) = stage.pair()
        bob.drop()
        #expect(ada.take() == [.roulette(.partner(.init(match: matched.match, state: .reconnecting)))])
        bob.resume()
        #expect(ada.take() == [.roulette(.partner(.init(match: matched.match, state: .connected)))])
        bob.drop()
        ada.take()
        #expect(ada.next()?.type == "roulette.waiting")
        #expect(ada.takeEnds() == [.next])
        bob.resume()
        #expect(bob.takeEnds() == [.partnerNext])
        #expect(!bob.isMatched)
    }

    @Test func aReplacedDeviceIsNotifiedWhenItReturns() {
        let (ada, bob, matched) = stage.pair()
        let tab = stage.arrive(bob.person)
        bob.drop()
        #expect(tab.start()?.type == "roulette.waiting")
        #expect(ada.takeEnds() == [.partnerLeft])
        bob.resume()
        #expect(bob.take() == [.roulette(.ended(.init(match: matched.match, reason: .stopped)))])
        #expect(!bob.isMatched)
        ada.stop()
        tab.drop()
        #expect(bob.start()?.type == "roulette.waiting")
        tab.take()
        tab.resume()
        #expect(tab.take().map(\.errorCode) == [.elsewhere], "the tab was notified that its search ended")
    }

    @Test func aPartnerWhoDoesNotReturnEndsTheMatchOnce() {
        let (ada, bob, _) = stage.pair()
        bob.drop()
        ada.take()
        stage.pass(.seconds(30))
        #expect(ada.takeEnds() == [.partnerLeft])
        #expect(stage.hub.matchCount == 0)
        #expect(stage.hub.waitingCount == 1, "the person is searching again")
    }

    @Test func aPartnerWhoLeavesEndsTheMatchAndItsSessionOnce() {
        let (ada, bob, matched) = stage.pair()
        for guest in [ada, bob] { guest.join(matched.publish.session, token: guest.match?.publish.token ?? "") }
        ada.take()
        bob.leave()
        let heard = ada.takeTypes()
        #expect(heard.filter { $0 == "roulette.ended" }.count == 1)
        #expect(heard.filter { $0 == "session.left" }.count == 1)
        #expect(heard.last == "roulette.waiting")
    }

    @Test func messagesFromAReplacedSocketAreIgnored() throws {
        let (_, bob, session, _) = try room()
        let old = try #require(bob.socket)
        bob.resume()
        let late = Envelope(
            seq: 99, ack: 0, message: ClientMessage.session(.signal(.init(session: session, type: nil, data: nil))))
        stage.handle(.message(old, late))
        stage.handle(.closed(old, leaving: true))
        #expect(bob.closeCode == nil)
        #expect(bob.signal(session)?.type == "ok")
    }

    @Test func eventsOfUnknownSocketsAreIgnored() {
        let nobody = SocketID(rawValue: 9999)
        stage.handle(.message(nobody, Envelope(seq: 1, message: .roulette(.next(.init())))))
        stage.handle(.unreadable(nobody, UnreadableMessage(error: WireError(.malformed, ""))))
        stage.handle(.closed(nobody, leaving: false))
        stage.handle(.expel(nobody, WireError(.banned, ""), .forbidden))
        #expect(stage.effects == [])
    }
}
