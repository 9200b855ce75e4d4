import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

@Suite("Audio and video of a stay in a session", .timeLimit(.minutes(3)))
struct SessionMembershipTests {
    private let admission = Admission(session: SessionID("session")!, token: "token")

    private func client(_ server: LoopbackServer, _ engine: FakeEngine = FakeEngine()) async throws -> ConfabClient {
        let client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: engine,
            in: server.dependencies)
        try await client.connect()
        return client
    }

    private func waitForPublish(_ server: LoopbackServer) async throws {
        try await until("a stream is published") {
            server.requests.contains { if case .session(.publish) = $0 { true } else { false } }
        }
    }

    @Test("what the application has disabled in its media stays disabled when it is published")
    func disabledMedia() async throws {
        let server = LoopbackServer(.relayed)
        defer { server.finish() }
        let client = try await client(server)
        let media = FakeMedia()
        let membership = SessionMembership(admission, client.core, .init()) { _ in }
        membership.begin(publishing: media)
        try await waitForPublish(server)
        #expect(media.switches.audio.isEmpty && media.switches.video.isEmpty)
        membership.end()
    }

    @Test("media that an application publishes by itself is enabled as the options say")
    func options() async throws {
        let server = LoopbackServer(.relayed)
        defer { server.finish() }
        let client = try await client(server)
        let session = try await client.join(admission.session, token: admission.token)
        let media = FakeMedia()
        try await session.publish(media, as: .init(audio: false))
        #expect(media.switches == ([false], [true]))
    }

    @Test("a line that is written before the partner has joined the session reaches the partner")
    func earlyLine() async throws {
        let server = LoopbackServer(.relayed)
        defer { server.finish() }
        let (here, there) = (try await client(server), try await client(server))
        let membership = SessionMembership(admission, here.core, .init()) { _ in }
        membership.begin(publishing: nil)
        let line = Task { try await membership.signal("chat", "Hello") }
        while membership.session.status != .connected, !Task.isCancelled { await Task.yield() }
        for _ in 1...20 { _ = try await here.core.request(.iceServers) }
        let session = try await there.session(admission.session, token: admission.token)
        let events = session.events.makeAsyncIterator()
        try await session.connect()
        while let event = await events.next() {
            guard case .signal(let signal) = event else { continue }
            #expect(signal.data == "Hello")
            break
        }
        try await line.value
        membership.end()
    }

    @Test(
        "a partner without video is there with sound only, until there is a picture",
        arguments: [MediaMode.relayed, .routed])
    func audioOnly(_ mode: MediaMode) async throws {
        let server = LoopbackServer(mode)
        defer { server.finish() }
        let (here, there) = (try await client(server), try await client(server))
        let (news, sink) = AsyncStream.makeStream(of: Arrival.self)
        let streams = LockedValue<[MediaStream]>([])
        let membership = SessionMembership(admission, here.core, .init(shown: .one)) { news in
            switch news {
            case .shows(let arrival): sink.yield(arrival)
            case .media(let stream, _, _): streams.withLock { $0.append(stream) }
            default: break
            }
        }
        membership.begin(publishing: nil)
        let session = try await there.join(admission.session, token: admission.token)
        let publisher = try await session.publish(FakeMedia(hasVideo: false))
        var arrivals = news.makeAsyncIterator()
        #expect(await arrivals.next() == .audioOnly)
        try await publisher.replaceVideo(with: FakeMedia())
        guard case .video? = await arrivals.next() else { return #expect(Bool(false), "no picture") }
        try await publisher.setVideo(false)
        #expect(await arrivals.next() == .audioOnly)
        // A room tells each change of the stream.
        #expect(streams.withLock { $0.map(\.hasVideo) }.first == false)
        #expect(streams.withLock { $0.contains(where: \.hasVideo) })
        membership.end()
    }

    @Test("a stay that ends has left its session before anything else is asked")
    func leavesAtOnce() async throws {
        let server = LoopbackServer(.relayed)
        defer { server.finish() }
        let client = try await client(server)
        let (news, sink) = AsyncStream.makeStream(of: Void.self)
        let membership = SessionMembership(admission, client.core, .init()) { if case .joined = $0 { sink.yield() } }
        membership.begin(publishing: nil)
        for await _ in news { break }
        membership.end()
        try await client.core.request(.roulette(.count))
        let left = server.requests.firstIndex { if case .session(.leave) = $0 { true } else { false } }
        let counted = server.requests.firstIndex(of: .roulette(.count))
        #expect(try #require(left) < #require(counted))
    }

    @Test("a stay that cannot follow its session tells that it is lost")
    func fallsBehind() async throws {
        let server = LoopbackServer(.relayed)
        defer { server.finish() }
        let client = try await client(server)
        let session = LockedValue<SessionCore?>(nil)
        let (news, sink) = AsyncStream.makeStream(of: String.self)
        let signal = Session.Event.signal(.init(from: ConnectionID(high: 1, low: 9), type: "chat", data: "Hello"))
        let isFirst = LockedValue(true)
        let membership = SessionMembership(admission, client.core, .init()) { news in
            switch news {
            case .signal:
                // The stay reads nothing meanwhile.
                let floods = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                guard floods, let events = session.withLock({ $0 })?.events else { return }
                for _ in 0...Events<Session.Event>.maxUnread { events.send(signal) }
            case .trouble(let error): sink.yield(error.code.rawValue)
            case .lost: sink.yield("lost")
            default: break
            }
        }
        session.withLock { $0 = membership.session.core }
        membership.begin(publishing: nil)
        try await until("the session is joined") { membership.session.status == .connected }
        membership.session.core.events.send(signal)
        var reported: [String] = []
        for await word in news {
            reported.append(word)
            if word == "lost" { break }
        }
        #expect(reported == ["slow_consumer", "lost"])
    }
}

@Suite("Media that the SDK captures", .timeLimit(.minutes(3)))
struct CaptureTests {
    private func client(_ server: LoopbackServer, _ engine: FakeEngine) -> ConfabClient {
        ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: engine,
            in: server.dependencies)
    }

    private func waitForStop(of media: FakeMedia?) async throws {
        try await until("the camera is off") { media?.isStopped != false }
    }

    @Test("the camera is off after the search, and when the application shows its own media")
    func roulette() async throws {
        let (server, engine) = (LoopbackServer(.relayed), FakeEngine())
        defer { server.finish() }
        let client = client(server, engine)
        try await client.roulette.start()
        #expect(engine.captured.map(\.isStopped) == [false])
        try await client.roulette.stop()
        try await waitForStop(of: engine.captured.last)
        try await client.roulette.start()
        #expect(engine.captured.map(\.isStopped) == [true, false])
        let own = FakeMedia()
        await client.roulette.preview(own)
        try await waitForStop(of: engine.captured.last)
        try await client.roulette.stop()
        #expect(!own.isStopped)
    }

    @Test("the camera is off when the client is closed or released")
    func closed() async throws {
        let (server, engine) = (LoopbackServer(.relayed), FakeEngine())
        defer { server.finish() }
        let leaving = client(server, engine)
        try await leaving.roulette.start()
        await leaving.leave()
        try await waitForStop(of: engine.captured.last)
        do {
            let released = client(server, engine)
            try await released.roulette.start()
        }
        #expect(engine.captured.count == 2)
        try await waitForStop(of: engine.captured.last)
    }

    @Test("the camera is off if a call cannot be placed")
    func refusedCall() async throws {
        let (server, engine) = (LoopbackServer(.relayed), FakeEngine())
        defer { server.finish() }
        let client = client(server, engine)
        try await client.connect()
        // This server knows no calls.
        await #expect(throws: ConfabError.self) { try await client.calls.start(PersonID(high: 0, low: 1)) }
        #expect(engine.captured.count == 1)
        try await waitForStop(of: engine.captured.last)
    }

    @Test("a canceled task does not wait for a room, and leaves its lobby")
    func canceledJoin() async throws {
        let server = LoopbackServer(.relayed)
        defer { server.finish() }
        let client = client(server, FakeEngine())
        try await client.connect()
        let joining = Task { try await client.rooms.join("garden") }
        func hasAsked(_ isMeant: (RoomVerb) -> Bool) -> Bool {
            server.requests.contains { if case .room(let verb) = $0 { isMeant(verb) } else { false } }
        }
        try await until("the room is asked for") { hasAsked { if case .join = $0 { true } else { false } } }
        joining.cancel()
        await #expect(throws: ConfabError.cancelled) { _ = try await joining.value }
        try await until("the lobby is left") { hasAsked { if case .leave = $0 { true } else { false } } }
        #expect(client.rooms.room == nil)
    }
}
