import Signaling
import TestSupport
import Testing
import Wire

@Suite("A rotated API secret") struct RotationTests {
    private static let first = Stage.secret
    private static let second = String(repeating: "2", count: 48)
    private static let third = String(repeating: "3", count: 48)
    private static let overlap: Duration = .seconds(24 * 3600)

    private let stage = Stage()
    private var end: Timestamp { stage.now + Self.overlap }

    /// The key that made the ids before there was a server key.
    private var oldKey: ServerKey { ServerKey(bytes: Array(Self.first.utf8))! }

    private func project(_ secret: String, previous: String? = nil, until: Timestamp? = nil) throws -> Project {
        let before = previous.map { Project.PreviousSecret(secret: $0, acceptedUntil: until ?? end) }
        return try #require(
            Project(apiKey: Stage.apiKey, secret: secret, serverKey: oldKey, previous: before))
    }

    private func sessionToken(_ project: Project, _ session: SessionID) -> String {
        project.makeSessionToken(
            SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(29 * 86400)), now: stage.now,
            using: &stage.generator)
    }

    private func refusal(_ body: () throws -> Void) -> WireError? {
        do {
            try body()
            return nil
        } catch {
            return error as? WireError
        }
    }

    @Test("tokens of the previous secret are accepted until the overlap ends, and refused from that moment on")
    func overlap() throws {
        let (before, after) = (try project(Self.first), try project(Self.second, previous: Self.first))
        let session = stage.room()
        let token = sessionToken(before, session)
        let user = before.makeUserToken(user: "ada", name: nil, now: stage.now)
        let last = end - .milliseconds(1)
        #expect(try after.verifySessionToken(token, for: session, now: stage.now).session == session)
        #expect(try after.verifySessionToken(token, for: session, now: last).session == session)
        #expect(try after.verifyUserToken(user, now: last).id == before.identity(ofUser: "ada"))
        #expect(
            try Projects(main: after).verifyResourceToken(token, for: session, .publish, now: last).session == session)
        for error in [
            refusal { _ = try after.verifySessionToken(token, for: session, now: end) },
            refusal { _ = try after.verifyUserToken(user, now: end) },
            refusal { _ = try Projects(main: after).verifyResourceToken(token, for: session, .publish, now: end) },
        ] {
            #expect(error?.code == .tokenSignature)
            #expect(error?.message.contains("has been replaced") == true)
        }
    }

    @Test("without an overlap the previous secret is refused at once")
    func atOnce() throws {
        let session = stage.room()
        let token = sessionToken(try project(Self.first), session)
        let after = try project(Self.second, previous: Self.first, until: stage.now)
        #expect(
            refusal { _ = try after.verifySessionToken(token, for: session, now: stage.now) }?.code == .tokenSignature)
    }

    @Test("only the last two secrets are accepted, and new tokens are signed with the new one")
    func secrets() throws {
        let session = stage.room()
        let twice = try project(Self.third, previous: Self.second)
        #expect(
            refusal {
                _ = try twice.verifySessionToken(
                    sessionToken(try project(Self.first), session), for: session, now: stage.now)
            }?.code == .tokenSignature)
        let token = sessionToken(try project(Self.second, previous: Self.first), session)
        #expect(try twice.verifySessionToken(token, for: session, now: stage.now).session == session)
        #expect(
            refusal { _ = try project(Self.first).verifySessionToken(token, for: session, now: stage.now) }?.code
                == .tokenSignature)
    }

    @Test("session ids, identities and public ids stay the same, and are those of versions without a server key")
    func ids() throws {
        let (old, new) = (stage.project, try project(Self.third, previous: Self.second))
        let (ada, bob) = (stage.identity(), stage.identity())
        let session = old.makeSessionID(mediaMode: .routed, now: stage.now, using: &stage.generator)
        #expect(new.mediaMode(of: session) == .routed)
        #expect(try new.verifyIdentitySecret(old.secret(of: ada)).id == ada)
        #expect(new.secret(of: ada) == old.secret(of: ada))
        #expect(new.personID(of: ada) == old.personID(of: ada))
        #expect(new.blockedID(of: ada, by: bob) == old.blockedID(of: ada, by: bob))
        #expect(new.identity(ofUser: "ada") == old.identity(ofUser: "ada"))
        let other = try #require(Project(apiKey: Stage.apiKey, secret: Self.third))
        #expect(other.mediaMode(of: session) == nil, "without the server key the secret makes the ids")
        #expect(ServerKey(bytes: Array(repeating: 1, count: 31)) == nil)
        #expect(
            Project(
                apiKey: "1", secret: Self.first, previous: Project.PreviousSecret(secret: "short", acceptedUntil: end))
                == nil)
    }

    @Test("a project does not print its keys")
    func printing() throws {
        let project = try project(Self.second, previous: Self.first)
        var dumped = ""
        dump(Input.settingsChanged(HubSettings(rules: Rules(), project: project)), to: &dumped)
        for text in ["\(project)", String(reflecting: project), String(reflecting: project.serverKey), dumped] {
            #expect(!text.contains(Self.first) && !text.contains(Self.second) && !text.contains("SymmetricKey"))
        }
    }

    @Test("the hub uses the new keys from the next event on, and a rotation closes nobody and tells nobody anything")
    func hub() throws {
        let session = stage.room()
        let (ada, bob, eve) = (stage.arrive(), stage.arrive(), stage.arrive())
        ada.enter(session, on: stage)
        let old = stage.token(session, lifetime: .seconds(29 * 86400))
        for guest in [ada, bob, eve] { guest.take() }

        var settings = stage.hub.hubSettings
        settings.project = try project(Self.second, previous: Self.first)
        stage.handle(.settingsChanged(settings))
        #expect(stage.effects.isEmpty)
        #expect(ada.closeCode == nil)

        #expect(bob.join(session, token: old)?.type == "session.joined")
        #expect(eve.join(session, token: sessionToken(settings.project, session))?.type == "session.joined")
        ada.drop()
        ada.resume()
        #expect(ada.welcome?.resumed == true)
        stage.pass(Self.overlap)
        let late = stage.arrive()
        late.say(.session(.join(.init(session: session, token: old))))
        #expect(late.closeCode == .token)
        #expect(late.refusals.map(\.code) == [.tokenSignature])
        #expect([ada, bob, eve].allSatisfy { $0.closeCode == nil })
    }

    @Test("rules that are read at use apply from the next request on")
    func rules() throws {
        let (ada, session) = (stage.arrive(), stage.room())
        ada.enter(session, on: stage)
        var settings = stage.hub.hubSettings
        settings.rules.verbs = Budget.Rate(perSecond: 1, burst: 1)
        stage.handle(.settingsChanged(settings))
        #expect(ada.ask(.roulette(.count))?.type == "roulette.count")
        guard case .error(let failure)? = ada.ask(.roulette(.count)) else {
            Issue.record("the new budget does not apply")
            return
        }
        #expect(failure.error.code == .rateLimited)
    }
}
