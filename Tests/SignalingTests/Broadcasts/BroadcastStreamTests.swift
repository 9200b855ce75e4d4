import Signaling
import TestSupport
import Testing
import Wire

@Suite("Who is broadcast, and how") struct BroadcastStreamTests {
    private func consent(_ guest: Guest, _ accept: Bool, broadcast: Bool? = true, _ place: BroadcastSession) {
        let verb = SessionVerb.Consent(session: place.session, accept: accept, broadcast: broadcast)
        #expect(guest.ask(.session(.consent(verb)))?.type == "ok")
    }

    @Test("with consent, only streams of members who accepted are broadcast")
    func asks() throws {
        let place = BroadcastSession { $0.recordingConsent = .ask }
        place.enter()
        _ = (try place.publish(place.ada), try place.publish(place.bob))
        _ = place.notices(place.ada)
        let broadcast = try #require(place.start())
        #expect(place.notices(place.ada) == ["started \(broadcast.id) asks"])
        consent(place.bob, false, place)
        place.passNotice()
        #expect(place.commands() == ["begin bestFit"])
        consent(place.ada, true, place)
        consent(place.ada, true, place)
        #expect(place.commands() == ["add Ada audio video"])
        consent(place.ada, false, place)
        #expect(place.commands() == ["remove"], "consent can be withdrawn")
        _ = place.operate(broadcast.id, .stop)
        consent(place.ada, true, place)
        _ = place.commands()
        place.start()
        place.passNotice()
        #expect(place.commands() == ["begin bestFit"], "the next broadcast asks again")
    }

    @Test("a member who leaves and joins again is asked again, although the broadcast continues")
    func left() throws {
        let place = BroadcastSession { $0.recordingConsent = .ask }
        place.enter()
        _ = (try place.publish(place.bob), try place.publish(place.ada))
        place.start()
        consent(place.ada, true, place)
        place.passNotice()
        #expect(place.commands() == ["begin bestFit", "add Ada audio video"])
        place.ada.ask(.session(.leave(.init(session: place.session))))
        #expect(place.commands() == ["remove"])
        place.ada.enter(place.session, data: "Ada", on: place.stage)
        _ = try place.publish(place.ada)
        #expect(place.commands().isEmpty)
        consent(place.ada, true, place)
        #expect(place.commands() == ["add Ada audio video"])
    }

    @Test("a member who agrees to a recording has not agreed to a broadcast, and the reverse")
    func separateConsent() throws {
        let place = BroadcastSession { $0.recordingConsent = .ask }
        place.enter()
        _ = (try place.publish(place.ada), try place.publish(place.bob))
        var archive = ArchiveRequest()
        archive.output = .individual
        _ = place.stage.operate(.session(place.session, .startArchive(archive)))
        consent(place.ada, true, broadcast: nil, place)
        place.start()
        consent(place.bob, true, place)
        place.passNotice()
        #expect(place.commands() == ["begin bestFit", "add Bob audio video"])
        let recorded = place.stage.takeRecorder().compactMap {
            if case .add(_, _, let stream) = $0 { stream.connectionData } else { nil }
        }
        #expect(recorded == ["Ada"])
    }

    @Test("in the manual mode, the application adds and removes streams, with or without audio and video")
    func manual() throws {
        let place = BroadcastSession { $0.streamsPerArchive = 1 }
        place.enter()
        let (ada, bob) = (try place.publish(place.ada), try place.publish(place.bob))
        let broadcast = try #require(place.start { $0.streamMode = .manual })
        func add(_ stream: StreamID, audio: Bool = true, video: Bool = true) -> OperatorReply? {
            place.operate(broadcast.id, .addStream(SelectedStream(stream, hasAudio: audio, hasVideo: video)))
        }
        #expect(place.broadcast(of: add(bob, video: false))?.selection.map(\.stream) == [bob])
        place.passNotice()
        #expect(place.commands() == ["begin bestFit", "add Bob audio"])
        _ = add(bob)
        #expect(place.commands() == ["remove", "add Bob audio video"], "with other tracks")
        _ = add(bob)
        #expect(place.commands().isEmpty, "nothing has changed")
        #expect(place.code(of: add(ada)) == .broadcastConflict, "one stream is the maximum")
        _ = place.operate(broadcast.id, .removeStream(bob))
        #expect(place.commands() == ["remove"] && place.stored(broadcast.id)?.selection == [])
        #expect(place.code(of: place.operate(broadcast.id, .removeStream(bob))) == .notFound)
        #expect(place.code(of: add(StreamID(high: 1, low: 2))) == .notFound)
        #expect(place.code(of: add(ada, audio: false, video: false)) == .malformed)
        let all = try #require(place.start { $0.tag = "all" })
        let selected = SelectedStream(ada, hasAudio: true, hasVideo: true)
        #expect(place.code(of: place.operate(all.id, .addStream(selected))) == .broadcastConflict)
    }

    @Test("layouts and classes change while it runs")
    func layouts() throws {
        let place = BroadcastSession()
        place.enter()
        let bob = try place.publish(place.bob)
        let broadcast = try #require(place.start())
        _ = place.operate(broadcast.id, .setLayout(CompositionLayout("pip")))
        _ = place.stage.operate(.session(place.session, .setLayoutClasses([StreamLayout(bob, ["focus"])])))
        place.passNotice()
        #expect(place.commands() == ["begin pip", "add Bob audio video focus"])
        let changed = place.operate(broadcast.id, .setLayout(CompositionLayout("custom", stylesheet: "stream {}")))
        #expect(place.broadcast(of: changed)?.request.layout?.stylesheet == "stream {}")
        for _ in 0..<2 {
            _ = place.stage.operate(.session(place.session, .setLayoutClasses([StreamLayout(bob, ["full"])])))
        }
        #expect(place.commands() == ["layout custom", "classes full"])
        #expect(place.stored(broadcast.id)?.request.layout?.type == "custom")
    }
}
