import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

/// Runs a closure when it is released. Can be used as the application's media.
private final class Probe: LocalMedia, RemoteMedia, VideoSource {
    let kind = TrackKind.video
    let hasAudio = true
    let video: (any VideoSource)?
    let size: VideoSize? = nil
    private let released: @Sendable () -> Void

    init(video: (any VideoSource)? = nil, _ released: @escaping @Sendable () -> Void = {}) {
        (self.video, self.released) = (video, released)
    }
    /// Runs `body` when it is released, and increments `count`.
    convenience init(_ count: LockedValue<Int>, _ body: @escaping @Sendable () -> Void) {
        self.init {
            body()
            count.withLock { $0 += 1 }
        }
    }
    deinit { released() }

    func setEnabled(audio: Bool?, video: Bool?) async {}
    func setEnabled(_ enabled: Bool) async {}
    func setVolume(_ volume: Double) async {}
    func stop() async {}
}

/// Objects are released outside the locks of those that held them: what runs then may take the same locks.
@Suite("Releasing objects", .timeLimit(.minutes(3)))
struct ReleasingTests {
    private let admission = Admission(session: SessionID("session")!, token: "token")

    /// The core of a client that is not connected.
    private func core() -> ClientCore {
        ClientCore(
            url: URL(string: "ws://simulated/v1/socket"), credential: .anonymous(MemoryIdentity()), hello: Hello(),
            media: nil, options: ConfabClient.Options(), dependencies: SimulatedNetwork(seed: 1).dependencies)
    }

    private func client(_ server: LoopbackServer, _ engine: FakeEngine = FakeEngine()) async throws -> ConfabClient {
        let client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: engine,
            in: server.dependencies)
        try await client.connect()
        return client
    }

    @Test("a listener of a connection may hold the last reference to the registration of another one")
    func listeners() {
        let core = core()
        let released = LockedValue(0)
        let inner = LockedValue<Listening?>(core.listen { _ in })
        let probe = LockedValue<Probe?>(Probe { released.withLock { $0 += 1 } })
        var outer: Listening? = core.listen { [inner = inner.withLock(\.self), probe = probe.withLock(\.self)] _ in
            withExtendedLifetime((inner, probe)) {}
        }
        inner.withLock { $0 = nil }
        probe.withLock { $0 = nil }
        #expect(outer != nil && released.withLock(\.self) == 0)
        outer = nil
        #expect(released.withLock(\.self) == 1)
    }

    @Test("an object in an event may use the events when it is released")
    func events() async {
        let source = EventSource<Probe>()
        let iterator = source.events.makeAsyncIterator()
        let released = LockedValue(0)
        for _ in 0..<200 {
            source.send(
                Probe {
                    #expect(iterator.failure == nil)
                    released.withLock { $0 += 1 }
                })
        }
        for _ in 0..<200 { #expect(await iterator.next() != nil) }
        #expect(released.withLock(\.self) == 200)
    }

    @Test("media in an initial event may read the events while a newer event replaces it")
    func presentEvents() {
        let source = EventSource<Probe>(holdsMedia: true) { present, event in present = [event] }
        let counts = LockedValue<[Int]>([])
        for _ in 0..<3 {
            source.send(
                Probe { [weak source] in
                    let count = source?.present.count ?? 0
                    counts.withLock { $0.append(count) }
                })
        }
        #expect(counts.withLock(\.self) == [1, 1])
    }

    @Test("local media may use its room when other media replaces it, and when the room ends")
    func roomMedia() {
        let media = RoomMedia(core())
        let released = LockedValue(0)
        media.use(Probe(released) { [weak media] in media?.setSending(audio: true, video: nil) })
        media.use(nil)
        #expect(released.withLock(\.self) == 1)
        media.perform(.enter(admission, membership: 1))
        media.perform(.exit(isLost: false))
        media.use(Probe(released) { [weak media] in media?.setSending(audio: true, video: nil) })
        media.tell(.ended(.left, nil))
        #expect(released.withLock(\.self) == 2)
    }

    @Test("local media may use the roulette when other media replaces it")
    func rouletteMedia() {
        let media = RouletteMedia(core(), EventSource())
        let released = LockedValue(0)
        media.use(Probe(released) { [weak media] in media?.setSending(audio: true, video: nil) })
        media.use(nil)
        #expect(released.withLock(\.self) == 1)
    }

    @Test("local media may use a call when other media replaces it")
    func callsMedia() {
        let media = CallsMedia(core(), EventSource())
        let released = LockedValue(0)
        media.use(Probe(released) { [weak media] in media?.setVideo(true, in: CallID(high: 0, low: 1)) })
        media.use(nil)
        #expect(released.withLock(\.self) == 1)
    }

    @Test(
        "a received video may use a match, a call or a room when another video replaces it, and when its stream ends",
        arguments: [true, false])
    func receivedVideo(isReplaced: Bool) async throws {
        let server = LoopbackServer(.relayed)
        defer { server.finish() }
        let client = try await client(server)
        let (shown, released) = (LockedValue(0), LockedValue(0))
        let membership = SessionMembership(admission, client.core, .init()) { news in
            if case .shows = news { shown.withLock { $0 += 1 } }
        }
        membership.begin(publishing: nil)
        let session = membership.session
        try await until("the session is joined") { session.status == .connected }
        // No member publishes this stream, so only this test sets its tracks.
        let id = StreamID(high: 0, low: 1)
        var info = StreamInfo()
        (info.id, info.hasVideo) = (id, true)
        server.post(.tell(.streamCreated(.init(session: session.id, stream: info))))
        try await until("the stream is subscribed to") { session.media.state.withLock { $0.subscriptions[id] != nil } }
        let known = session.media.state.withLock { $0.subscriptions[id] }
        let subscription = try #require(known)
        func setTrack(_ track: RemoteTrack?) {
            let former = subscription.state.withLock { state in
                defer { state.tracks[.video] = track }
                return state.tracks
            }
            withExtendedLifetime(former) {}
        }
        let useMembership: @Sendable () -> Void = { [weak membership] in membership?.setSending(audio: true) }
        setTrack(RemoteTrack(media: Probe(video: Probe(released, useMembership))))
        subscription.events.send(.connected)
        try await until("the video is shown") { shown.withLock(\.self) == 1 }
        // Now only the membership holds the video.
        setTrack(isReplaced ? RemoteTrack(media: FakeRemote(.video)) : nil)
        #expect(released.withLock(\.self) == 0)
        if isReplaced {
            subscription.events.send(.resumed)
        } else {
            let gone = SessionNotice.StreamDestroyed(session: session.id, stream: id, reason: .clientUnpublished)
            server.post(.tell(.streamDestroyed(gone)))
        }
        try await until("the video is released") { released.withLock(\.self) == 1 }
        membership.end()
    }

    @Test("tracks may use the connections with the SFU when these end or are replaced", arguments: [true, false])
    func routedTracks(isEnd: Bool) async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (connections, released) = (WeakReference<SFUConnections>(), LockedValue(0))
        let engine = FakeEngine { _ in Probe(released) { _ = connections.object?.attach { _ in } } }
        let client = try await client(server, engine)
        let session = try await client.join(admission.session, token: admission.token)
        let link = try client.core.sfuConnections()
        connections.set(link)
        let slot = try link.takeSlot()
        _ = try await link.mids(slot)
        // The audio is found first. When the video is found, only the connections hold the audio.
        try await until("audio and video arrive") { link.track(.video, on: slot) != nil }
        if isEnd { await client.leave() } else { server.post(.endMedia(.receive)) }
        try await until("the tracks are released") { released.withLock(\.self) == 2 }
        withExtendedLifetime((client, session, link)) {}
    }

    @Test("a track may use its subscriber when another track replaces it, and when the subscription ends")
    func subscribedTracks() {
        let media = Session(admission.session, token: admission.token, core: core()).media
        var info = StreamInfo()
        info.hasAudio = true
        let subscription = Subscription(MediaStream(info), .init())
        media.state.withLock { $0.subscriptions[subscription.stream.id] = subscription }
        let released = LockedValue(0)
        func receive() {
            let track = Probe(released) { [weak subscription] in _ = subscription?.state.withLock(\.volume) }
            media.take(RemoteTrack(media: track), .audio, for: subscription)
        }
        receive()
        receive()
        #expect(released.withLock(\.self) == 1)
        subscription.update(.connected)
        // The second track is kept until the third is announced.
        receive()
        #expect(released.withLock(\.self) == 1)
        subscription.update(.connected)
        #expect(released.withLock(\.self) == 2)
        receive()
        media.moveAll()
        #expect(released.withLock(\.self) == 3)
        receive()
        _ = subscription.end(.clientDisconnected)
        #expect(released.withLock(\.self) == 4)
    }
}
