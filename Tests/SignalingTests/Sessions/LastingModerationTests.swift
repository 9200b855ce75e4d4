import Signaling
import TestSupport
import Testing
import Wire

/// What moderators decide must hold after a restart, and for everyone who uses the same token.
@Suite("Moderation that lasts") struct LastingModerationTests {
    private let stage = Stage()

    private func remove(_ guest: Guest, from session: SessionID, by moderator: Guest) {
        let client = guest.connection
        moderator.ask(.session(.forceDisconnect(.init(session: session, connection: client))))
    }

    private var revocations: [Revocation] {
        stage.changes.compactMap { if case .revoked(let revocation) = $0 { revocation } else { nil } }
    }

    @Test("a removal is stored before it is answered, with the moderator and the removed person")
    func stored() {
        let session = stage.room()
        let (host, guest) = (stage.arrive(), stage.arrive())
        host.enter(session, .moderator, on: stage)
        guest.enter(session, on: stage)
        remove(guest, from: session, by: host)
        #expect(revocations.map(\.by) == [.member(host.identity)])
        #expect(revocations.map(\.of) == [guest.identity])
        #expect(guest.take().contains { $0.type == "session.left" })
    }

    @Test("everyone who joined with the same token is removed")
    func sharedToken() {
        let session = stage.room()
        let host = stage.arrive()
        host.enter(session, .moderator, on: stage)
        let token = stage.token(session, .publisher)
        let guests = (0..<3).map { _ in stage.arrive() }
        for guest in guests { guest.join(session, token: token) }
        remove(guests[0], from: session, by: host)
        for guest in guests { #expect(guest.take().contains { $0.type == "session.left" }) }
        let other = stage.arrive()
        other.join(session, token: token)
        #expect(other.refusals.map(\.code) == [.tokenRevoked])
    }

    @Test("a removal holds after a restart until the token expires")
    func revokedAfterRestart() throws {
        let session = stage.room()
        let token = stage.token(session, .publisher)
        let grant = try stage.project.verifySessionToken(token, for: session, now: stage.now)
        var moderation = SessionModeration(session: session)
        moderation.revoked = [grant.fingerprint: grant.expiresAt]
        stage.handle(.moderated(moderation))
        let guest = stage.arrive()
        guest.join(session, token: token)
        #expect(guest.refusals.map(\.code) == [.tokenRevoked])
        stage.pass(grant.expiresAt - stage.now + .seconds(1))
        #expect(stage.hub.sessionCount == 0)
    }

    @Test("a mute holds after a restart for those who come back in time")
    func mutedAfterRestart() {
        let session = stage.room()
        var moderation = SessionModeration(session: session)
        moderation.isMuted = true
        stage.handle(.moderated(moderation))
        let guest = stage.arrive()
        #expect(guest.enter(session, on: stage)?.muted == true)
    }

    @Test("a mute of a session that stays empty ends, and that is stored")
    func muteEnds() {
        let session = stage.room()
        let host = stage.arrive()
        host.enter(session, .moderator, on: stage)
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.active) = (session, true)
        host.ask(.session(.forceMute(mute)))
        host.leave()
        #expect(stage.hub.sessionCount == 1)
        stage.pass(stage.rules.muteGrace + .seconds(1))
        #expect(stage.hub.sessionCount == 0)
        let mutes = stage.changes.compactMap {
            if case .muted(session, let isMuted, by: _, at: _) = $0 { isMuted } else { nil }
        }
        #expect(mutes == [true, false])
    }

    @Test("a report has the limiting addresses of both people")
    func addresses() {
        let (ada, bob) = (stage.arrive(address: "192.0.2.1"), stage.arrive(address: "2001:db8::"))
        ada.start()
        bob.start()
        ada.report("rude")
        let report = stage.changes.compactMap { if case .report(let report) = $0 { report } else { nil } }.first
        #expect(report?.byAddress == "192.0.2.1")
        #expect(report?.againstAddress == "2001:db8::")
    }
}
