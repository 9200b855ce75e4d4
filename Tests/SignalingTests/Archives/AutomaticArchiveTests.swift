import Signaling
import TestSupport
import Testing
import Wire

@Suite("A session that is always recorded") struct AutomaticArchiveTests {
    private let place = RecordedSession(archive: .medium)
    private var stage: Stage { place.stage }

    private func leave(_ guest: Guest, _ place: RecordedSession? = nil) {
        guest.ask(.session(.leave(.init(session: (place ?? self.place).session))))
    }

    @Test("its archive starts with the first client, before anyone publishes, and its members are notified")
    func start() throws {
        let joined = place.ada.enter(place.session, data: "Ada", on: stage)
        #expect(joined?.archives == nil)
        let archive = try #require(place.archives.first)
        #expect(archive.request.resolution == "1280x720" && archive.request.output == .composed)
        #expect(archive.status == .started && archive.request.isAutomatic)
        let reported = place.ada.take().compactMap {
            if case .session(let notice) = $0 { notice.startedArchive } else { nil }
        }
        #expect(reported == [ArchiveInfo(archive.id)])
        #expect(place.bob.enter(place.session, data: "Bob", on: stage)?.archives == [ArchiveInfo(archive.id)])
        place.passNotice()
        #expect(place.commands() == ["begin audio video", "layout bestFit"])
        stage.pass(.seconds(600))
        _ = try place.publish(place.bob)
        #expect(place.commands() == ["add Bob audio video"], "it waits for the first stream as long as for others")
        #expect(place.archives.count == 1)
    }

    @Test("its archive ends a minute after everyone has left, and the next client starts another one")
    func end() throws {
        place.enter()
        _ = try place.publish(place.bob)
        place.passNotice()
        _ = place.commands()
        for guest in [place.ada, place.bob] { leave(guest) }
        stage.pass(.seconds(59))
        #expect(place.commands() == ["remove", "pause"])
        stage.pass(.seconds(1))
        #expect(place.commands() == ["end session ended"])
        #expect(stage.hub.sessionCount == 0)
        place.ada.enter(place.session, on: stage)
        #expect(place.archives.map(\.status) == [.stopped, .started])
    }

    @Test("a member who comes back within the minute is recorded into the same archive")
    func sameArchive() throws {
        place.enter()
        for guest in [place.ada, place.bob] { leave(guest) }
        stage.pass(.seconds(30))
        place.ada.enter(place.session, on: stage)
        stage.pass(.seconds(60))
        #expect(place.archives.map(\.status) == [.started])
    }

    @Test("it cannot be stopped on request, and no second archive has the same tag")
    func lasting() throws {
        place.enter()
        let archive = try #require(place.archives.first)
        #expect(place.code(of: place.operate(archive.id, .stop)) == .archiveConflict)
        #expect(place.refusal() == .archiveConflict)
        let other = try #require(place.start { $0.tag = "mine" })
        #expect(place.archive(of: place.operate(other.id, .stop)) != nil)
        #expect(place.stored(archive.id)?.status == .started)
    }

    @Test("after the maximum time another archive follows, the members stay notified, and their consent remains")
    func longest() throws {
        let place = RecordedSession(archive: .small) {
            ($0.recordingConsent, $0.maxArchiveTime) = (.ask, .seconds(100))
        }
        place.enter()
        _ = try place.publish(place.ada)
        place.ada.ask(.session(.consent(.init(session: place.session, accept: true))))
        place.passNotice()
        place.ada.take()
        _ = place.commands()
        place.stage.pass(.seconds(100))
        let commands = place.commands()
        #expect(commands.first == "end maximum duration exceeded")
        place.passNotice()
        #expect(
            Array(commands.dropFirst()) + place.commands() == [
                "begin audio video", "layout bestFit", "add Ada audio video",
            ])
        let notices = place.ada.take().compactMap {
            if case .session(let notice) = $0 { notice.archiveWord } else { nil }
        }
        #expect(notices == ["started", "stopped"])
        #expect(place.archives.map(\.status) == [.stopped, .started])
    }

    @Test("after an hour without streams its archive ends, and the next stream starts another one")
    func idle() throws {
        place.enter()
        stage.pass(.seconds(3601))
        #expect(place.archives.map(\.reason) == ["maximum idle time exceeded"])
        stage.pass(.seconds(3600))
        #expect(place.archives.count == 1)
        _ = try place.publish(place.ada)
        #expect(place.archives.map(\.status) == [.stopped, .started])
    }

    @Test("a refused start is stored once as a failed archive, and tried again until it succeeds")
    func refused() throws {
        let place = RecordedSession(archive: .small, hasWebhook: true) { $0.maxRunningArchives = 1 }
        let other = place.stage.room(.routed)
        place.bob.enter(other, on: place.stage)
        place.bob.publish(other, mids: MediaMids(audio: "0", video: "1"))
        guard
            case .archive(let blocker)? = place.stage.operate(.session(other, .startArchive(place.request())))
        else { return #expect(Bool(false), "the other archive does not start") }
        place.ada.enter(place.session, on: place.stage)
        _ = try place.publish(place.ada)
        #expect(place.archives.map(\.reason) == ["too many archives"])
        place.stage.pass(place.stage.rules.archiveRetry)
        #expect(place.archives.count == 1)
        _ = place.stage.operate(.session(other, .archive(blocker.id, .stop)))
        place.stage.pass(place.stage.rules.archiveRetry)
        #expect(place.archives.map(\.status) == [.failed, .started])
        let reported = place.stage.archive.outbox.compactMap { event in
            if case .archive(let archive) = event.kind { archive.reason } else { nil }
        }
        #expect(reported.contains("too many archives"))
    }

    @Test("after an archive of the application, which was in its place, another one follows")
    func replaced() throws {
        place.enter()
        stage.pass(.seconds(3601))
        #expect(place.archives.map(\.reason) == ["maximum idle time exceeded"])
        let manual = try #require(place.start())
        _ = try place.publish(place.bob)
        #expect(place.archives.map(\.status) == [.stopped, .started])
        stage.pass(.seconds(1))
        #expect(place.archive(of: place.operate(manual.id, .stop)) != nil)
        #expect(place.archives.map(\.request.isAutomatic) == [true, false, true])
        #expect(place.archives.last?.status == .started)
    }

    @Test("clients that join again and again do not use up the decisions of the application")
    func budget() throws {
        let place = RecordedSession(archive: .small) {
            ($0.maxRunningArchives, $0.projectDecisions) = (1, Budget.Rate(perSecond: 0.001, burst: 3))
        }
        let other = place.stage.room(.routed)
        place.bob.enter(other, on: place.stage)
        func start() -> OperatorReply? { place.stage.operate(.session(other, .startArchive(place.request()))) }
        let blocker = try #require(place.archive(of: start()))
        for _ in 1...10 {
            place.ada.enter(place.session, on: place.stage)
            leave(place.ada, place)
        }
        #expect(place.archives.count == 3)
        _ = place.stage.operate(.session(other, .archive(blocker.id, .stop)))
        #expect(place.archive(of: start()) != nil)
    }

    @Test("a server that cannot compose says so in the list of archives")
    func uncomposed() throws {
        let place = RecordedSession(archive: .small) { $0.composesArchives = false }
        place.ada.enter(place.session, on: place.stage)
        #expect(place.archives.map(\.reason) == ["composing unavailable"])
    }

    @Test("after a full disk it tries again later, not at once")
    func diskFull() throws {
        place.enter()
        let stream = try place.publish(place.bob)
        place.passNotice()
        let archive = try #require(place.archives.first)
        place.report(.ended(archive.id, .diskFull, place.result(of: stream)))
        _ = try place.publish(place.ada)
        #expect(place.archives.count == 1)
        stage.pass(stage.rules.archiveRetry)
        #expect(place.archives.count == 2)
    }

    @Test("while the disk stays full one refused archive is stored, and the next one starts when there is space again")
    func fullForLong() throws {
        place.enter()
        let stream = try place.publish(place.bob)
        place.passNotice()
        let archive = try #require(place.archives.first)
        stage.handle(.recordingSpace(isEnough: false))
        place.report(.ended(archive.id, .diskFull, place.result(of: stream)))
        for _ in 0..<12 { stage.pass(stage.rules.archiveRetry) }
        #expect(place.archives.map(\.reason) == ["disk full", "disk full"])
        #expect(place.archives.map(\.status) == [.stopped, .failed])
        #expect(place.refusal() == .storageFull)
        stage.handle(.recordingSpace(isEnough: true))
        stage.pass(stage.rules.archiveRetry)
        #expect(place.archives.map(\.status) == [.stopped, .failed, .started])
    }

    @Test("an archive that could not be stored is started again later")
    func notStored() throws {
        place.enter()
        let archive = try #require(place.archives.first)
        stage.handle(.archiveNotStored(archive.id))
        #expect(place.archives.count == 1)
        stage.pass(stage.rules.archiveRetry)
        #expect(place.archives.count == 2)
    }

    @Test("nothing is started for a relayed session, nor for one that is recorded on request")
    func others() throws {
        for session in [stage.room(.relayed, archive: .small), stage.room(.routed)] {
            place.ada.enter(session, on: stage)
            #expect(place.archives.isEmpty)
        }
    }

    @Test("a server that does not record says so once in the list of archives")
    func unavailable() {
        let place = RecordedSession(archive: .small) { $0.recordsSessions = false }
        place.enter()
        #expect(place.archives.map(\.reason) == ["recording disabled"])
        #expect(place.commands().isEmpty)
    }
}

extension SessionNotice {
    /// `started` or `stopped` if the notice is about an archive.
    fileprivate var archiveWord: String? {
        startedArchive.map { _ in "started" } ?? stoppedArchive.map { _ in "stopped" }
    }
}
