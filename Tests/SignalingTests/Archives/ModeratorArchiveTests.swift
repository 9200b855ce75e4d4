import Signaling
import TestSupport
import Testing
import Wire

@Suite("Moderators record a session") struct ModeratorArchiveTests {
    private let place = RecordedSession { $0.moderatorsMayRecord = true }
    private var stage: Stage { place.stage }

    /// Ada is a moderator, and Bob is not.
    private func enter(_ place: RecordedSession) {
        place.ada.enter(place.session, .moderator, data: "Ada", on: place.stage)
        place.bob.enter(place.session, data: "Bob", on: place.stage)
        for guest in [place.ada, place.bob] { guest.take() }
    }

    private func start(
        _ guest: Guest, in place: RecordedSession, _ name: String? = nil, _ output: ArchiveOutput? = .individual
    ) -> ServerMessage? {
        guest.ask(.session(.startArchive(.init(session: place.session, name: name, output: output))))
    }

    private func stop(_ archive: ArchiveID, _ guest: Guest, in place: RecordedSession) -> ServerMessage? {
        guest.ask(.session(.stopArchive(.init(session: place.session, archive: archive))))
    }

    private func code(_ message: ServerMessage?) -> WireError.Code? {
        if case .error(let failure)? = message { failure.error.code } else { nil }
    }

    @Test("a moderator starts and stops an archive, and everyone is notified")
    func life() throws {
        enter(place)
        _ = try place.publish(place.bob)
        #expect(start(place.ada, in: place, "Meeting")?.type == "ok")
        let archive = try #require(place.archives.first)
        #expect(archive.request.name == "Meeting" && archive.request.output == .individual)
        for guest in [place.ada, place.bob] {
            let reported = guest.take().compactMap {
                if case .session(let notice) = $0 { notice.startedArchive } else { nil }
            }
            #expect(reported == [ArchiveInfo(archive.id, name: "Meeting")])
        }
        place.passNotice()
        #expect(place.commands() == ["begin audio video", "add Bob audio video"])
        #expect(stop(archive.id, place.ada, in: place)?.type == "ok")
        #expect(place.stored(archive.id)?.reason == "user initiated")
        #expect(code(stop(archive.id, place.ada, in: place)) == .archiveConflict)
    }

    @Test("without an output mode the archive is composed, and an empty name is none")
    func usual() throws {
        enter(place)
        #expect(start(place.ada, in: place, "", nil)?.type == "ok")
        #expect(place.archives.first?.request.output == .composed && place.archives.first?.request.name == nil)
    }

    @Test("other roles are refused, and everyone without the setting")
    func refused() throws {
        enter(place)
        #expect(code(start(place.bob, in: place)) == .notPermitted)
        let archive = try #require(place.start())
        #expect(code(stop(archive.id, place.bob, in: place)) == .notPermitted)
        #expect(place.stored(archive.id)?.status == .started)
        #expect(stop(archive.id, place.ada, in: place)?.type == "ok", "also what the application has started")
        let usual = RecordedSession()
        enter(usual)
        #expect(code(start(usual.ada, in: usual)) == .notPermitted)
        let other = try #require(usual.start())
        #expect(code(stop(other.id, usual.ada, in: usual)) == .notPermitted)
    }

    @Test("the rules of the application's archives apply")
    func rules() throws {
        enter(place)
        for name in [String(repeating: "a", count: 81), "a\u{7}b", "a\u{85}b", "a\u{202E}b"] {
            #expect(code(start(place.ada, in: place, name)) == .malformed)
        }
        #expect(start(place.ada, in: place)?.type == "ok")
        #expect(code(start(place.ada, in: place)) == .archiveConflict, "it is being recorded")
        let relayed = stage.room(.relayed)
        let carl = stage.arrive()
        carl.enter(relayed, .moderator, on: stage)
        let verb = SessionVerb.StartArchive(session: relayed)
        #expect(code(carl.ask(.session(.startArchive(verb)))) == .archiveConflict)
        let always = RecordedSession(archive: .small) { $0.moderatorsMayRecord = true }
        enter(always)
        let automatic = try #require(always.archives.first)
        #expect(code(stop(automatic.id, always.ada, in: always)) == .archiveConflict)
    }

    @Test("an archive of another session cannot be stopped")
    func foreign() throws {
        enter(place)
        let archive = try #require(place.start())
        let other = stage.room(.routed)
        let carl = stage.arrive()
        carl.enter(other, .moderator, on: stage)
        let verb = SessionVerb.StopArchive(session: other, archive: archive.id)
        #expect(code(carl.ask(.session(.stopArchive(verb)))) == .archiveConflict)
        #expect(place.stored(archive.id)?.status == .started)
    }

    @Test("members learn whether moderators may record the session, whatever their role is")
    func permission() {
        let joined = place.bob.enter(place.session, data: "Bob", on: stage)
        #expect(joined?.moderatorArchives == .composed && joined?.capabilities.forceDisconnect == false)
        let individual = RecordedSession { ($0.moderatorsMayRecord, $0.composesArchives) = (true, false) }
        #expect(individual.ada.enter(individual.session, on: individual.stage)?.moderatorArchives == .individual)
        for change in [{ $0.recordsSessions = false }, { $0.moderatorsMayRecord = false }] as [(inout Rules) -> Void] {
            let none = RecordedSession {
                $0.moderatorsMayRecord = true
                change(&$0)
            }
            #expect(none.ada.enter(none.session, .moderator, on: none.stage)?.moderatorArchives == nil)
        }
        #expect(stage.arrive().enter(stage.room(.relayed), .moderator, on: stage)?.moderatorArchives == nil)
    }
}
