import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

@Suite("Publishing and subscribing", .timeLimit(.minutes(3)))
struct SessionMediaTests {
    private let id = SessionID("session")!

    /// A client that has joined the session, and its engine.
    private func join(_ server: LoopbackServer) async throws -> (ConfabClient, Session, FakeEngine) {
        let engine = FakeEngine()
        let client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: engine,
            in: server.dependencies)
        try await client.connect()
        return (client, try await client.join(id, token: "token"), engine)
    }

    private func firstStream(of session: Session) async -> MediaStream? {
        for await event in session.events {
            if case .streamCreated(let stream) = event { return stream }
        }
        return nil
    }

    private func wait(for wanted: MediaSubscriber.Event, of events: Events<MediaSubscriber.Event>) async -> Bool {
        for await event in events where event == wanted { return true }
        return false
    }

    /// Publishes on one client and receives on the other.
    private func exchange(
        _ mode: MediaMode, subscriberFirst: Bool = false
    ) async throws -> (server: LoopbackServer, publisher: MediaPublisher, subscriber: MediaSubscriber, FakeEngine) {
        let server = LoopbackServer(mode)
        let first = try await join(server)
        let second = try await join(server)
        let (sender, receiver) = subscriberFirst ? (second, first) : (first, second)
        let publisher = try await sender.1.publish(FakeMedia())
        let stream = try #require(await firstStream(of: receiver.1))
        let subscriber = try await receiver.1.subscribe(to: stream)
        #expect(await wait(for: .connected, of: subscriber.events))
        return (server, publisher, subscriber, sender.2)
    }

    @Test("relayed media arrives, whichever end is polite", arguments: [true, false])
    func relayed(subscriberFirst: Bool) async throws {
        let (server, publisher, subscriber, _) = try await exchange(.relayed, subscriberFirst: subscriberFirst)
        defer { server.finish() }
        #expect(await subscriber.statistics().contains { $0.flow == .received })
        #expect(await publisher.statistics().contains { $0.flow == .sent })
        await publisher.unpublish()
        #expect(await wait(for: .ended(.clientUnpublished), of: subscriber.events))
        #expect(subscriber.video == nil)
    }

    @Test("routed media arrives over the pair that the subscription names")
    func routed() async throws {
        let (server, publisher, subscriber, engine) = try await exchange(.routed)
        defer { server.finish() }
        #expect(subscriber.video != nil && subscriber.audio != nil)
        let mids = server.requests.compactMap { request -> MediaMids? in
            if case .session(.subscribe(let verb)) = request { verb.mids } else { nil }
        }
        #expect(mids.count == 1 && mids.allSatisfy { $0.audio != nil && $0.video != nil })
        #expect(engine.open.count == 1)
        try await subscriber.prefer(width: 320, height: 240, frameRate: 15)
        let last = server.requests.last { if case .session(.subscribe) = $0 { true } else { false } }
        guard case .session(.subscribe(let verb)) = last else { return #expect(Bool(false)) }
        #expect(verb.preference == VideoPreference(width: 320, height: 240, frameRate: 15))
        #expect(verb.mids == mids.first)
        #expect(await publisher.statistics().allSatisfy { $0.flow == .sent })
    }

    @Test("the layers that subscribers need are the ones that are sent")
    func layers() async throws {
        let (server, publisher, _, engine) = try await exchange(.routed)
        defer { server.finish() }
        let events = publisher.events.makeAsyncIterator()
        server.post(.tell(.layersWanted(.init(session: id, stream: publisher.stream.id, rids: ["h", "q"]))))
        #expect(await events.next() == .layersWanted(["h", "q"]))
        // The steps of a connection are carried out in order, so this one ends after the change of layers.
        try await publisher.replaceVideo(with: FakeMedia())
        try await until("the layers are active") { engine.open[0].activeRIDs == [["h", "q"]] }
    }

    @Test(
        "a publisher hears that its engine cannot send other media, and sends none",
        arguments: [MediaMode.routed, .relayed])
    func unknownMedia(mode: MediaMode) async throws {
        let (server, publisher, subscriber, engine) = try await exchange(mode)
        defer { server.finish() }
        func sources() -> Int { engine.open.reduce(0) { $0 + $1.sources.count } }
        let before = sources()
        let (events, heard) = (publisher.events, subscriber.events)
        try await publisher.replaceVideo(with: UnknownMedia())
        for await event in events where event == .failed(.unknownMedia) { break }
        #expect(sources() == before - 1)
        await publisher.unpublish()
        for await event in heard {
            #expect(event != .failed(.unknownMedia), "it is nothing that the subscriber can change")
            if case .ended = event { break }
        }
    }

    @Test("a video without layers is sent while a person watches it")
    func unwatched() async throws {
        let (server, publisher, _, engine) = try await exchange(.routed)
        defer { server.finish() }
        let before = engine.open[0].activations
        for (isWanted, codec) in [(false, nil), (true, 96)] as [(Bool, Int?)] {
            let wanted = SessionNotice.LayersWanted(
                session: id, stream: publisher.stream.id, rids: [], video: isWanted, codec: codec)
            server.post(.tell(.layersWanted(wanted)))
        }
        try await until("the video is stopped and sent") { engine.open[0].activations == before + [[], nil] }
    }

    @Test("media that is encoded already is sent in its own layers, whatever it shows")
    func ownLayers() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (client, session, _) = try await join(server)
        let layers = [Layer(rid: "f", scale: 1), Layer(rid: "h", scale: 2)]
        let small = FakeMedia(size: VideoSize(width: 320, height: 180), layers: layers)
        #expect(try await session.publish(small, as: .init(videoKind: .custom)).publication.layers == layers)
        #expect(try await session.publish(FakeMedia(layers: [])).publication.layers.isEmpty)
        // Only a camera's video is encoded in layers by the engine.
        #expect(try await session.publish(FakeMedia(), as: .init(videoKind: .custom)).publication.layers.isEmpty)
        #expect(try await session.publish(FakeMedia()).publication.layers.count == 3)
        withExtendedLifetime(client) {}
    }

    @Test("a paused video is reported once, with its reason, and when it ends")
    func pauses() async throws {
        let (server, publisher, subscriber, _) = try await exchange(.routed)
        defer { server.finish() }
        let events = subscriber.events.makeAsyncIterator()
        #expect(await events.next() == .connected)
        let stream = subscriber.stream.id
        for isPaused in [true, true, false] {
            let notice = SessionNotice.SubscriptionChanged(
                session: id, stream: stream, videoPaused: isPaused, reason: .slow)
            server.post(.tell(.subscriptionChanged(notice)))
        }
        #expect(await events.next() == .videoPaused(.slow))
        #expect(await events.next() == .videoResumed)
        // The publisher's session is left when the application releases it.
        withExtendedLifetime(publisher) {}
    }

    @Test("a connection that the server ends is replaced, and the stream is reported again")
    func endedByServer() async throws {
        let (server, publisher, subscriber, _) = try await exchange(.routed)
        defer { server.finish() }
        let events = subscriber.events.makeAsyncIterator()
        #expect(await events.next() == .connected)
        server.post(.endMedia(.receive))
        var seen: [MediaSubscriber.Event] = []
        while let event = await events.next() {
            seen.append(event)
            if event == .resumed { break }
        }
        #expect(seen.contains(.dropped))
        withExtendedLifetime(publisher) {}
    }

    @Test("limits of a connection that is replaced are lifted, because the server tells them again")
    func limitsOfReplaced() async throws {
        let (server, publisher, subscriber, _) = try await exchange(.routed)
        defer { server.finish() }
        let events = subscriber.events.makeAsyncIterator()
        #expect(await events.next() == .connected)
        var change = SessionNotice.SubscriptionChanged(
            session: id, stream: subscriber.stream.id, videoPaused: true, reason: .slow)
        (change.warning, change.limited) = (true, true)
        server.post(.tell(.subscriptionChanged(change)))
        for reported in [MediaSubscriber.Event.videoPaused(.slow), .warning(true), .limited(true)] {
            #expect(await events.next() == reported)
        }
        server.post(.endMedia(.receive))
        var seen: Set<MediaSubscriber.Event> = []
        while let event = await events.next(), event != .resumed { seen.insert(event) }
        #expect(seen.isSuperset(of: [.warning(false), .limited(false), .videoResumed]))
        withExtendedLifetime(publisher) {}
    }

    @Test("a session that becomes routed moves its media, and names its transceivers")
    func moving() async throws {
        let (server, publisher, subscriber, _) = try await exchange(.relayed)
        defer { server.finish() }
        let events = subscriber.events.makeAsyncIterator()
        #expect(await events.next() == .connected)
        server.post(.tell(.mediaModeChanged(.init(session: id, mediaMode: .routed))))
        #expect(await events.next() == .dropped)
        #expect(await events.next() == .resumed)
        try await until("the server knows the subscription's transceivers") {
            server.requests.contains { request in
                if case .session(.subscribe(let verb)) = request { !verb.mids.isEmpty } else { false }
            }
        }
        let stream = publisher.stream.id
        try await until("the server knows the stream's transceivers") {
            server.requests.contains { request in
                guard case .session(.update(let verb)) = request else { return false }
                return verb.stream == stream && !verb.mids.isEmpty
            }
        }
    }

    @Test("a video that the server does not take now is off, for the publisher too")
    func bandwidthLimit() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (_, session, _) = try await join(server)
        let (voice, later) = (FakeMedia(), FakeMedia())
        let publisher = try await session.publish(voice, as: .init(video: false))
        server.post(.fill(true))
        func code(_ body: () async throws -> Void) async -> ConfabError.Code? {
            do { try await body() } catch { return (error as? ConfabError)?.code }
            return nil
        }
        #expect(await code { try await publisher.setVideo(true) } == .bandwidthExceeded)
        #expect(!publisher.hasVideo && voice.switches.video.suffix(2) == [true, false])
        let speaker = try await session.publish(FakeMedia(hasVideo: false))
        #expect(await code { try await speaker.replaceVideo(with: later) } == .bandwidthExceeded)
        #expect(!speaker.hasVideo && later.switches.video.last == false)
        #expect(await code { try await publisher.setAudio(false) } == nil, "audio may change")
    }

    @Test("a stream that is received already is not received twice")
    func twice() async throws {
        let (server, publisher, subscriber, _) = try await exchange(.routed)
        defer { server.finish() }
        let media = subscriber.media
        await #expect(throws: ConfabError.alreadySubscribed) {
            _ = try await media.subscribe(subscriber.stream, .init())
        }
        await subscriber.unsubscribe()
        _ = try await media.subscribe(subscriber.stream, .init())
        withExtendedLifetime(publisher) {}
    }

    @Test("a stream that follows another over the same transceivers has a first frame too")
    func followed() async throws {
        let (server, publisher, subscriber, _) = try await exchange(.routed)
        defer { server.finish() }
        await subscriber.unsubscribe()
        let second = try await subscriber.media.subscribe(subscriber.stream, .init())
        var seen: Set<MediaSubscriber.Event> = []
        let events = second.events.events.makeAsyncIterator()
        while seen.count < 2, let event = await events.next() { seen.insert(event) }
        #expect(seen == [.connected, .firstFrame])
        withExtendedLifetime(publisher) {}
    }

    @Test("a session that is released without leaving ends the iterations of its streams")
    func releasedSession() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let events: Events<MediaPublisher.Event>
        do {
            let (_, session, _) = try await join(server)
            events = try await session.publish(FakeMedia()).events
        }
        var last: MediaPublisher.Event?
        for await event in events { last = event }
        #expect(last == .ended(.clientDisconnected))
    }

    @Test("a muted stream sends no audio until its publisher unmutes it")
    func muting() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (_, session, _) = try await join(server)
        let publisher = try await session.publish(FakeMedia())
        let events = publisher.events.makeAsyncIterator()
        server.post(.tell(.muted(.init(session: id, active: true, stream: publisher.stream.id))))
        #expect(await events.next() == .muted)
        #expect(!publisher.hasAudio)
        try await publisher.setAudio(true)
        #expect(publisher.hasAudio)
    }

    @Test("unpublishing leaves the local media as it is")
    func localMedia() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (_, session, engine) = try await join(server)
        let media = FakeMedia()
        let publisher = try await session.publish(media)
        let events = publisher.events
        await publisher.unpublish()
        #expect(!media.isStopped)
        var last: MediaPublisher.Event?
        for await event in events { last = event }
        #expect(last == .ended(.clientUnpublished))
        // The next stream uses the same transceivers, without another negotiation.
        let again = try await session.publish(media)
        #expect(engine.made == 1 && engine.open[0].calls == ["offer"])
        await #expect(throws: ConfabError.streamEnded) { try await publisher.setAudio(true) }
        withExtendedLifetime(again) {}
    }

    @Test("without a media engine, publishing says what to do")
    func noEngine() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), in: server.dependencies)
        try await client.connect()
        let session = try await client.join(id, token: "token")
        await #expect(throws: ConfabError.noMediaEngine) { try await session.publish(FakeMedia()) }
    }

    @Test("an engine that fails makes publishing fail, and nothing stays behind")
    func failingEngine() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (_, session, engine) = try await join(server)
        engine.refuse(1)
        await #expect(throws: ConfabError.noPeer) { try await session.publish(FakeMedia()) }
        #expect(!server.requests.contains { if case .session(.publish) = $0 { true } else { false } })
    }

    @Test("fifty sessions end all iterations, close all connections and are released", arguments: [true, false])
    func release(isRouted: Bool) async throws {
        for _ in 0..<25 {
            weak var core: ClientCore?
            weak var media: SessionMedia?
            weak var publication: Publication?
            var engines: [FakeEngine] = []
            let server = LoopbackServer(isRouted ? .routed : .relayed)
            do {
                let (client, sender, sending) = try await join(server)
                let (_, receiver, receiving) = try await join(server)
                let publisher = try await sender.publish(FakeMedia())
                let stream = try #require(await firstStream(of: receiver))
                let subscriber = try await receiver.subscribe(to: stream)
                #expect(await wait(for: .connected, of: subscriber.events))
                let iteration = Task { [events = subscriber.events] in
                    var last: MediaSubscriber.Event?
                    for await event in events { last = event }
                    return last
                }
                (core, media, publication) = (client.core, sender.media, publisher.publication)
                engines = [sending, receiving]
                await sender.disconnect()
                #expect(await iteration.value == .ended(.clientDisconnected))
            }
            // Closing a connection is work of the engine, which continues after the release.
            try await until("all connections are closed") { engines.allSatisfy(\.open.isEmpty) }
            try await until("all is released") { core == nil && media == nil && publication == nil }
            server.finish()
            await server.task.value
        }
    }
}
