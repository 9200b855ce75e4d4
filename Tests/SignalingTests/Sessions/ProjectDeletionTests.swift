import Signaling
import TestSupport
import Testing
import Wire

@Suite("A project is deleted") struct ProjectDeletionTests {
    private let stage = Stage()
    private let other: Project

    init() throws {
        other = try #require(
            Project(apiKey: "45000002", secret: String(repeating: "o", count: 40), serverKey: stage.project.serverKey))
    }

    /// Makes these the projects besides the main one.
    private func adopt(_ others: [Project]) {
        var settings = stage.hub.hubSettings
        settings.projects = Projects(main: stage.project, others: others)
        stage.handle(.settingsChanged(settings))
    }

    private func join(_ guest: Guest, _ session: SessionID) -> String? {
        let claims = SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600))
        return guest.join(session, token: other.makeSessionToken(claims, now: stage.now, using: &stage.generator))?.type
    }

    private func newSession() -> SessionID {
        other.makeSessionID(mediaMode: .relayed, now: stage.now, using: &stage.generator)
    }

    @Test("its members leave at once and learn why, and no other session notices")
    func members() throws {
        adopt([other])
        let (session, second, main) = (newSession(), newSession(), stage.room())
        let (ada, bob, carl, dora) = (stage.arrive(), stage.arrive(), stage.arrive(), stage.arrive())
        for guest in [ada, bob] { #expect(join(guest, session) == "session.joined") }
        #expect(join(carl, second) == "session.joined")
        dora.enter(main, on: stage)
        ada.enter(main, on: stage)
        bob.drop()
        for guest in [ada, carl, dora] { guest.take() }

        adopt([])
        #expect(ada.take() == [.session(.left(.init(session: session, reason: .forceDisconnected)))])
        #expect(carl.take() == [.session(.left(.init(session: second, reason: .forceDisconnected)))])
        #expect(dora.take() == [])
        #expect([ada, carl, dora].allSatisfy { $0.closeCode == nil })
        bob.resume()
        #expect(bob.take().contains(.session(.left(.init(session: session, reason: .forceDisconnected)))))
        #expect(ada.ask(.session(.signal(.init(session: main, type: nil, data: "still here"))))?.type == "ok")
        #expect(dora.take().count == 1)
    }

    @Test("its tokens and sessions are dead, and its connections no longer count")
    func tokens() throws {
        adopt([other])
        let session = newSession()
        #expect(join(stage.arrive(), session) == "session.joined")
        adopt([])
        let late = stage.arrive()
        #expect(join(late, session) != "session.joined")
        #expect(late.refusals.map(\.code) == [.tokenSignature])
        #expect(late.closeCode == .token)
        guard case .refused? = stage.operate(.session(session, .describe(nil))) else {
            Issue.record("the session still has members")
            return
        }
        var limited = other
        limited.maxConnections = 1
        adopt([limited])
        #expect(join(stage.arrive(), session) == "session.joined")
        let second = stage.arrive()
        #expect(join(second, session) != "session.joined")
        #expect(second.closeCode == nil)
    }

    @Test("a project that gets another secret or other properties keeps its members")
    func changes() throws {
        adopt([other])
        let session = newSession()
        let ada = stage.arrive()
        #expect(join(ada, session) == "session.joined")
        ada.take()
        var changed = try #require(
            Project(apiKey: other.apiKey, secret: String(repeating: "n", count: 40), serverKey: other.serverKey))
        changed.hasWebhook = true
        adopt([changed])
        #expect(stage.effects.isEmpty)
        #expect(ada.take() == [])
    }
}
