import Signaling
import TestSupport
import Testing
import Wire

@Suite("A session is broadcast live") struct BroadcastTests {
    private let place = BroadcastSession(hasWebhook: true)
    private var stage: Stage { place.stage }

    @Test("from its start to its end, with each status stored and reported")
    func life() throws {
        place.enter()
        _ = try place.publish(place.bob)
        _ = place.notices(place.ada)
        let broadcast = try #require(
            place.start { $0.rtmp = [RTMPOutput(id: "a", serverURL: "rtmp://example.com/live", streamName: "key")] })
        #expect(broadcast.status == .started && broadcast.hlsStatus == .connecting)
        #expect(broadcast.rtmpStatuses == [.connecting] && broadcast.project == Stage.apiKey)
        #expect(place.stored(broadcast.id) == broadcast)
        #expect(place.notices(place.ada) == ["started \(broadcast.id)"])
        #expect(place.commands().isEmpty, "nothing is broadcast before the notice has passed")
        place.passNotice()
        #expect(place.commands() == ["begin bestFit", "add Bob audio video"])
        stage.pass(.seconds(10))
        place.report(.hls(broadcast.id, .ready))
        place.report(.hls(broadcast.id, .ready))
        place.report(.rtmp(broadcast.id, target: 0, .live))
        place.report(.rtmp(broadcast.id, target: 1, .live))
        place.report(.hls(broadcast.id, .live))
        #expect(place.stored(broadcast.id)?.updatedAt == stage.now)
        let stopped = place.broadcast(of: place.operate(broadcast.id, .stop))
        #expect(stopped?.status == .stopped && stopped?.reason == "user initiated" && stopped?.hlsStatus == .ended)
        #expect(place.commands() == ["end"])
        #expect(place.notices(place.ada) == ["stopped \(broadcast.id)"])
        place.report(.hls(broadcast.id, .live))
        place.report(.ended(broadcast.id))
        #expect(place.stored(broadcast.id) == stopped)
        #expect(
            place.reported == [
                "started connecting connecting", "started ready connecting", "started ready live", "started live live",
                "stopped ended offline",
            ])
        #expect(place.code(of: place.operate(broadcast.id, .stop)) == .broadcastConflict)
        #expect(stage.hub.broadcastCount == 0)
    }

    @Test("the answer and the notice follow the stored start")
    func order() throws {
        place.enter()
        place.start()
        let stored = try #require(
            stage.effects.firstIndex { if case .persist(.broadcastStored) = $0 { true } else { false } })
        let sent = try #require(
            stage.effects.firstIndex {
                switch $0 {
                case .transmit, .answer, .broadcast: true
                default: false
                }
            })
        #expect(stored < sent)
    }

    @Test("a member who joins later is notified, and its stream is broadcast until it ends")
    func late() throws {
        place.enter()
        let broadcast = try #require(place.start())
        place.passNotice()
        let carl = stage.arrive()
        #expect(carl.enter(place.session, data: "Carl", on: stage)?.broadcasts == [BroadcastInfo(broadcast.id)])
        _ = place.commands()
        let stream = try place.publish(carl)
        carl.unpublish(place.session, stream)
        #expect(place.commands() == ["add Carl audio video", "remove"])
        _ = place.operate(broadcast.id, .stop)
        #expect(stage.arrive().enter(place.session, on: stage)?.broadcasts == nil)
    }

    @Test("a start is refused: without connections, in a relayed session, without a compositor, and twice")
    func refusals() {
        #expect(place.refusal() == .notFound)
        place.enter()
        let relayed = stage.room(.relayed)
        place.ada.enter(relayed, on: stage)
        #expect(
            place.code(of: stage.operate(.session(relayed, .startBroadcast(place.request())))) == .broadcastConflict)
        let other = BroadcastSession { $0.broadcastsSessions = false }
        other.enter()
        #expect(other.refusal() == .broadcastUnavailable)
        place.start()
        #expect(place.refusal() == .broadcastConflict)
        #expect(place.refusal { $0.tag = "other" } == nil)
        #expect(place.refusal { $0.tag = "third" } == .mediaUnavailable, "two broadcasts at a time")
        #expect(stage.hub.broadcastCount == 2)
    }

    @Test("the number of broadcasts counts those that run")
    func count() throws {
        let place = BroadcastSession { $0.maxBroadcasts = 1 }
        place.enter()
        let first = try #require(place.start())
        #expect(place.refusal { $0.tag = "other" } == .mediaUnavailable)
        _ = place.operate(first.id, .stop)
        #expect(place.start() != nil)
    }

    @Test("chats of the roulette are never broadcast")
    func privateSessions() {
        let (ada, _, match) = stage.pair()
        ada.join(match.publish.session, token: match.publish.token)
        let reply = stage.operate(.session(match.publish.session, .startBroadcast(place.request())))
        #expect(place.code(of: reply) == .broadcastConflict)
    }

    @Test("a broadcast ends at its maximum duration, and a minute after the last connection has left")
    func endings() throws {
        place.enter()
        let first = try #require(place.start { $0.maxDuration = .seconds(60) })
        place.passNotice()
        stage.pass(.seconds(59))
        #expect(place.stored(first.id)?.status == .started)
        stage.pass(.seconds(1))
        #expect(place.stored(first.id)?.reason == "maximum duration exceeded")
        let second = try #require(place.start())
        place.passNotice()
        for guest in [place.ada, place.bob] { guest.ask(.session(.leave(.init(session: place.session)))) }
        stage.pass(.seconds(59))
        #expect(place.stored(second.id)?.status == .started)
        place.ada.enter(place.session, on: stage)
        stage.pass(.seconds(2))
        #expect(place.stored(second.id)?.status == .started, "a client has joined again")
        place.ada.ask(.session(.leave(.init(session: place.session))))
        stage.pass(.seconds(60))
        #expect(place.stored(second.id)?.reason == "session ended")
        #expect(place.commands() == ["begin bestFit", "end", "begin bestFit", "end"])
    }

    @Test("one that is stopped before it begins is never composed")
    func early() throws {
        place.enter()
        let broadcast = try #require(place.start())
        #expect(place.broadcast(of: place.operate(broadcast.id, .stop))?.status == .stopped)
        place.passNotice()
        #expect(place.commands().isEmpty && stage.hub.broadcastCount == 0)
    }

    @Test("a failure ends it with a reason, and so does the end of the server")
    func failures() throws {
        place.enter()
        let first = try #require(
            place.start { $0.rtmp = [RTMPOutput(id: "", serverURL: "rtmp://a/b", streamName: "c")] })
        place.passNotice()
        place.report(.failed(first.id, .compositor))
        let failed = try #require(place.stored(first.id))
        #expect(failed.status == .failed && failed.reason == "composing failed")
        #expect(failed.hlsStatus == .error && failed.rtmpStatuses == [.error])
        let second = try #require(place.start())
        place.passNotice()
        _ = place.notices(place.ada)
        place.report(.ended(second.id))
        #expect(place.stored(second.id)?.reason == "server restarted")
        #expect(place.notices(place.ada) == ["stopped \(second.id)"])
        place.report(.failed(second.id, .compositor))
        #expect(place.stored(second.id)?.status == .stopped && stage.hub.broadcastCount == 0)
    }

    @Test("a full disk ends it with a reason, which is stored and reported, and the session can be broadcast again")
    func diskFull() throws {
        place.enter()
        let broadcast = try #require(place.start { $0.hls = HLSOutput(hasDVR: true) })
        place.passNotice()
        place.report(.hls(broadcast.id, .live))
        _ = (place.commands(), place.notices(place.ada))
        place.report(.failed(broadcast.id, .diskFull))
        let failed = try #require(place.stored(broadcast.id))
        #expect(failed.status == .failed && failed.reason == "disk full" && failed.hlsStatus == .error)
        #expect(place.reported == ["started connecting", "started live", "failed error"])
        #expect(place.notices(place.ada) == ["stopped \(broadcast.id)"])
        #expect(place.commands().isEmpty && stage.hub.broadcastCount == 0)
        #expect(place.start() != nil)
    }

    @Test("one that was running when the server stopped has stopped after the restart")
    func restart() throws {
        var record = BroadcastRecord(
            id: BroadcastID(high: 1, low: 2), project: Stage.apiKey, session: place.session, request: place.request(),
            key: BroadcastKey(high: 3, low: 4), createdAt: stage.now)
        record.hlsStatus = .live
        stage.handle(.restoredBroadcast(record))
        let stored = try #require(place.stored(record.id))
        #expect(stored.status == .stopped && stored.hlsStatus == .ended && stored.reason == "server restarted")
        #expect(place.reported == ["stopped ended"] && stage.hub.broadcastCount == 0)
    }

    @Test("after a change that was not stored, it ends, and the members know")
    func notStored() throws {
        place.enter()
        let broadcast = try #require(place.start())
        place.passNotice()
        _ = (place.commands(), place.notices(place.ada))
        stage.handle(.broadcastNotStored(broadcast.id))
        #expect(place.commands() == ["end"] && place.notices(place.ada) == ["stopped \(broadcast.id)"])
        #expect(place.start() != nil && stage.hub.broadcastCount == 1)
    }
}
