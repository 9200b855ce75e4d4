import Signaling
import TestSupport
import Testing
import Wire

/// The faults of RouletteTok (2011–2012), whose wire protocol this server supports. Each test describes a fault and
/// shows that it does not occur here.
@Suite struct OldFaultTests {
    private let stage = Stage()

    /// Fault 1: pressing Next while waiting paired a person with themselves.
    @Test func pressingNextWhileWaitingNeverPairsAPersonWithThemselves() {
        let ada = stage.arrive()
        #expect(ada.start()?.type == "roulette.waiting")
        for _ in 0..<5 { #expect(ada.next()?.type == "roulette.waiting") }
        stage.pass(.seconds(60))
        #expect(!ada.isMatched)
        #expect(ada.take() == [])
        #expect(stage.hub.waitingCount == 1)
    }

    /// Fault 2: "never the same partner again" compared new objects, so the same two people were paired again
    /// immediately.
    @Test func formerPartnersAreNotPairedImmediately() {
        let (ada, bob, _) = stage.pair()
        ada.next()
        #expect(!ada.isMatched)
        #expect(!bob.isMatched)
        #expect(stage.hub.waitingCount == 2)
        let eve = stage.arrive(name: "Eve")
        eve.start()
        #expect(ada.isMatched != bob.isMatched, "one is paired with Eve, the other waits")
        #expect(eve.isMatched)
    }

    /// Fault 3: the scan removed entries while iterating, so it skipped the entry after a dead one.
    @Test func aWaiterBehindADeadEntryIsFound() {
        let names = ["one", "two", "three"]
        let people = names.map { _ in stage.identity() }
        // All three wait at the same time, because they have blocked each other.
        let waiting = zip(names, people).map { stage.arrive($1, name: $0, record: PersonRecord(blocked: people)) }
        for guest in waiting { guest.start() }
        waiting[0].drop()
        let ada = stage.arrive()
        ada.start()
        #expect(ada.partner == "two")
        waiting[2].leave()
        let bob = stage.arrive()
        bob.start()
        #expect(!bob.isMatched)
    }

    /// Fault 4: a person left behind was removed from a new chat when the old partner left.
    @Test func aFormerPartnerCannotEndANewChat() {
        let (ada, bob, _) = stage.pair()
        let eve = stage.arrive(name: "Eve")
        eve.start()
        ada.next()
        let met = ada.isMatched ? ada : bob
        let left = ada.isMatched ? bob : ada
        #expect(met.partner == "Eve")
        met.take()
        eve.take()
        for verb: ClientMessage in [
            .roulette(.next(.init())), .roulette(.stop), .roulette(.start(.init())),
            .roulette(.block(.init(match: nil))),
        ] {
            left.say(verb)
        }
        left.leave()
        #expect(met.isMatched)
        #expect(met.takeEnds() == [])
        #expect(eve.takeEnds() == [])
    }

    /// Fault 5: nobody was notified when a partner's socket closed.
    @Test func aPartnerIsNotifiedOfDropsAndLeaving() {
        let (ada, bob, matched) = stage.pair()
        bob.drop()
        #expect(ada.take() == [.roulette(.partner(.init(match: matched.match, state: .reconnecting)))])
        stage.pass(.seconds(30))
        #expect(ada.takeEnds() == [.partnerLeft])
        let eve = stage.arrive()
        eve.start()
        #expect(ada.isMatched)
        eve.leave()
        #expect(ada.takeEnds() == [.partnerLeft])
    }

    /// Fault 6: two presses of Next, by both partners or by a double click, ended the next chat too.
    @Test func simultaneousNextEndsTheChatOnce() {
        let (ada, bob, _) = stage.pair()
        let (eve, dan) = (stage.arrive(), stage.arrive())
        ada.say(.roulette(.next(.init())))
        bob.say(.roulette(.next(.init())))
        #expect(ada.takeEnds() == [.next])
        #expect(bob.takeEnds() == [.partnerNext])
        eve.start()
        dan.start()
        #expect([ada, bob, eve, dan].areMatched)
        #expect(stage.hub.matchCount == 2)
        for guest in [ada, bob, eve, dan] { #expect(guest.takeEnds() == []) }
    }

    /// Fault 7: entries of closed sockets stayed in the queue.
    @Test func disconnectedPeopleLeaveTheQueue() {
        for leaving in [true, false] {
            let guest = stage.arrive()
            guest.start()
            #expect(stage.hub.waitingCount == 1)
            if leaving { guest.leave() } else { guest.drop() }
            #expect(stage.hub.waitingCount == 0)
        }
        stage.pass(.seconds(3600))
        #expect(stage.hub.clientCount == 0)
        #expect(stage.hub.personCount == 0)
        #expect(stage.hub.nextTimeout == nil)
    }

    /// Fault 8: `next` without its argument threw an error, which crashed the whole server.
    @Test(arguments: [
        #"{"type":"roulette.next","seq":1}"#, #"{"type":"roulette.next","seq":1,"args":[{}]}"#,
        #"{"type":"roulette.next","seq":1,"sessionId":null}"#,
        #"{"type":"roulette.next","seq":1,"sessionId":{"a":[]}}"#,
    ])
    func nextWithMissingOrOddArgumentsIsAnswered(_ text: String) throws {
        let message = try Envelope<ClientMessage>.decode(text.utf8).message
        #expect(stage.arrive().ask(message)?.errorCode == .notMatched)
        let (ada, _, _) = stage.pair()
        #expect(ada.ask(message)?.type == "roulette.waiting")
    }

    /// Fault 9: the client named the session, so naming someone else's session returned a token for that session.
    @Test func aNamedSessionGrantsNoToken() throws {
        let victim = stage.room()
        let (ada, bob, matched) = stage.pair()
        #expect(matched.publish.session != victim)
        // The roulette's verbs take no session, and their tokens open only the match's own session.
        let odd = #"{"type":"roulette.next","seq":9,"sessionId":"\#(victim)"}"#
        #expect(try Envelope<ClientMessage>.decode(odd.utf8).message == .roulette(.next(.init())))
        let token = try #require(bob.match).publish.token
        #expect(ada.join(victim, token: token) == nil)
        #expect(ada.closeCode == .token)
    }

    /// Fault 10: `initial` arrived only after a remote service had created a session. If that failed, there was no
    /// error.
    @Test func everyStartIsAnsweredImmediately() {
        let ban = Ban(subject: .address(""), reason: "", createdAt: stage.now)
        #expect(stage.arrive().start()?.type == "roulette.waiting")
        #expect(stage.arrive(record: PersonRecord(ban: ban)).start()?.errorCode == .banned)
        #expect(
            stage.arrive().start(Array(repeating: "x", count: 11).enumerated().map { "\($0)" })?.errorCode
                == .invalidInterests)
        #expect(stage.arrive().next()?.errorCode == .notMatched, "Next before Start")
    }

    /// Fault 11: everyone got a moderator token that never expired.
    @Test func aMatchMakesPublishersWhoseTokensExpire() throws {
        let (ada, bob, matched) = stage.pair()
        let session = matched.publish.session
        guard case .session(.joined(let joined))? = ada.join(session, token: matched.publish.token) else {
            return #expect(Bool(false), "the token must let its holder join")
        }
        #expect(joined.capabilities == SessionRights(.publisher).capabilities)
        let token = try #require(bob.match).publish.token
        bob.join(session, token: token)
        let force = SessionVerb.ForceDisconnect(session: session, connection: bob.connection)
        #expect(ada.ask(.session(.forceDisconnect(force)))?.errorCode == .notPermitted)
        stage.pass(stage.rules.matchTokenLifetime)
        #expect(throws: WireError.self) { try stage.project.verifySessionToken(token, for: session, now: stage.now) }
    }

    /// Fault 12: there were no limits, blocks, reports or interests.
    @Test func blocksReportsInterestsAndLimitsWork() {
        let ada = stage.arrive()
        ada.start(["chess"])
        let (eve, bob) = (stage.arrive(name: "Eve"), stage.arrive(name: "Bob"))
        eve.start(["jazz"])
        bob.start(["Chess"])
        #expect(ada.partner == "Bob")
        #expect(ada.report()?.type == "ok")
        #expect(ada.block()?.type == "ok")
        #expect(stage.changes.count == 2)
        for _ in 0..<150 { eve.say(.roulette(.count)) }
        #expect(eve.take().contains { $0.errorCode == .rateLimited })
    }
}
