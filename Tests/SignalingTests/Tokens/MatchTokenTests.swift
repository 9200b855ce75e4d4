import Signaling
import TestSupport
import Testing
import Wire

/// Tests that a match's tokens are revoked when the match ends.
@Suite struct MatchTokenTests {
    private let stage = Stage()

    @Test func bothJoinAndAreRemovedWhenTheMatchEnds() {
        let (ada, bob, matched) = stage.pair()
        let session = matched.publish.session
        for guest in [ada, bob] {
            #expect(guest.join(session, token: guest.match?.publish.token ?? "")?.type == "session.joined")
        }
        ada.take()
        bob.take()
        ada.next()
        #expect(ada.take().contains(.session(.left(.init(session: session, reason: .matchEnded)))))
        #expect(bob.take().contains(.session(.left(.init(session: session, reason: .matchEnded)))))
        #expect(ada.signal(session)?.errorCode == .notJoined)
        #expect(stage.hub.matchCount == 0)
    }

    @Test(arguments: [
        ClientMessage.roulette(.next(.init())), .roulette(.stop), .roulette(.block(.init(match: nil))), .bye,
    ])
    func howeverItEndsTheTokenIsDeadForEverybody(_ ending: ClientMessage) {
        let (ada, bob, matched) = stage.pair()
        let (session, token) = (matched.publish.session, matched.publish.token)
        if ending == .bye { ada.sayUnnumbered(.bye) } else { ada.say(ending) }
        let stranger = stage.arrive()
        #expect(stranger.join(session, token: token) == nil)
        #expect(stranger.refusals.map(\.code) == [.tokenMatchEnded])
        #expect(stranger.closeCode == .token)
        bob.take()
        #expect(bob.join(session, token: token)?.errorCode == .tokenMatchEnded)
        #expect(bob.closeCode == nil, "the join may have crossed the end of the match, so the connection stays open")
        for guest in [ada, bob] where guest.socket != nil { guest.stop() }
        stage.pass(.seconds(3600))
        let later = stage.arrive()
        later.join(session, token: token)
        #expect(later.closeCode == .token)
        #expect(stage.hub.sessionCount == 0)
    }

    enum Departure: CaseIterable { case closing, dropping, ban, restart }

    @Test(arguments: Departure.allCases) func theTokenIsDeadAfterItsPersonOrTheServerIsGone(_ departure: Departure) {
        let (ada, _, matched) = stage.pair()
        switch departure {
        case .closing: ada.leave()
        case .dropping:
            ada.drop()
            stage.pass(stage.rules.resumeGrace)
        case .ban: stage.handle(.banned(Ban(subject: .identity(ada.person), reason: "", createdAt: stage.now)))
        case .restart: stage.restart()
        }
        let stranger = stage.arrive()
        stranger.join(matched.publish.session, token: matched.publish.token)
        #expect(stranger.refusals.map(\.code) == [.tokenMatchEnded])
    }

    /// The partner presses Next, and another person is matched at once. The join for the first match arrives after the
    /// end of that match and after the start of the second.
    @Test func aJoinThatCrossesTheNextMatchIsHarmless() {
        let (ada, bob, first) = stage.pair()
        let (eve, dan) = (stage.arrive(), stage.arrive())
        bob.next()
        eve.start()
        dan.start()
        #expect(ada.isMatched)
        #expect(ada.match?.match != first.match)
        #expect(ada.join(first.publish.session, token: first.publish.token)?.errorCode == .tokenMatchEnded)
        #expect(ada.closeCode == nil)
        #expect(ada.isMatched)
    }

    @Test func onlyItsPersonCanUseAMatchsToken() throws {
        let (ada, bob, matched) = stage.pair()
        let session = matched.publish.session
        let (hers, his) = (matched.publish.token, try #require(bob.match).publish.token)
        #expect(hers != his)
        let third = stage.arrive()
        #expect(third.join(session, token: his) == nil)
        #expect(third.refusals.map(\.code) == [.tokenIdentity])
        #expect(third.closeCode == .token)
        #expect(stage.hub.sessionCount == 1)
        #expect(ada.join(session, token: hers)?.type == "session.joined")
        #expect(bob.join(session, token: his)?.type == "session.joined", "the place is still his")
        bob.ask(.session(.leave(.init(session: session))))
        #expect(bob.join(session, token: his)?.type == "session.joined")
    }

    @Test func theClaimRevealsNothingAndDiffersInEachMatch() throws {
        let (ada, bob, first) = stage.pair()
        func holder(_ token: String) throws -> String {
            let payload = try #require(Base64URL.decode(token.utf8.split(separator: UInt8(ascii: "."))[1]))
            guard case .object(let claims) = try JSONReader.parse(payload), case .string(let text)? = claims["holder"]
            else { throw WireError(.malformed, "no holder") }
            return text
        }
        let one = try holder(first.publish.token)
        #expect(!one.contains(ada.identity.description))
        #expect(try holder(try #require(bob.match).publish.token) != one)
        ada.next()
        bob.stop()
        stage.pass(.seconds(60))
        let (_, _, second) = stage.pair(ada)
        #expect(try holder(second.publish.token) != one, "a person's tokens of two matches cannot be linked")
    }

    /// The connection could not be resumed, and the server still waits for the old one to return.
    @Test func aNewConnectionOfTheSamePersonTakesThePlaceOfTheDroppedOne() throws {
        let (ada, bob, matched) = stage.pair()
        let session = matched.publish.session
        ada.join(session, token: matched.publish.token)
        bob.join(session, token: try #require(bob.match).publish.token)
        ada.drop()
        bob.take()
        let fresh = stage.arrive(ada.identity)
        #expect(fresh.join(session, token: matched.publish.token)?.type == "session.joined")
        #expect(bob.takeTypes() == ["session.connectionDestroyed", "session.connectionCreated"])
        #expect(bob.signal(session)?.type == "ok")
        #expect(fresh.takeTypes() == ["session.signal"])
        ada.resume()
        #expect(ada.take().contains(.session(.left(.init(session: session, reason: .forceDisconnected)))))
    }

    @Test func aSecondDeviceOfAPersonDoesNotTakeThePartnersPlace() throws {
        let (ada, bob, matched) = stage.pair()
        let session = matched.publish.session
        ada.join(session, token: matched.publish.token)
        ada.take()
        let phone = stage.arrive(ada.identity)
        #expect(phone.join(session, token: matched.publish.token)?.type == "session.joined")
        #expect(ada.takeTypes() == ["session.left"])
        #expect(bob.join(session, token: try #require(bob.match).publish.token)?.type == "session.joined")
    }

    @Test func anOldTokenDoesNotOpenTheNextMatch() throws {
        let (ada, bob, first) = stage.pair()
        ada.next()
        stage.pass(.seconds(10))
        let second = try #require(bob.match)
        let thief = stage.arrive()
        #expect(thief.join(second.publish.session, token: first.publish.token) == nil)
        #expect(thief.refusals.map(\.code) == [.tokenSession])
    }

    @Test func aSessionTokenWithoutAMatchStillOpensTheSession() {
        let (ada, _, matched) = stage.pair()
        ada.stop()
        #expect(stage.arrive().enter(matched.publish.session, on: stage) != nil, "this token is bound to no match")
    }

    @Test func droppedMembersAreRemovedWhenTheMatchEnds() {
        let (ada, bob, matched) = stage.pair()
        bob.join(matched.publish.session, token: bob.match?.publish.token ?? "")
        bob.drop()
        ada.next()
        bob.take()
        bob.resume()
        #expect(bob.welcome?.state.sessions == [])
        #expect(bob.take().contains(.session(.left(.init(session: matched.publish.session, reason: .matchEnded)))))
    }
}
