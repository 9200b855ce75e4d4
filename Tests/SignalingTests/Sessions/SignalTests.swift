import Signaling
import TestSupport
import Testing
import Wire

@Suite struct SignalTests {
    private let stage = Stage()
    private let session: SessionID
    private let ada: Guest
    private let bob: Guest
    private let eve: Guest

    init() {
        session = stage.room()
        (ada, bob, eve) = (stage.arrive(), stage.arrive(), stage.arrive())
        for guest in [ada, bob, eve] { guest.enter(session, on: stage) }
        for guest in [ada, bob, eve] { guest.take() }
    }

    private func received(_ type: String?, _ data: String?) -> ServerMessage {
        .session(.signal(.init(session: session, from: ada.connection, type: type, data: data)))
    }

    @Test func aSignalToAllAlsoReachesItsSender() {
        #expect(ada.signal(session, "chat", "hello")?.type == "ok")
        for guest in [ada, bob, eve] { #expect(guest.take() == [received("chat", "hello")]) }
    }

    @Test func aDirectSignalReachesOnlyItsRecipient() {
        #expect(ada.signal(session, "typing", "1", to: bob.connection)?.type == "ok")
        #expect(bob.take() == [received("typing", "1")])
        #expect(ada.take() == [])
        #expect(eve.take() == [])
    }

    @Test func aSignalToOneselfArrivesOnce() {
        ada.signal(session, "note", nil, to: ada.connection)
        #expect(ada.take() == [received("note", nil)])
    }

    @Test func typeAndDataAreOptional() {
        ada.signal(session, nil, nil)
        #expect(bob.take() == [received(nil, nil)])
    }

    @Test func aSignalToAnUnknownConnectionIsRefused() {
        let stranger = stage.arrive()
        #expect(ada.signal(session, to: stranger.connection)?.errorCode == .notFound)
        #expect(stranger.take() == [])
    }

    @Test(arguments: ["a b", "é", "a.b", "a/b", "a\n", String(repeating: "x", count: 129)])
    func typesWithInvalidCharactersAreRefused(_ type: String) {
        #expect(ada.signal(session, type)?.errorCode == .signalInvalid)
        #expect(bob.take() == [])
    }

    @Test func typesAreLimitedTo128Bytes() {
        let type = "AZaz09-_~" + String(repeating: "x", count: 119)
        #expect(ada.signal(session, type)?.type == "ok")
        #expect(bob.take() == [received(type, "hello")])
    }

    @Test func dataIsLimitedToEightKilobytes() {
        let most = String(repeating: "é", count: Limits.signalData / 2)
        #expect(ada.signal(session, "chat", most)?.type == "ok")
        #expect(bob.take() == [received("chat", most)])
        #expect(ada.signal(session, "chat", most + "x")?.errorCode == .signalTooLarge)
        #expect(bob.take() == [])
    }

    @Test func theSignalsOfOneSenderKeepTheirOrder() {
        for count in 0..<50 {
            ada.say(
                .session(
                    .signal(
                        .init(session: session, type: nil, data: "\(count)", to: count % 2 == 0 ? nil : bob.connection))
                ))
        }
        let heard: [String] = bob.take().compactMap {
            if case .session(.signal(let signal)) = $0 { signal.data } else { nil }
        }
        #expect(heard == (0..<50).map(String.init))
    }

    @Test func signalsAreNotReplayedToNewMembers() {
        ada.signal(session)
        let late = stage.arrive()
        late.enter(session, on: stage)
        #expect(late.take() == [])
    }

    @Test func aDroppedMemberReceivesSignalsWhenReturning() {
        bob.drop()
        ada.signal(session, "chat", "are you there?")
        bob.resume()
        #expect(bob.take() == [received("chat", "are you there?")])
    }
}
