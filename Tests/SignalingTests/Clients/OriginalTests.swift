import Signaling
import TestSupport
import Testing
import Wire

/// RouletteTok's six events on our roulette: what its clients are told, and what none of its faults does here.
@Suite("RouletteTok's wire") struct OriginalTests {
    private let stage = Stage()

    private func grant(_ admission: Admission?) -> SessionGrant? {
        admission.flatMap { try? stage.project.verifySessionToken($0.token, for: $0.session, now: stage.now) }
    }

    private func pair() -> (Original, Original) {
        let (ada, bob) = (stage.arriveOriginal(), stage.arriveOriginal())
        ada.next()
        bob.next()
        #expect(ada.take() == [.empty] + [ada.partner.map { .subscribe($0) }].compactMap { $0 })
        bob.take()
        return (ada, bob)
    }

    @Test("everybody gets a session of his own first, and may publish in it")
    func initial() {
        let (ada, bob) = (stage.arriveOriginal(), stage.arriveOriginal())
        #expect(ada.home.session != bob.home.session)
        #expect(grant(ada.home)?.role == .publisher)
        #expect(grant(ada.home)?.match == nil)
        #expect(stage.hub.waitingCount == 0)
    }

    @Test("two are told each other's session, to watch only, for as long as they are together")
    func subscribe() {
        let (ada, bob) = pair()
        #expect(ada.partner?.session == bob.home.session)
        #expect(bob.partner?.session == ada.home.session)
        #expect(grant(ada.partner)?.role == .subscriber)
        #expect(grant(ada.partner)?.match != nil)
        #expect(grant(ada.partner)?.match == grant(bob.partner)?.match)
    }

    @Test("whoever finds somebody at once is not told that nobody is there")
    func noEmptyWhenSomebodyWaits() {
        let (ada, bob) = (stage.arriveOriginal(), stage.arriveOriginal())
        ada.next()
        #expect(ada.take() == [.empty])
        bob.next()
        #expect(bob.take() == [bob.partner.map { .subscribe($0) }].compactMap { $0 })
        #expect(ada.take().count == 1)
    }

    @Test("a native client and an original each publish at home and watch the other's; there is no text chat")
    func mixed() throws {
        let (ada, bob) = (stage.arriveOriginal(), stage.arrive(name: "Bob"))
        ada.next()
        bob.start()
        let match = try #require(bob.match)
        #expect(!match.textChat)
        #expect(match.subscribe.session == ada.home.session)
        #expect(ada.partner?.session == match.publish.session)
        #expect(match.publish.session != match.subscribe.session)
        #expect(grant(match.publish)?.role == .publisher)
        #expect(grant(match.subscribe)?.role == .subscriber)
        for admission in [match.publish, match.subscribe] {
            #expect(bob.join(admission.session, token: admission.token)?.type == "session.joined")
        }
    }

    @Test("Next leaves both alone until they ask again, as their clients do")
    func disconnectPartners() {
        let (ada, bob) = pair()
        ada.disconnectPartners()
        #expect(ada.take() == [.disconnectPartner])
        #expect(bob.take() == [.disconnectPartner])
        #expect(stage.hub.waitingCount == 0)
        ada.next()
        bob.next()
        #expect(ada.take() == [.empty] && bob.take() == [.empty], "who just left each other are not paired at once")
        stage.pass(stage.rules.rematchWait + .seconds(1))
        #expect(ada.partner?.session == bob.home.session)
    }

    @Test("an original's Next sends a native partner on, who searches by himself")
    func nativePartner() {
        let (ada, bob) = (stage.arriveOriginal(), stage.arrive())
        ada.next()
        bob.start()
        bob.take()
        ada.disconnectPartners()
        #expect(bob.take().map(\.type) == ["roulette.ended", "roulette.waiting"])
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("a native client's Next tells the original, who is idle until he asks")
    func originalPartner() {
        let (ada, bob) = (stage.arriveOriginal(), stage.arrive())
        ada.next()
        bob.start()
        ada.take()
        bob.next()
        #expect(ada.take() == [.disconnectPartner])
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("the partner is told when a socket goes, however it goes", arguments: [true, false])
    func vanishing(leaving: Bool) {
        let (ada, bob) = pair()
        ada.vanish(leaving: leaving)
        #expect(bob.take() == [.disconnectPartner])
        #expect(stage.hub.clientCount == 1)
        #expect(stage.hub.personCount == 1, "somebody who cannot come back leaves nothing behind")
        #expect(stage.hub.matchCount == 0)
    }

    @Test("whoever waits and goes leaves no entry behind")
    func vanishingWhileWaiting() {
        let ada = stage.arriveOriginal()
        ada.next()
        ada.vanish()
        #expect(stage.hub.waitingCount == 0)
        #expect(stage.hub.personCount == 0)
    }

    @Test("next said again while waiting is answered, and never pairs somebody with himself")
    func nextTwice() {
        let ada = stage.arriveOriginal()
        for _ in 0..<5 { ada.next() }
        stage.pass(.seconds(60))
        #expect(ada.partner == nil)
        #expect(stage.hub.waitingCount == 1)
    }

    /// Both press the button, or one does twice: the second time must not end the chat that came in between.
    @Test("disconnectPartners said again does nothing")
    func disconnectPartnersTwice() {
        let (ada, bob) = pair()
        ada.disconnectPartners()
        bob.disconnectPartners()
        ada.disconnectPartners()
        #expect(ada.take() == [.disconnectPartner])
        #expect(bob.take() == [.disconnectPartner])
        let eve = stage.arriveOriginal()
        eve.next()
        ada.next()
        #expect(ada.partner?.session == eve.home.session)
        bob.disconnectPartners()
        #expect(ada.partner?.session == eve.home.session)
    }

    /// 4. The one left behind was kicked out of his new chat when the old partner left in turn.
    @Test("next in a chat ends it for the other, and the caller is told nothing but the next partner")
    func nextInAChat() {
        let (ada, bob) = pair()
        let eve = stage.arriveOriginal()
        eve.next()
        eve.take()
        ada.next()
        #expect(bob.take() == [.disconnectPartner])
        #expect(ada.take() == ada.partner.map { [.subscribe($0)] })
        #expect(ada.partner?.session == eve.home.session)
        bob.vanish()
        #expect(ada.take() == [])
    }

    /// 9. The token of an ex-partner's session let people watch his next chat.
    @Test("a token is dead when its match is over, and its holder is put out")
    func deadToken() throws {
        let (ada, bob) = pair()
        let watcher = stage.arrive()
        let admission = try #require(ada.partner)
        #expect(watcher.join(admission.session, token: admission.token)?.type == "session.joined")
        watcher.take()
        bob.disconnectPartners()
        #expect(watcher.takeTypes() == ["session.left"])
        let eve = stage.arriveOriginal()
        eve.next()
        bob.next()
        watcher.join(admission.session, token: admission.token)
        #expect(watcher.closeCode == .token)
    }

    @Test("one alone may watch by a match's token, however far it was passed on")
    func onePlace() throws {
        let (ada, _) = pair()
        let (first, second) = (stage.arrive(), stage.arrive())
        let admission = try #require(ada.partner)
        #expect(first.join(admission.session, token: admission.token)?.type == "session.joined")
        #expect(second.join(admission.session, token: admission.token)?.type == "error")
    }

    @Test("a penalty shows as an empty room, and ends by itself")
    func penalty() {
        let ada = stage.arriveOriginal()
        for _ in 0..<stage.rules.skipsBeforeWait {
            let other = stage.arriveOriginal()
            other.next()
            ada.next()
            #expect(ada.partner?.session == other.home.session)
            ada.disconnectPartners()
            other.vanish()
        }
        let eve = stage.arriveOriginal()
        eve.next()
        ada.take()
        ada.next()
        #expect(ada.take() == [.empty])
        stage.pass(stage.rules.firstSkipWait + .milliseconds(10))
        #expect(ada.partner?.session == eve.home.session)
    }

    @Test("a full queue shows as an empty room, and is tried again")
    func fullQueue() {
        let stage = Stage { $0.entriesPerAddress = 1 }
        let (ada, bob) = (stage.arriveOriginal(address: "192.0.2.1"), stage.arriveOriginal(address: "192.0.2.1"))
        ada.next()
        bob.next()
        #expect(bob.take() == [.empty])
        #expect(stage.hub.waitingCount == 1, "one entry of that address is Ada's")
        ada.vanish()
        #expect(stage.hub.waitingCount == 0)
        stage.pass(.seconds(61))
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("a ban of the address ends a live socket, and tells the partner")
    func ban() {
        let (ada, bob) = pair()
        stage.handle(.expel(ada.socket, WireError(.banned, "You were banned."), .forbidden))
        #expect(ada.isBooted)
        #expect(bob.take() == [.disconnectPartner])
        #expect(stage.hub.clientCount == 1)
    }

    @Test("an original counts as somebody online")
    func count() {
        _ = stage.arriveOriginal()
        let bob = stage.arrive()
        guard case .roulette(.count(let count))? = bob.ask(.roulette(.count)) else {
            Issue.record("no count")
            return
        }
        #expect(count.online == 2)
    }
}
