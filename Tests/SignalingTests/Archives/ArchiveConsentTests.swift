import Signaling
import TestSupport
import Testing
import Wire

@Suite("Who is recorded, and how") struct ArchiveConsentTests {
    private let place = RecordedSession { $0.recordingConsent = .ask }

    private func consent(_ guest: Guest, _ accept: Bool) {
        #expect(guest.ask(.session(.consent(.init(session: place.session, accept: accept))))?.type == "ok")
    }

    @Test("with consent, only streams of members who accepted are recorded")
    func asks() throws {
        place.enter()
        _ = try place.publish(place.ada)
        _ = try place.publish(place.bob)
        place.ada.take()
        let archive = try #require(place.start())
        let info = place.ada.take().compactMap {
            if case .session(let notice) = $0 { notice.startedArchive } else { nil }
        }
        #expect(info == [ArchiveInfo(archive.id, asks: true)])
        consent(place.bob, false)
        place.passNotice()
        #expect(place.commands() == ["begin audio video"])
        consent(place.ada, true)
        #expect(place.commands() == ["add Ada audio video"])
        consent(place.ada, true)
        #expect(place.commands().isEmpty)
        consent(place.ada, false)
        #expect(place.commands() == ["remove", "pause"], "consent can be withdrawn")
        consent(place.ada, true)
        #expect(place.commands() == ["resume", "add Ada audio video"])
    }

    @Test("the answer applies to all archives of the session, until none is left")
    func forgotten() throws {
        place.enter()
        _ = try place.publish(place.ada)
        let first = try #require(place.start { $0.tag = "a" })
        consent(place.ada, true)
        let second = try #require(place.start { $0.tag = "b" })
        place.passNotice()
        #expect(place.commands().filter { $0.hasPrefix("add") }.count == 2)
        _ = (place.operate(first.id, .stop), place.operate(second.id, .stop))
        _ = place.commands()
        place.start()
        place.passNotice()
        #expect(place.commands() == ["begin audio video"], "the next archive asks again")
    }

    @Test("a member who leaves and joins again is asked again, although the recording continues")
    func left() throws {
        place.enter()
        _ = try place.publish(place.bob)
        _ = try place.publish(place.ada)
        let archive = try #require(place.start())
        consent(place.ada, true)
        consent(place.bob, true)
        place.passNotice()
        #expect(place.commands().sorted() == ["add Ada audio video", "add Bob audio video", "begin audio video"])
        place.ada.ask(.session(.leave(.init(session: place.session))))
        #expect(place.commands() == ["remove"])
        let joined = try #require(place.ada.enter(place.session, data: "Ada", on: place.stage))
        #expect(joined.archives == [ArchiveInfo(archive.id, asks: true)])
        _ = try place.publish(place.ada)
        #expect(place.commands().isEmpty)
        consent(place.ada, true)
        #expect(place.commands() == ["add Ada audio video"])
    }

    @Test("an answer without an archive is ignored")
    func early() throws {
        place.enter()
        _ = try place.publish(place.ada)
        consent(place.ada, true)
        place.start()
        place.passNotice()
        #expect(place.commands() == ["begin audio video"])
    }

    @Test("without consent as a rule, a refusal changes nothing")
    func notAsked() throws {
        let place = RecordedSession()
        place.enter()
        _ = try place.publish(place.bob)
        place.start()
        place.bob.ask(.session(.consent(.init(session: place.session, accept: false))))
        place.passNotice()
        #expect(place.commands() == ["begin audio video", "add Bob audio video"])
    }

    @Test("in the manual mode, the application adds and removes streams, with or without audio and video")
    func manual() throws {
        let place = RecordedSession()
        place.enter()
        let (ada, bob) = (try place.publish(place.ada), try place.publish(place.bob))
        let archive = try #require(place.start { $0.streamMode = .manual })
        _ = place.operate(archive.id, .addStream(SelectedStream(bob, hasAudio: true, hasVideo: false)))
        place.passNotice()
        #expect(place.commands() == ["begin audio video", "add Bob audio"])
        let added = place.operate(archive.id, .addStream(SelectedStream(ada, hasAudio: true, hasVideo: true)))
        #expect(place.archive(of: added)?.selection.count == 2)
        #expect(place.commands() == ["include audio video", "add Ada audio video"])
        _ = place.operate(archive.id, .addStream(SelectedStream(bob, hasAudio: true, hasVideo: true)))
        #expect(place.commands() == ["remove", "include audio video", "add Bob audio video"], "in another file")
        _ = place.operate(archive.id, .removeStream(ada))
        #expect(place.commands() == ["include ", "remove"])
        #expect(place.stored(archive.id)?.selection.map(\.stream) == [bob])
        #expect(place.code(of: place.operate(archive.id, .removeStream(ada))) == .notFound)
        let unknown = StreamID(high: 1, low: 2)
        let selection = SelectedStream(unknown, hasAudio: true, hasVideo: true)
        #expect(place.code(of: place.operate(archive.id, .addStream(selection))) == .notFound)
        let nothing = SelectedStream(ada, hasAudio: false, hasVideo: false)
        #expect(place.code(of: place.operate(archive.id, .addStream(nothing))) == .malformed)
    }

    @Test("streams are chosen only in the manual mode, up to a maximum")
    func manualLimits() throws {
        let place = RecordedSession { $0.streamsPerArchive = 1 }
        place.enter()
        let (ada, bob) = (try place.publish(place.ada), try place.publish(place.bob))
        let automatic = try #require(place.start())
        let choice = CompositionOperation.addStream(SelectedStream(ada, hasAudio: true, hasVideo: true))
        #expect(place.code(of: place.operate(automatic.id, choice)) == .archiveConflict)
        _ = place.operate(automatic.id, .stop)
        let manual = try #require(place.start { $0.streamMode = .manual })
        #expect(place.archive(of: place.operate(manual.id, choice)) != nil)
        let second = CompositionOperation.addStream(SelectedStream(bob, hasAudio: true, hasVideo: true))
        #expect(place.code(of: place.operate(manual.id, second)) == .archiveConflict)
        place.ada.unpublish(place.session, ada)
        #expect(place.archive(of: place.operate(manual.id, second)) != nil, "a stream that ended makes room")
    }

    @Test("layouts and classes are noted for composing")
    func layouts() throws {
        let place = RecordedSession()
        place.enter()
        let bob = try place.publish(place.bob)
        let archive = try #require(
            place.start {
                $0.output = .composed
                $0.layout = CompositionLayout("bestFit", screenshareType: "pip")
            })
        place.passNotice()
        #expect(place.commands() == ["begin audio video", "layout bestFit pip", "add Bob audio video"])
        _ = place.operate(archive.id, .setLayout(CompositionLayout("custom", stylesheet: "stream {}")))
        _ = place.stage.operate(.session(place.session, .setLayoutClasses([StreamLayout(bob, ["full"])])))
        _ = place.stage.operate(.session(place.session, .setLayoutClasses([StreamLayout(bob, ["full"])])))
        #expect(place.commands() == ["layout custom stream {}", "classes full"])
        #expect(place.stored(archive.id)?.request.layout == CompositionLayout("custom", stylesheet: "stream {}"))
        let individual = try #require(place.start { $0.tag = "other" })
        #expect(place.code(of: place.operate(individual.id, .setLayout(CompositionLayout("pip")))) == .malformed)
    }
}
