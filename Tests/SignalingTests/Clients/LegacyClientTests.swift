import Signaling
import TestSupport
import Testing
import Wire

/// Tests RouletteTok's six events: what legacy clients receive, and that RouletteTok's faults do not occur.
@Suite("RouletteTok's protocol") struct LegacyClientTests {
    private let stage = Stage()

    private func grant(_ admission: Admission?) -> SessionGrant? {
        admission.flatMap { try? stage.project.verifySessionToken($0.token, for: $0.session, now: stage.now) }
    }

    private func pair() -> (LegacyGuest, LegacyGuest) {
        let (ada, bob) = (stage.arriveLegacy(), stage.arriveLegacy())
        ada.next()
        bob.next()
        #expect(ada.take() == [.empty] + [ada.partner.map { .subscribe($0) }].compactMap { $0 })
        bob.take()
        return (ada, bob)
    }

    @Test("every client first gets its own session and may publish in it")
    func initial() {
        let (ada, bob) = (stage.arriveLegacy(), stage.arriveLegacy())
        #expect(ada.home.session != bob.home.session)
        #expect(grant(ada.home)?.role == .publisher)
        #expect(grant(ada.home)?.match != nil, "the token is bound to this connection")
        #expect(stage.hub.waitingCount == 0)
    }

    @Test("two partners get each other's session, to watch only, until the match ends")
    func subscribe() {
        let (ada, bob) = pair()
        #expect(ada.partner?.session == bob.home.session)
        #expect(bob.partner?.session == ada.home.session)
        #expect(grant(ada.partner)?.role == .subscriber)
        #expect(grant(ada.partner)?.match != nil)
        #expect(grant(ada.partner)?.match == grant(bob.partner)?.match)
    }

    @Test("a client that is paired immediately gets no empty event")
    func noEmptyWhenAPersonWaits() {
        let (ada, bob) = (stage.arriveLegacy(), stage.arriveLegacy())
        ada.next()
        #expect(ada.take() == [.empty])
        bob.next()
        #expect(bob.take() == [bob.partner.map { .subscribe($0) }].compactMap { $0 })
        #expect(ada.take().count == 1)
    }

    @Test("a client whose connection dropped stays in its chat, and rejoins the queue only when it recovers")
    func suspended() {
        let (ada, bob) = pair()
        stage.handle(.suspended(ada.socket))
        #expect(bob.take() == [])
        stage.handle(.recovered(ada.socket))
        bob.disconnectPartners()
        #expect(ada.take() == [.disconnectPartner] && bob.take() == [.disconnectPartner])
        let cyd = stage.arriveLegacy()
        cyd.next()
        #expect(cyd.take() == [.empty])
        stage.handle(.suspended(cyd.socket))
        #expect(stage.hub.waitingCount == 0, "nobody is matched with a client that is away")
        stage.handle(.recovered(cyd.socket))
        #expect(stage.hub.waitingCount == 1)
        #expect(cyd.take() == [.empty])
        ada.next()
        #expect(cyd.take().count == 1 && ada.partner?.session == cyd.home.session)
        stage.handle(.suspended(ada.socket))
        ada.vanish()
        #expect(cyd.take() == [.disconnectPartner])
    }

    @Test("a request that is due to be repeated waits for a suspended client's recovery")
    func suspendedRetry() {
        let stage = Stage { $0.entriesPerAddress = 1 }
        let (ada, bob) = (stage.arriveLegacy(address: "192.0.2.1"), stage.arriveLegacy(address: "192.0.2.1"))
        ada.next()
        bob.next()
        #expect(bob.take() == [.empty])
        stage.handle(.suspended(bob.socket))
        ada.vanish()
        stage.pass(.seconds(120))
        #expect(bob.take() == [])
        #expect(stage.hub.waitingCount == 0, "nobody is matched with a client that is away")
        stage.handle(.recovered(bob.socket))
        #expect(bob.take() == [.empty])
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("a native and a legacy client publish in their own sessions and watch each other's; there is no text chat")
    func mixed() throws {
        let (ada, bob) = (stage.arriveLegacy(), stage.arrive(name: "Bob"))
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

    @Test("after Next, both wait until their clients request another partner")
    func disconnectPartners() {
        let (ada, bob) = pair()
        ada.disconnectPartners()
        #expect(ada.take() == [.disconnectPartner])
        #expect(bob.take() == [.disconnectPartner])
        #expect(stage.hub.waitingCount == 0)
        ada.next()
        bob.next()
        #expect(ada.take() == [.empty] && bob.take() == [.empty], "former partners are not paired immediately")
        stage.pass(stage.rules.rematchWait + .seconds(1))
        #expect(ada.partner?.session == bob.home.session)
    }

    @Test("after a legacy client's Next, the native partner searches again automatically")
    func nativePartner() {
        let (ada, bob) = (stage.arriveLegacy(), stage.arrive())
        ada.next()
        bob.start()
        bob.take()
        ada.disconnectPartners()
        #expect(bob.take().map(\.type) == ["roulette.ended", "roulette.waiting"])
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("after a native client's Next, the legacy client is idle until it requests a partner")
    func legacyPartner() {
        let (ada, bob) = (stage.arriveLegacy(), stage.arrive())
        ada.next()
        bob.start()
        ada.take()
        bob.next()
        #expect(ada.take() == [.disconnectPartner])
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("the partner is notified when a socket closes, for any reason", arguments: [true, false])
    func vanishing(leaving: Bool) {
        let (ada, bob) = pair()
        ada.vanish(leaving: leaving)
        #expect(bob.take() == [.disconnectPartner])
        #expect(stage.hub.clientCount == 1)
        #expect(stage.hub.personCount == 1, "a client that cannot resume leaves nothing behind")
        #expect(stage.hub.matchCount == 0)
    }

    @Test("a waiting client that disconnects leaves the queue")
    func vanishingWhileWaiting() {
        let ada = stage.arriveLegacy()
        ada.next()
        ada.vanish()
        #expect(stage.hub.waitingCount == 0)
        #expect(stage.hub.personCount == 0)
    }

    @Test("a second next while waiting is answered and never pairs a client with itself")
    func nextTwice() {
        let ada = stage.arriveLegacy()
        for _ in 0..<5 { ada.next() }
        stage.pass(.seconds(60))
        #expect(ada.partner == nil)
        #expect(stage.hub.waitingCount == 1)
    }

    /// Both people may press the button, or one of them twice. The second press must not end a chat that started in
    /// between.
    @Test("a second disconnectPartners does nothing")
    func disconnectPartnersTwice() {
        let (ada, bob) = pair()
        ada.disconnectPartners()
        bob.disconnectPartners()
        ada.disconnectPartners()
        #expect(ada.take() == [.disconnectPartner])
        #expect(bob.take() == [.disconnectPartner])
        let eve = stage.arriveLegacy()
        eve.next()
        ada.next()
        #expect(ada.partner?.session == eve.home.session)
        bob.disconnectPartners()
        #expect(ada.partner?.session == eve.home.session)
    }

    /// Fault 4 of RouletteTok: the person left behind was removed from a new chat when the old partner left.
    @Test("next during a chat ends it for the partner, and the sender receives only the next partner")
    func nextInAChat() {
        let (ada, bob) = pair()
        let eve = stage.arriveLegacy()
        eve.next()
        eve.take()
        ada.next()
        #expect(bob.take() == [.disconnectPartner])
        #expect(ada.take() == ada.partner.map { [.subscribe($0)] })
        #expect(ada.partner?.session == eve.home.session)
        bob.vanish()
        #expect(ada.take() == [])
    }

    /// Fault 9 of RouletteTok: the token for a former partner's session also opened that partner's next chat.
    @Test("a token is revoked when its match ends, and its holder is removed")
    func deadToken() throws {
        let (ada, bob) = pair()
        let watcher = stage.arrive()
        let admission = try #require(ada.partner)
        #expect(watcher.join(admission.session, token: admission.token)?.type == "session.joined")
        watcher.take()
        bob.disconnectPartners()
        #expect(watcher.takeTypes() == ["session.left"])
        let eve = stage.arriveLegacy()
        eve.next()
        bob.next()
        watcher.join(admission.session, token: admission.token)
        #expect(watcher.closeCode == .token)
    }

    @Test("only one viewer can use a match's token, even if it was shared")
    func onePlace() throws {
        let (ada, _) = pair()
        let (first, second) = (stage.arrive(), stage.arrive())
        let admission = try #require(ada.partner)
        #expect(first.join(admission.session, token: admission.token)?.type == "session.joined")
        #expect(second.join(admission.session, token: admission.token)?.type == "error")
    }

    @Test("the token of a client's own session has one place, and ends with the client's connection")
    func homeToken() {
        let ada = stage.arriveLegacy()
        let (sdk, stranger) = (stage.arrive(), stage.arrive())
        #expect(sdk.join(ada.home.session, token: ada.home.token)?.type == "session.joined")
        #expect(stranger.join(ada.home.session, token: ada.home.token)?.errorCode == .sessionFull)
        sdk.take()
        ada.vanish()
        #expect(sdk.takeTypes() == ["session.left"])
        stranger.join(ada.home.session, token: ada.home.token)
        #expect(stranger.closeCode == .token)
        #expect(stage.hub.sessionCount == 0)
    }

    @Test("neither WHIP nor WHEP accepts a token of a match or of a client's own session")
    func notForWHIP() throws {
        let (ada, _) = pair()
        for (admission, purpose) in [(ada.home, ResourcePurpose.publish), (try #require(ada.partner), .watch(nil))] {
            let error = #expect(throws: WireError.self) {
                try Projects(main: stage.project).verifyResourceToken(
                    admission.token, for: admission.session, purpose, now: stage.now)
            }
            #expect(error?.code == .notPermitted)
        }
    }

    @Test("a penalty looks like an empty room and ends automatically")
    func penalty() {
        let ada = stage.arriveLegacy()
        for _ in 0..<stage.rules.skipsBeforeWait {
            let other = stage.arriveLegacy()
            other.next()
            ada.next()
            #expect(ada.partner?.session == other.home.session)
            ada.disconnectPartners()
            other.vanish()
        }
        let eve = stage.arriveLegacy()
        eve.next()
        ada.take()
        ada.next()
        #expect(ada.take() == [.empty])
        stage.pass(stage.rules.firstSkipWait + .milliseconds(10))
        #expect(ada.partner?.session == eve.home.session)
    }

    @Test("a full queue looks like an empty room and is retried")
    func fullQueue() {
        let stage = Stage { $0.entriesPerAddress = 1 }
        let (ada, bob) = (stage.arriveLegacy(address: "192.0.2.1"), stage.arriveLegacy(address: "192.0.2.1"))
        ada.next()
        bob.next()
        #expect(bob.take() == [.empty])
        #expect(stage.hub.waitingCount == 1, "Ada's entry is the only one of that address")
        ada.vanish()
        #expect(stage.hub.waitingCount == 0)
        stage.pass(.seconds(61))
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("a ban of the address closes an open socket and notifies the partner")
    func ban() {
        let (ada, bob) = pair()
        stage.handle(.expel(ada.socket, WireError(.banned, "You were banned."), .forbidden))
        #expect(ada.isBooted)
        #expect(bob.take() == [.disconnectPartner])
        #expect(stage.hub.clientCount == 1)
    }

    @Test("a legacy client counts as online")
    func count() {
        _ = stage.arriveLegacy()
        let bob = stage.arrive()
        guard case .roulette(.count(let count))? = bob.ask(.roulette(.count)) else {
            Issue.record("no count")
            return
        }
        #expect(count.online == 2)
    }
}
