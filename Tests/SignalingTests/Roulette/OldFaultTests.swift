import Signaling
import TestSupport
import Testing
import Wire

/// The faults of RouletteTok (2011–2012), whose wire we speak and whose manners we do not copy. Each test says the fault and
/// shows that it is not here.
@Suite struct OldFaultTests {
    private let stage = Stage()

    /// 1. Pressing Next while waiting paired a person with himself.
    @Test func pressingNextWhileWaitingNeverPairsSomebodyWithHimself() {
        let ada = stage.arrive()
        #expect(ada.start()?.type == "roulette.waiting")
        for _ in 0..<5 { #expect(ada.next()?.type == "roulette.waiting") }
        stage.pass(.seconds(60))
        #expect(!ada.isMatched)
        #expect(ada.take() == [])
        #expect(stage.hub.waitingCount == 1)
    }

    /// 2. "Never the same partner again" compared fresh objects, so the two met again at once.
    @Test func whoJustLeftEachOtherAreNotPairedAtOnce() {
        let (ada, bob, _) = stage.pair()
        ada.next()
        #expect(!ada.isMatched)
        #expect(!bob.isMatched)
        #expect(stage.hub.waitingCount == 2)
        let eve = stage.arrive(name: "Eve")
        eve.start()
        #expect(ada.isMatched != bob.isMatched, "one of them met Eve, the other waits")
        #expect(eve.isMatched)
    }

    /// 3. The scan removed while it iterated: after a dead entry the next one was skipped.
    @Test func aWaiterBehindSomebodyWhoIsGoneIsFound() {
        let names = ["one", "two", "three"]
        let people = names.map { _ in stage.identity() }
        // They block each other, so that all three wait side by side.
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

    /// 4. Whoever left a pair behind was kicked out of his new chat when the old partner left in turn.
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

    /// 5. Nobody was told when his partner's socket was gone.
    @Test func aPartnerIsToldWhenALineDropsAndWhenSomebodyLeaves() {
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

    /// 6. Next by both at once, or a double click, fired again and killed the next chat.
    @Test func nextByBothAtOnceEndsOneChatOnce() {
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

    /// 7. Entries of sockets long gone stayed in the queue.
    @Test func nobodyWhoIsGoneStaysInTheQueue() {
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

    /// 8. `next` without its argument threw, and the whole server died.
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

    /// 9. The session came from the client: naming another's session got a token for it.
    @Test func nobodyGetsATokenForASessionThatHeNames() throws {
        let victim = stage.room()
        let (ada, bob, matched) = stage.pair()
        #expect(matched.publish.session != victim)
        // The verbs of the roulette take no session, and what they hand out opens the match's own alone.
        let odd = #"{"type":"roulette.next","seq":9,"sessionId":"\#(victim)"}"#
        #expect(try Envelope<ClientMessage>.decode(odd.utf8).message == .roulette(.next(.init())))
        let token = try #require(bob.match).publish.token
        #expect(ada.join(victim, token: token) == nil)
        #expect(ada.closeCode == .token)
    }

    /// 10. `initial` came whenever a remote service had made a session, or never; there was no error.
    @Test func everyStartIsAnsweredAtOnceOneWayOrTheOther() {
        let ban = Ban(subject: .address(""), reason: "", createdAt: stage.now)
        #expect(stage.arrive().start()?.type == "roulette.waiting")
        #expect(stage.arrive(record: PersonRecord(ban: ban)).start()?.errorCode == .banned)
        #expect(
            stage.arrive().start(Array(repeating: "x", count: 11).enumerated().map { "\($0)" })?.errorCode
                == .invalidInterests)
        #expect(stage.arrive().next()?.errorCode == .notMatched, "Next before Start")
    }

    /// 11. Everybody was a moderator, for ever.
    @Test func aMatchMakesPublishersWhoseTokensExpire() throws {
        let (ada, bob, matched) = stage.pair()
        let session = matched.publish.session
        guard case .session(.joined(let joined))? = ada.join(session, token: matched.publish.token) else {
            return #expect(Bool(false), "the token lets its holder in")
        }
        #expect(joined.capabilities == Capabilities(.publisher))
        let token = try #require(bob.match).publish.token
        bob.join(session, token: token)
        let force = SessionVerb.ForceDisconnect(session: session, connection: bob.connection)
        #expect(ada.ask(.session(.forceDisconnect(force)))?.errorCode == .notPermitted)
        stage.pass(stage.rules.matchTokenLifetime)
        #expect(throws: WireError.self) { try stage.project.verifySessionToken(token, for: session, now: stage.now) }
    }

    /// 12. No limits, no blocking, no reporting, no interests.
    @Test func peopleCanBlockReportAndFindTheirOwnAndNobodyCanFlood() {
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
