import Foundation
import Signaling
import TestSupport
import Testing
import Wire

@Suite struct ResumingTests {
    private let stage = Stage { $0.replay = .init(messages: 8, bytes: 4096) }
    private let session: SessionID
    private let ada: Guest
    private let bob: Guest

    init() {
        session = stage.room()
        (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        ada.take()
    }

    private func texts(_ messages: [ServerMessage]) -> [String] {
        messages.compactMap { if case .session(.signal(let signal)) = $0 { signal.data } else { nil } }
    }

    @Test func missedMessagesArriveOnceAndInOrder() {
        bob.drop()
        for text in ["one", "two", "three"] { ada.signal(session, nil, text) }
        bob.resume()
        #expect(bob.welcome?.resumed == true)
        #expect(texts(bob.take()) == ["one", "two", "three"])
    }

    @Test func lostRequestsAreExecutedOnceAndAnswered() {
        bob.sayInVain(.session(.signal(.init(session: session, type: nil, data: "lost"))))
        bob.drop()
        #expect(texts(ada.take()) == [])
        bob.resume()
        #expect(texts(ada.take()) == ["lost"])
        #expect(bob.openRequests == 0)
    }

    @Test func aRequestSentTwiceIsExecutedAndAnsweredOnce() {
        let seq = bob.say(.session(.signal(.init(session: session, type: nil, data: "once"))))
        bob.transmit(.session(.signal(.init(session: session, type: nil, data: "once"))), seq: seq)
        #expect(texts(ada.take()) == ["once"])
    }

    /// The answer was in flight when the connection dropped. The server must send the answer again without executing
    /// the request again.
    @Test func aLostAnswerIsSentAgain() {
        let before = bob.received
        let seq = bob.say(.session(.signal(.init(session: session, type: nil, data: "hello"))))
        bob.miss(after: before)
        bob.drop()
        bob.resume()
        #expect(bob.welcome?.received == seq)
        let heard = bob.take()
        #expect(texts(heard) == ["hello"])
        #expect(heard.last == .ok(.init(re: seq)))
        #expect(texts(ada.take()) == ["hello"], "sent once")
    }

    @Test func everyWelcomeHasANewSecretAndRevokesTheOldOne() throws {
        let first = try #require(bob.welcome?.resume.secret)
        bob.drop()
        bob.resume()
        let second = try #require(bob.welcome?.resume.secret)
        #expect(first != second)
        bob.signal(session)
        let thief = Guest(on: stage, as: stage.identity())
        thief.resume(secret: first, received: 0)
        #expect(thief.refusals.map(\.code) == [.resumeFailed])
        #expect(thief.welcome?.resumed == false)
        #expect(thief.connection != bob.connection)
        #expect(bob.signal(session)?.type == "ok", "the owner is not affected")
    }

    @Test func thePreviousSecretIsValidWhileTheWelcomeMayBeLost() throws {
        let first = try #require(bob.welcome?.resume.secret)
        let received = bob.received
        bob.drop()
        for _ in 0..<3 {
            // The welcome never arrives, so the client knows only the first secret.
            let attempt = Guest(on: stage, as: bob.identity)
            attempt.resume(secret: first, received: received)
            #expect(attempt.welcome?.resumed == true)
            attempt.drop()
        }
        bob.resume(secret: first)
        #expect(bob.welcome?.resumed == true)
        bob.signal(session)
        bob.drop()
        bob.resume(secret: first)
        #expect(bob.welcome?.resumed == false, "the first message revokes the old secret")
    }

    @Test func resumingReplacesTheOldSocketUnnoticedByOthers() throws {
        let twin = Guest(on: stage, as: bob.identity)
        twin.resume(secret: bob.welcome?.resume.secret, received: bob.received)
        #expect(twin.welcome?.resumed == true)
        #expect(twin.connection == bob.connection)
        #expect(bob.closeCode == .replaced)
        #expect(bob.refusals.map(\.code) == [.replaced])
        #expect(ada.take() == [])
    }

    @Test(arguments: ["", "r_", "r_AAAA", "nonsense", "a_Dx4tPEtaaXiHlqW0w9Lh8PxeQMQJaOJ-3_oIextfGxc"])
    func anUnknownSecretIsRefusedAndTheSocketStartsOver(_ secret: String) {
        let eve = Guest(on: stage, as: stage.identity())
        eve.resume(secret: secret, received: 5)
        #expect(eve.refusals.map(\.code) == [.resumeFailed])
        #expect(eve.welcome?.resumed == false)
        #expect(eve.welcome?.received == 0)
        #expect(eve.welcome?.state == Snapshot())
        #expect(eve.enter(session, on: stage) != nil, "numbering restarts at one, and requests work")
    }

    /// All members of a session know a connection's ID. The ID must not suffice to take over or end the connection.
    @Test func aWrongSecretForAKnownConnectionDoesNothing() throws {
        let secret = try #require(bob.welcome?.resume.secret)
        let other = try #require(ada.welcome?.resume.secret)
        let changed = secret.indices.map { at in
            secret.replacingCharacters(in: at...at, with: secret[at] == "B" ? "C" : "B")
        }
        // One connection with another's proof, and texts that are almost the secret.
        let more: [String] = [
            "\(secret.prefix(23))\(other.dropFirst(23))", "a\(secret.dropFirst())", "\(secret.dropLast())",
            "\(secret)A",
            "\(secret)=", "\(secret)\u{0}", " \(secret)", secret.uppercased(), "\(secret)\(other)",
            "r_" + String(repeating: "A", count: 43),
        ]
        for (index, text) in (changed + more).enumerated() {
            let eve = Guest(on: stage, as: stage.identity())
            eve.resume(secret: text, received: [0, 1, bob.received, 1 << 53][index % 4])
            #expect(eve.refusals.map(\.code) == [.resumeFailed], "\(text)")
            #expect(eve.welcome?.resumed == false && eve.welcome?.state == Snapshot())
            eve.leave()
        }
        #expect(bob.closeCode == nil)
        #expect(bob.signal(session)?.type == "ok")
        #expect(stage.hub.clientCount == 2)
    }

    @Test func noSecretIsValidAfterARestart() {
        stage.restart()
        for guest in [ada, bob] {
            guest.resume()
            #expect(guest.refusals.map(\.code) == [.resumeFailed])
            #expect(guest.welcome?.resumed == false && guest.welcome?.state == Snapshot())
        }
    }

    @Test func resumingFailsAfterTheGracePeriod() {
        bob.drop()
        stage.pass(.seconds(30))
        bob.resume()
        #expect(bob.refusals.map(\.code) == [.resumeFailed])
        #expect(bob.welcome?.resumed == false)
        #expect(bob.welcome?.state == Snapshot())
    }

    @Test func aClientThatLeftCannotBeResumed() throws {
        let secret = bob.welcome?.resume.secret
        bob.leave()
        let again = Guest(on: stage, as: bob.identity)
        again.resume(secret: secret, received: 0)
        #expect(again.welcome?.resumed == false)
    }

    @Test(arguments: [false, true]) func aBufferOverflowEndsTheConnection(_ byBytes: Bool) {
        bob.drop()
        let (count, size) = byBytes ? (3, 2000) : (9, 1)
        for _ in 0..<count { ada.signal(session, nil, String(repeating: "x", count: size)) }
        ada.take()
        let before = bob.connection
        bob.resume()
        #expect(bob.refusals.map(\.code) == [.resumeFailed])
        #expect(bob.welcome?.resumed == false)
        #expect(bob.welcome?.state == Snapshot())
        #expect(bob.connection != before)
        #expect(
            ada.take() == [
                .session(
                    .connectionDestroyed(
                        SessionNotice.ConnectionDestroyed(
                            session: session, connection: before, reason: .networkDisconnected)))
            ])
        #expect(stage.hub.clientCount == 2)
    }

    @Test func theNewestMessageIsKeptEvenIfLong() {
        bob.drop()
        let long = String(repeating: "x", count: 8000)
        ada.signal(session, nil, long)
        bob.resume()
        // The drop was announced to Ada, not to Bob, so Bob lacks only the signal.
        #expect(texts(bob.take()) == [long])
    }

    @Test func acknowledgingUnsentMessagesFails() {
        bob.drop()
        bob.resume(received: bob.received + 1)
        #expect(bob.welcome?.resumed == false)
    }

    @Test func theSnapshotHasTheServersState() {
        let (ann, ben, matched) = stage.pair()
        ann.join(matched.publish.session, token: matched.publish.token)
        ann.drop()
        ann.resume()
        #expect(
            ann.welcome?.state
                == Snapshot(sessions: [matched.publish.session], roulette: .init(state: .matched, match: matched.match))
        )
        ben.next()
        ann.drop()
        ann.resume()
        #expect(ann.welcome?.state == Snapshot(sessions: [], roulette: .init(state: .waiting)))
        ann.stop()
        ann.drop()
        ann.resume()
        #expect(ann.welcome?.state == Snapshot())
    }

    @Test func onlyTheClientReceivesItsSecret() throws {
        let secret = try #require(bob.welcome?.resume.secret)
        bob.drop()
        ada.signal(session)
        bob.resume()
        for effect in stage.effects {
            guard case .transmit(let socket, let bytes) = effect, socket != bob.socket else { continue }
            #expect(!String(decoding: bytes, as: UTF8.self).contains(secret.suffix(20)))
        }
    }
}
