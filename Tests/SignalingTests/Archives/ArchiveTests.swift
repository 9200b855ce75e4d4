import Signaling
import TestSupport
import Testing
import Wire

@Suite("A session is recorded into an archive") struct ArchiveTests {
    private let place = RecordedSession()

    private var stage: Stage { place.stage }

    private func notices(_ guest: Guest) -> [SessionNotice] {
        guest.take().compactMap { if case .session(let notice) = $0 { notice } else { nil } }
    }

    @Test("from its start to its files, with each status stored")
    func life() throws {
        place.enter()
        let stream = try place.publish(place.bob)
        _ = notices(place.ada)
        let archive = try #require(place.start { $0.name = "Meeting" })
        #expect(archive.status == .started && archive.project == Stage.apiKey && archive.session == place.session)
        #expect(place.stored(archive.id) == archive)
        #expect(notices(place.ada).compactMap(\.startedArchive) == [ArchiveInfo(archive.id, name: "Meeting")])
        #expect(place.commands().isEmpty, "nothing is recorded before the notice has passed")
        place.passNotice()
        #expect(place.commands() == ["begin audio video", "add Bob audio video"])
        place.report(.began(archive.id, at: stage.now))
        #expect(place.stored(archive.id)?.beganAt == stage.now)
        stage.pass(.seconds(9))
        let stopped = place.archive(of: place.operate(archive.id, .stop))
        #expect(stopped?.status == .stopped && stopped?.reason == "user initiated")
        #expect(place.commands() == ["end user initiated"])
        #expect(notices(place.ada).compactMap(\.stoppedArchive) == [archive.id])
        place.report(.ended(archive.id, .requested, place.result(of: stream)))
        let stored = try #require(place.stored(archive.id))
        #expect(stored.status == .available && stored.size == 1234 && stored.duration == .seconds(9))
        #expect(place.code(of: place.operate(archive.id, .stop)) == .archiveConflict)
        #expect(stage.hub.archiveCount == 0)
    }

    @Test("the answer and the notice follow the stored start")
    func order() throws {
        place.enter()
        place.start()
        let stored = try #require(
            stage.effects.firstIndex { if case .persist(.archiveStored) = $0 { true } else { false } })
        let reported = try #require(
            stage.effects.firstIndex {
                switch $0 {
                case .transmit, .answer, .recording: true
                default: false
                }
            })
        #expect(stored < reported)
    }

    @Test("a member who joins later is notified, and its stream is recorded")
    func late() throws {
        place.enter()
        let archive = try #require(place.start())
        place.passNotice()
        let carl = stage.arrive()
        let joined = carl.enter(place.session, data: "Carl", on: stage)
        #expect(joined?.archives == [ArchiveInfo(archive.id)])
        _ = place.commands()
        _ = try place.publish(carl)
        #expect(place.commands() == ["add Carl audio video"])
        _ = place.operate(archive.id, .stop)
        #expect(stage.arrive().enter(place.session, on: stage)?.archives == nil)
    }

    @Test("a start is refused: without connections, in a relayed session, and without a recorder")
    func refusals() {
        #expect(place.refusal() == .notFound)
        place.enter()
        let relayed = stage.room(.relayed)
        place.ada.enter(relayed, on: stage)
        #expect(
            place.code(of: stage.operate(.session(relayed, .startArchive(place.request())))) == .archiveConflict)
        let other = RecordedSession { $0.recordsSessions = false }
        other.enter()
        #expect(other.refusal() == .recordingUnavailable)
        let plain = RecordedSession { $0.composesArchives = false }
        plain.enter()
        #expect(plain.refusal { $0.output = .composed } == .recordingUnavailable)
        #expect(plain.refusal() == nil)
    }

    @Test("a session that became routed may be recorded")
    func fallenBack() throws {
        let relayed = stage.room(.relayed)
        for guest in [place.ada, place.bob] { guest.enter(relayed, on: stage) }
        let stream = try #require(place.ada.publish(relayed)).id
        place.bob.subscribe(relayed, stream)
        stage.pass(stage.rules.relayedFallback)
        #expect(place.archive(of: stage.operate(.session(relayed, .startArchive(place.request())))) != nil)
    }

    @Test("sessions of the roulette and of calls are never recorded")
    func never() throws {
        let (ada, _, match) = stage.pair()
        ada.join(match.publish.session, token: match.publish.token)
        let reply = stage.operate(.session(match.publish.session, .startArchive(place.request())))
        #expect(place.code(of: reply) == .archiveConflict)
        let (caller, callee) = (stage.present("Caller"), stage.present("Callee"))
        caller.call(stage.person(callee))
        let call = try #require(callee.takeCalls().compactMap(\.incoming).first).call
        callee.accept(call)
        let accepted = try #require(caller.takeCalls().compactMap(\.accepted).first)
        caller.enter(accepted)
        let session = accepted.admission.session
        #expect(place.code(of: stage.operate(.session(session, .startArchive(place.request())))) == .archiveConflict)
        stage.pass(.seconds(2))
        #expect(place.commands().isEmpty)
    }

    @Test("one archive at a time, unless the tags differ")
    func tags() throws {
        place.enter()
        let first = try #require(place.start { $0.tag = "a" })
        #expect(place.refusal { $0.tag = "a" } == .archiveConflict)
        #expect(place.start { $0.tag = "b" } != nil)
        _ = place.operate(first.id, .stop)
        #expect(place.start { $0.tag = "a" } != nil)
    }

    @Test("the number of archives is limited, and one that has stopped makes room")
    func limit() throws {
        let place = RecordedSession { $0.maxRunningArchives = 1 }
        place.enter()
        let first = try #require(place.start())
        let other = place.stage.room(.routed)
        place.ada.enter(other, on: place.stage)
        let start = OperatorRequest.Action.session(other, .startArchive(place.request()))
        #expect(place.code(of: place.stage.operate(start)) == .mediaUnavailable)
        _ = place.operate(first.id, .stop)
        #expect(place.archive(of: place.stage.operate(start)) != nil)
    }

    @Test("it stops if nothing is recorded within a minute, and has nothing to download")
    func idle() throws {
        place.enter()
        let archive = try #require(place.start())
        place.passNotice()
        stage.pass(stage.rules.archiveWait)
        #expect(place.commands() == ["begin audio video", "end maximum idle time exceeded"])
        place.report(.ended(archive.id, .idle, RecordingResult()))
        #expect(place.stored(archive.id)?.status == .failed)
        #expect(place.stored(archive.id)?.reason == "maximum idle time exceeded")
    }

    @Test("it pauses while nobody publishes, continues, and stops after a long pause")
    func pauses() throws {
        place.enter()
        let stream = try place.publish(place.bob)
        let archive = try #require(place.start())
        place.passNotice()
        _ = place.commands()
        place.bob.unpublish(place.session, stream)
        #expect(place.commands() == ["remove", "pause"])
        #expect(place.stored(archive.id)?.status == .paused)
        stage.pass(.seconds(3599))
        _ = try place.publish(place.ada)
        #expect(place.commands() == ["resume", "add Ada audio video"])
        #expect(place.stored(archive.id)?.status == .started)
        place.ada.leave()
        stage.pass(.seconds(3600))
        #expect(place.commands() == ["remove", "pause", "end maximum idle time exceeded"])
    }

    @Test("the maximum time does not count pauses, and the maximum age does")
    func longest() throws {
        let place = RecordedSession {
            ($0.maxArchiveTime, $0.maxArchiveAge) = (.seconds(100), .seconds(200))
        }
        place.enter()
        var stream = try place.publish(place.bob)
        place.start()
        place.stage.pass(.seconds(61))
        place.bob.unpublish(place.session, stream)
        place.stage.pass(.seconds(30))
        stream = try place.publish(place.bob)
        _ = place.commands()
        place.stage.pass(.seconds(39))
        #expect(place.commands().isEmpty)
        place.stage.pass(.seconds(1))
        #expect(place.commands() == ["end maximum duration exceeded"])
        place.start()
        place.stage.pass(.seconds(50))
        place.bob.unpublish(place.session, stream)
        place.stage.pass(.seconds(149))
        #expect(!place.commands().contains("end maximum duration exceeded"))
        place.stage.pass(.seconds(1))
        #expect(place.commands() == ["end maximum duration exceeded"])
    }

    @Test("it stops a minute after the last connection has left, unless a person returns")
    func empty() throws {
        place.enter()
        _ = try place.publish(place.bob)
        let archive = try #require(place.start())
        place.passNotice()
        for guest in [place.ada, place.bob] { guest.ask(.session(.leave(.init(session: place.session)))) }
        stage.pass(.seconds(59))
        place.ada.enter(place.session, on: stage)
        stage.pass(.seconds(60))
        #expect(place.stored(archive.id)?.status == .paused)
        place.ada.ask(.session(.leave(.init(session: place.session))))
        stage.pass(.seconds(60))
        #expect(place.stored(archive.id)?.reason == "session ended")
        #expect(stage.hub.sessionCount == 0, "the session is forgotten after its archive has stopped")
    }

    @Test("a recorder whose disk is full ends it, and one that cannot begin fails it")
    func recorderEnds() throws {
        place.enter()
        let stream = try place.publish(place.bob)
        let archive = try #require(place.start())
        place.passNotice()
        place.report(.ended(archive.id, .diskFull, place.result(of: stream)))
        #expect(place.stored(archive.id)?.reason == "disk full")
        #expect(place.stored(archive.id)?.status == .available)
        let second = try #require(place.start())
        place.passNotice()
        _ = place.commands()
        place.report(.failed(second.id, .cannotWrite))
        #expect(place.stored(second.id)?.status == .failed)
        #expect(place.stored(second.id)?.reason == "cannot write files")
        #expect(place.start() != nil, "the session is no longer recorded")
    }

    @Test("a stream that cannot be recorded does not end the others")
    func failedStream() throws {
        place.enter()
        let stream = try place.publish(place.bob)
        let archive = try #require(place.start())
        place.passNotice()
        _ = place.commands()
        place.report(.streamFailed(archive.id, stream, .unsupportedCodec))
        #expect(place.stored(archive.id)?.status == .paused)
        _ = try place.publish(place.ada)
        #expect(place.commands() == ["pause", "resume", "add Ada audio video"])
    }

    @Test("the deletion of the project ends it")
    func deletedProject() throws {
        place.enter()
        _ = try place.publish(place.bob)
        let archive = try #require(place.start())
        place.passNotice()
        var settings = stage.hub.hubSettings
        let other = try #require(Project(apiKey: "46000001", secret: String(repeating: "s", count: 32)))
        settings.projects = Projects(main: other)
        stage.handle(.settingsChanged(settings))
        #expect(place.stored(archive.id)?.reason == "session ended")
        #expect(place.commands().last == "end session ended")
    }

    @Test("a start that could not be stored records nothing")
    func notStored() throws {
        place.enter()
        _ = try place.publish(place.bob)
        let archive = try #require(place.start())
        stage.handle(.archiveNotStored(archive.id))
        place.passNotice()
        #expect(place.commands().isEmpty)
        #expect(
            place.ada.take().compactMap { if case .session(let notice) = $0 { notice.stoppedArchive } else { nil } }
                == [archive.id])
        #expect(place.start() != nil)
    }
}
