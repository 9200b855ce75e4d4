import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

@Suite("What a match, a call or a room sends", .timeLimit(.minutes(1)))
struct StaySendingTests {
    private func begin(
        _ server: LoopbackServer, report: @escaping @Sendable (StayNews) -> Void = { _ in }
    ) async throws -> (ConfabClient, Stay) {
        let client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: FakeEngine(),
            in: server.surroundings)
        try await client.connect()
        let stay = Stay(Admission(session: SessionID("session")!, token: "token"), client.core, .init(), report: report)
        return (client, stay)
    }

    /// Waits until this number of changes was announced, and returns all.
    private func updates(_ count: Int, at server: LoopbackServer) async throws -> [SessionVerb.Update] {
        func updates() -> [SessionVerb.Update] {
            server.requests.compactMap { if case .session(.update(let verb)) = $0 { verb } else { nil } }
        }
        try await until("\(count) changes are announced") { updates().count >= count }
        return updates()
    }

    /// Waits until a stream is announced.
    private func publish(at server: LoopbackServer) async throws -> SessionVerb.Publish {
        func publish() -> SessionVerb.Publish? {
            server.requests.lazy.compactMap { if case .session(.publish(let verb)) = $0 { verb } else { nil } }.first
        }
        try await until("a stream is announced") { publish() != nil }
        return try #require(publish())
    }

    @Test("a stream begins with what is sent, and each change is announced once")
    func changes() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (client, stay) = try await begin(server)
        stay.setSending(audio: false)
        stay.begin(publishing: FakeMedia())
        let begun = try await publish(at: server)
        #expect((begun.hasAudio, begun.hasVideo) == (false, true))
        stay.setSending(audio: false)
        stay.setSending(video: false)
        #expect(try await updates(1, at: server).map(\.hasVideo) == [false])
        stay.setSending(audio: true, video: true)
        let all = try await updates(3, at: server)
        #expect(all.map(\.hasAudio) == [nil, true, nil] && all.map(\.hasVideo) == [false, nil, true])
        withExtendedLifetime((client, stay)) {}
    }

    @Test("what is turned on while the stream is published is announced")
    func changeWhilePublishing() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (client, stay) = try await begin(server)
        stay.setSending(video: false)
        stay.begin(publishing: FakeMedia())
        _ = try await publish(at: server)
        stay.setSending(video: true)
        #expect(try await updates(1, at: server).map(\.hasVideo) == [true])
        withExtendedLifetime((client, stay)) {}
    }

    @Test("video that the server does not take now is told once, and offered again until it is taken")
    func refusedVideo() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let troubles = Guarded<[ConfabError.Code]>([])
        let (client, stay) = try await begin(server) { news in
            if case .trouble(let error) = news { troubles.withLock { $0.append(error.code) } }
        }
        let events = stay.session.events.makeAsyncIterator()
        stay.setSending(video: false)
        stay.begin(publishing: FakeMedia())
        #expect(try await publish(at: server).hasVideo == false)
        server.post(.fill(true))
        stay.setSending(video: true)
        #expect(try await updates(3, at: server).map(\.hasVideo).prefix(3) == [true, true, true])
        server.post(.fill(false))
        while let event = await events.next() {
            if case .streamChanged(let stream) = event, stream.hasVideo { break }
        }
        #expect(troubles.withLock { $0 } == [.bandwidthExceeded])
        withExtendedLifetime((client, stay)) {}
    }

    @Test("video that the media lacks is not announced")
    func withoutVideo() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (client, stay) = try await begin(server)
        stay.setSending(audio: false, video: false)
        stay.begin(publishing: FakeMedia(hasVideo: false))
        #expect(try await publish(at: server).hasVideo == false)
        stay.setSending(audio: true, video: true)
        let all = try await updates(1, at: server)
        #expect(all.map(\.hasAudio) == [true] && all.map(\.hasVideo) == [nil])
        withExtendedLifetime((client, stay)) {}
    }
}
