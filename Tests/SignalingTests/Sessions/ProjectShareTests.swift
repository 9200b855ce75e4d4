import Signaling
import TestSupport
import Testing
import Wire

@Suite("What one project may use of the server") struct ProjectShareTests {
    private static let ample = Budget.Rate(perSecond: 1, burst: 1_000_000)

    private func audited(_ changes: some Sequence<Change>) -> [String] {
        changes.compactMap(\.summary.auditEntry).map { "\($0.actor) \($0.action)" }
    }

    private func refusal(_ reply: OperatorReply?) -> WireError? {
        if case .refused(let error)? = reply { error } else { nil }
    }

    // MARK: Mutes

    @Test("an application's mute of a session is stored once, with the application in the audit log, and then answered")
    func muteIsAudited() throws {
        let stage = Stage()
        let session = stage.room()
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        #expect(stage.operate(.session(session, .muteAll(excluding: []))) == .done)
        let stored = try #require(
            stage.effects.firstIndex { if case .persist(.muted(session, true, _, _)) = $0 { true } else { false } })
        let answered = try #require(stage.effects.firstIndex { if case .answer = $0 { true } else { false } })
        #expect(stored < answered, "what follows a change waits for its commit")
        ada.take()
        for _ in 0..<2000 { #expect(stage.operate(.session(session, .muteAll(excluding: []))) == .done) }
        #expect(ada.take() == [], "nothing has changed")
        #expect(audited(stage.changes) == ["\(Stage.apiKey) session.mute"])
        #expect(stage.operate(.session(session, .muteAll(excluding: nil))) == .done)
        #expect(stage.operate(.session(session, .muteAll(excluding: nil))) == .done)
        #expect(audited(stage.changes) == ["\(Stage.apiKey) session.mute", "\(Stage.apiKey) session.unmute"])
    }

    @Test("a mute is repeated for those who unmuted themselves, and its end for streams that were muted one by one")
    func repeated() throws {
        let stage = Stage { $0.routesMedia = true }
        let session = stage.room(.routed)
        let ada = stage.arrive()
        ada.enter(session, on: stage)
        let stream = try #require(ada.publish(session, mids: MediaMids(audio: "0"))).id
        for _ in 0..<2 {
            #expect(stage.operate(.session(session, .muteAll(excluding: []))) == .done)
            #expect(ada.takeTypes() == ["session.muted", "session.muted", "session.streamChanged"])
            ada.update(session, stream, audio: true)
            ada.take()
        }
        #expect(stage.operate(.session(session, .muteAll(excluding: [stream]))) == .done)
        #expect(stage.operate(.session(session, .muteAll(excluding: nil))) == .done)
        #expect(ada.takeTypes() == ["session.muted"])
        #expect(stage.operate(.session(session, .mute(stream))) == .done)
        ada.take()
        #expect(stage.operate(.session(session, .muteAll(excluding: nil))) == .done)
        #expect(ada.take() == [.session(.muted(.init(session: session, active: false)))])
    }

    @Test("the mute of all is charged to the session as a signal to all is, for its application and for moderators")
    func muteIsCharged() throws {
        let stage = Stage { $0.sessionTraffic = Budget.Rate(perSecond: 1000, burst: 2600) }
        let session = stage.room()
        let guests = (0..<5).map { _ in stage.arrive() }
        guests[0].enter(session, .moderator, on: stage)
        for guest in guests.dropFirst() { guest.enter(session, on: stage) }
        for guest in guests { guest.take() }
        for excluded in [[], nil] as [Set<StreamID>?] {
            #expect(stage.operate(.session(session, .muteAll(excluding: excluded))) == .done)
        }
        let signal = refusal(stage.operate(.session(session, .signal(type: nil, data: nil, to: nil))))
        let mute = refusal(stage.operate(.session(session, .muteAll(excluding: []))))
        #expect(signal?.code == .rateLimited)
        #expect(mute == signal)
        var verb = SessionVerb.ForceMute()
        (verb.session, verb.active) = (session, true)
        #expect(guests[0].ask(.session(.forceMute(verb)))?.errorCode == .rateLimited)
        #expect(guests[1].take().count == 2)
        #expect(audited(stage.changes).count == 2)
        stage.pass(try #require(mute?.retryAfter))
        #expect(stage.operate(.session(session, .muteAll(excluding: []))) == .done)
    }

    @Test("an application stores a limited number of decisions, and another project is not affected")
    func decisions() throws {
        let stage = Stage { $0.projectDecisions = Budget.Rate(perSecond: 1, burst: 10) }
        let other = try adopt(on: stage)
        let (session, second) = (stage.room(), self.session(of: other, on: stage))
        stage.arrive().enter(session, on: stage)
        enter(stage.arrive(), second, of: other, on: stage)
        let replies = (0..<100).map { number in
            stage.operate(.session(session, .muteAll(excluding: number.isMultiple(of: 2) ? [] : nil)))
        }
        #expect(replies[..<10].allSatisfy { $0 == .done })
        #expect(refusal(replies[98])?.code == .rateLimited)
        #expect(replies[99] == .done, "nothing is muted, so there is nothing to store")
        #expect(audited(stage.changes).count == 10)
        let ada = stage.arrive()
        ada.enter(session, on: stage)
        #expect(refusal(stage.operate(.session(session, .disconnect(ada.connection))))?.code == .rateLimited)
        #expect(stage.operate(.session(second, .muteAll(excluding: []))) == .done)
        stage.pass(.seconds(1))
        #expect(stage.operate(.session(session, .disconnect(ada.connection))) == .done)
    }

    // MARK: Revoked tokens

    @Test("sessions are kept for a limited number of revoked tokens, and nobody whose token was revoked can return")
    func revocations() throws {
        let limit = 1000
        let stage = Stage {
            $0.revocationsPerProject = limit
            for budget in [\Rules.joins, \.verbs, \.personVerbs] { $0[keyPath: budget] = Self.ample }
        }
        let (other, ada) = (try adopt(on: stage), stage.arrive())
        var (removed, refused): ([(SessionID, String)], Int) = ([], 0)
        for _ in 0..<10_000 {
            let session = stage.room()
            let token = stage.token(session, lifetime: .seconds(86400))
            ada.take()
            ada.join(session, token: token)
            let reply = stage.operate(.session(session, .disconnect(ada.connection)))
            if reply == .done { removed.append((session, token)) }
            guard refusal(reply)?.code == .rateLimited else { continue }
            refused += 1
            ada.ask(.session(.leave(.init(session: session))))
        }
        #expect((removed.count, refused) == (limit, 9000))
        #expect(stage.hub.sessionCount == limit)
        for (session, token) in [removed.first, removed.last].compactMap(\.self) {
            let guest = stage.arrive()
            guest.join(session, token: token)
            #expect(guest.refusals.map(\.code) == [.tokenRevoked])
        }
        let second = session(of: other, on: stage)
        let guest = stage.arrive()
        enter(guest, second, of: other, on: stage)
        #expect(stage.operate(.session(second, .disconnect(guest.connection))) == .done)
        stage.pass(.seconds(86401))
        #expect(stage.hub.sessionCount == 0)
        let (again, host) = (stage.arrive(), stage.arrive())
        let session = stage.room()
        again.enter(session, on: stage)
        host.enter(session, .moderator, on: stage)
        let removal = SessionVerb.forceDisconnect(.init(session: session, connection: again.connection))
        #expect(host.ask(.session(removal))?.type == "ok")
    }

    @Test("a moderator cannot exceed the limit either, and the member whose removal is refused stays")
    func moderators() {
        let stage = Stage { $0.revocationsPerProject = 1 }
        let session = stage.room()
        let (host, ada, bob) = (stage.arrive(), stage.arrive(), stage.arrive())
        host.enter(session, .moderator, on: stage)
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        func remove(_ guest: Guest) -> ServerMessage? {
            host.ask(.session(.forceDisconnect(.init(session: session, connection: guest.connection))))
        }
        #expect(remove(ada)?.type == "ok")
        bob.take()
        #expect(remove(bob)?.errorCode == .rateLimited)
        #expect(bob.take() == [])
        #expect(bob.signal(session)?.type == "ok")
    }

    @Test("a token of a match is refused as long as the match lasts, and its session does not outlive the match")
    func boundTokens() throws {
        let stage = Stage { $0.revocationsPerProject = 0 }
        let (one, two, matched) = stage.pair()
        let session = matched.publish.session
        let token = try #require(one.match?.publish.token)
        for guest in [one, two] { guest.join(session, token: guest.match?.publish.token ?? "") }
        #expect(stage.operate(.session(session, .disconnect(one.connection))) == .done)
        let again = one.join(session, token: token)
        #expect(again?.errorCode == .tokenRevoked || one.refusals.map(\.code) == [.tokenRevoked])
        #expect(stage.changes.contains { if case .revoked(let revocation) = $0 { !revocation.isKept } else { false } })
        two.leave()
        one.leave()
        stage.pass(stage.rules.reportWindow + .seconds(1))
        #expect(stage.hub.sessionCount == 0)
    }

    @Test("the revoked tokens and mutes of a deleted project are forgotten")
    func deleted() throws {
        let stage = Stage()
        let other = try adopt(on: stage)
        let session = session(of: other, on: stage)
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { enter(guest, session, of: other, on: stage) }
        #expect(stage.operate(.session(session, .disconnect(ada.connection))) == .done)
        #expect(stage.operate(.session(session, .muteAll(excluding: []))) == .done)
        try adopt([], on: stage)
        #expect(stage.hub.sessionCount == 0)
        stage.restart()
        var moderation = SessionModeration(session: session)
        (moderation.isMuted, moderation.revoked) = (true, [[1]: stage.now + .seconds(3600)])
        stage.handle(.moderated(moderation))
        #expect(stage.hub.sessionCount == 0)
        #expect(stage.effects == [], "the project may only be damaged")
    }

    // MARK: WHIP and WHEP

    @Test("of several projects, none gets more than half of the WHIP and WHEP resources")
    func resources() throws {
        let stage = Stage {
            $0.routesMedia = true
            $0.resources = 4
        }
        let other = try adopt(on: stage)
        let session = self.session(of: other, .routed, on: stage)
        func client() -> WHIPClient { WHIPClient(stage, session, token: token(session, of: other, on: stage)) }
        let clients = [client(), client()]
        for client in clients { try client.create() }
        let third = client()
        try third.post()
        #expect(third.take()?.error == .tooManyConnections)
        let own = WHIPClient(stage, stage.room(.routed))
        try own.create()
        #expect(clients[0].ask(.delete) == .deleted(re: 1))
        try client().create()
        #expect(stage.hub.resourceCount == 3)
    }

    @Test("a project that is alone may have all WHIP and WHEP resources")
    func allResources() throws {
        let stage = Stage {
            $0.routesMedia = true
            $0.resources = 4
        }
        let session = stage.room(.routed)
        for _ in 0..<4 { try WHIPClient(stage, session).create() }
        let fifth = WHIPClient(stage, session)
        try fifth.post()
        #expect(fifth.take()?.error == .mediaUnavailable)
    }

    // MARK: Another project

    /// Makes these the projects besides the main one.
    private func adopt(_ others: [Project], on stage: Stage) throws {
        var settings = stage.hub.hubSettings
        settings.projects = Projects(main: stage.project, others: others)
        stage.handle(.settingsChanged(settings))
    }

    /// Adds a project and returns it.
    private func adopt(on stage: Stage) throws -> Project {
        let other = try #require(
            Project(apiKey: "45000002", secret: String(repeating: "o", count: 40), serverKey: stage.project.serverKey))
        try adopt([other], on: stage)
        return other
    }

    private func session(of project: Project, _ mode: MediaMode = .relayed, on stage: Stage) -> SessionID {
        project.makeSessionID(mediaMode: mode, now: stage.now, using: &stage.generator)
    }

    private func token(_ session: SessionID, of project: Project, on stage: Stage) -> String {
        let claims = SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600))
        return project.makeSessionToken(claims, now: stage.now, using: &stage.generator)
    }

    private func enter(_ guest: Guest, _ session: SessionID, of project: Project, on stage: Stage) {
        let answer = guest.join(session, token: token(session, of: project, on: stage))
        #expect(answer?.type == "session.joined")
    }
}
