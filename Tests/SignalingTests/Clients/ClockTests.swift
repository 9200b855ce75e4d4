import Signaling
import TestSupport
import Testing
import Wire

/// The wall clock and the clock of the timers differ: an operator or NTP has set the clock, or the machine was asleep.
@Suite("Clocks that differ") struct ClockTests {
    private static let year: Duration = .seconds(366 * 86400)
    private static let jumps: [Duration] = [
        .seconds(5), .seconds(-5), .seconds(3600), .seconds(-3600), year, .zero - year,
    ]
    private static let persistent = RoomChanges { $0.persistent = true }

    private let stage = Stage()

    private func restart(wallOffset: Duration, isConfirmed: Bool) {
        (stage.wallOffset, stage.isClockConfirmed) = (wallOffset, isConfirmed)
        stage.restart()
    }

    @Test("a lost connection is kept for the grace period, whatever the wall clock shows", arguments: jumps)
    func grace(_ jump: Duration) {
        let session = stage.room()
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.enter(session, on: stage)
        bob.enter(session, on: stage)
        ada.take()
        bob.drop()
        stage.wallOffset = jump
        stage.pass(stage.rules.resumeGrace / 2)
        stage.wallOffset = .zero
        stage.pass(stage.rules.resumeGrace / 2 - .milliseconds(1))
        #expect(!ada.take().contains { $0.type == "session.connectionDestroyed" })
        stage.pass(.milliseconds(1))
        #expect(ada.take().contains { $0.type == "session.connectionDestroyed" })
    }

    @Test("tokens are judged by the wall clock")
    func tokens() {
        let session = stage.room()
        let token = stage.token(session, lifetime: .seconds(600))
        stage.wallOffset = .seconds(3600)
        let late = stage.arrive()
        late.join(session, token: token)
        #expect(late.refusals.map(\.code) == [.tokenExpired])
        stage.wallOffset = .seconds(-3600)
        let early = stage.arrive()
        early.join(session, token: token)
        #expect(early.refusals.map(\.code) == [.tokenNotYet])
        stage.wallOffset = .zero
        #expect(stage.arrive().join(session, token: token)?.type == "session.joined")
    }

    @Test("what is stored and sent has the time of the wall clock")
    func storedTimes() throws {
        stage.wallOffset = Self.year
        let ada = stage.arrive()
        let joined = try #require(ada.open(with: Self.persistent)?.room?.joined)
        #expect(stage.archive.rooms.values.map(\.createdAt) == [stage.now + Self.year])
        #expect(joined.people.map(\.since) == [stage.now + Self.year])
    }

    @Test("a ban ends by the wall clock")
    func bans() {
        let ada = stage.arrive()
        let wall = stage.now + Self.year
        stage.wallOffset = Self.year
        let ban = Ban(subject: .identity(ada.identity), reason: "", createdAt: wall, expiresAt: wall + .seconds(60))
        stage.handle(.banned(ban))
        #expect(ada.closeCode == .forbidden)
    }

    @Test("a removed member stays out while the clock is wrong, and after it was corrected", arguments: [true, false])
    func revoked(_ isRestored: Bool) {
        let session = stage.room()
        let (host, guest) = (stage.arrive(), stage.arrive())
        host.enter(session, .moderator, on: stage)
        let token = stage.token(session, lifetime: .seconds(3 * 3600))
        guest.join(session, token: token)
        host.ask(.session(.forceDisconnect(.init(session: session, connection: guest.connection))))
        (stage.wallOffset, stage.isClockConfirmed) = (Self.year, false)
        if isRestored {
            var moderation = SessionModeration(session: session)
            for case .revoked(let revocation) in stage.changes {
                moderation.revoked[revocation.fingerprint] = revocation.expiresAt
            }
            stage.restart()
            stage.handle(.moderated(moderation))
        }
        stage.pass(.seconds(5400))
        stage.wallOffset = .zero
        let again = stage.arrive()
        again.join(session, token: token)
        #expect(again.refusals.map(\.code) == [.tokenRevoked])
        stage.isClockConfirmed = true
        if !isRestored { host.leave() }
        stage.pass(.seconds(3 * 3600))
        #expect(stage.hub.sessionCount == 0, "the token has expired")
    }

    // MARK: Rooms

    @Test(
        "a room that became empty while the server runs is kept as long as it is not used, whatever the wall clock shows"
    )
    func emptyRoom() {
        let ada = stage.arrive()
        ada.open(with: Self.persistent)
        ada.leaveRoom()
        stage.wallOffset = Self.year
        stage.pass(.seconds(4 * 3600))
        stage.wallOffset = .zero
        stage.pass(stage.rules.roomRetention - .seconds(4 * 3600) - .milliseconds(1))
        #expect(stage.hub.hasRoom(.standUp))
        stage.pass(.milliseconds(1))
        #expect(!stage.hub.hasRoom(.standUp))
    }

    @Test("a server that starts with a clock that is a year ahead keeps its rooms, and their retention is right later")
    func roomsAfterARestart() {
        let ada = stage.arrive()
        ada.open(with: Self.persistent)
        ada.leaveRoom()
        restart(wallOffset: Self.year, isConfirmed: false)
        stage.pass(.seconds(4 * 3600))
        #expect(stage.hub.hasRoom(.standUp))
        restart(wallOffset: Self.year, isConfirmed: false)
        stage.pass(.seconds(600))
        (stage.wallOffset, stage.isClockConfirmed) = (.zero, true)
        stage.pass(.seconds(300 * 86400))
        #expect(stage.hub.hasRoom(.standUp))
        stage.pass(.seconds(66 * 86400))
        #expect(!stage.hub.hasRoom(.standUp))
        #expect(stage.archive.rooms.isEmpty)
    }

    @Test("a clock that is behind for a while does not make a room or a profile look unused")
    func useWhileBehind() {
        let ada = stage.arrive()
        ada.open(with: Self.persistent)
        ada.appear("Ada")
        let start = stage.now
        stage.wallOffset = .zero - Self.year
        ada.set { $0.capacity = 5 }
        ada.ask(.presence(.set(Appearance(name: "Ada L"))))
        #expect(stage.archive.rooms.values.map(\.usedAt) == [start])
        let uses = stage.changes.compactMap { if case .profile(_, _, _, let at) = $0 { at } else { nil } }
        #expect(uses == [start, start])
    }

    // MARK: Calls

    @Test("a call rings as long after a restart with a wrong clock as a new one at most", arguments: jumps)
    func ringing(_ jump: Duration) throws {
        let (ada, bob) = (stage.present("Ada"), stage.present("Bob"))
        _ = try stage.ring(ada, bob)
        stage.wallOffset = jump
        stage.restart()
        ada.arrive()
        ada.appear()
        stage.pass(stage.rules.ringTimeout)
        #expect(stage.hub.callCount == 0)
        #expect(stage.archive.openCalls.isEmpty)
    }

    @Test("a call's length does not change when the clock is set")
    func calls() throws {
        let (ada, bob) = (stage.present("Ada"), stage.present("Bob"))
        let talk = try stage.talk(ada, bob)
        stage.pass(.seconds(100))
        stage.wallOffset = Self.year
        ada.end(talk.call)
        #expect(stage.logged(ada).map(\.duration) == [.seconds(100)])
    }
}
