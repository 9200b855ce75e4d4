import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

@Suite("What a match, a call or a room sends", .timeLimit(.minutes(3)))
struct SessionMembershipSendingTests {
    private func begin(
        _ server: LoopbackServer, report: @escaping @Sendable (SessionMembershipEvent) -> Void = { _ in }
    ) async throws -> (ConfabClient, SessionMembership) {
        let client = ConfabClient(
            server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: FakeEngine(),
            in: server.dependencies)
        try await client.connect()
        let membership = SessionMembership(
            Admission(session: SessionID("session")!, token: "token"), client.core, .init(), report: report)
        return (client, membership)
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
        let (client, membership) = try await begin(server)
        membership.setSending(audio: false)
        membership.begin(publishing: FakeMedia())
        let begun = try await publish(at: server)
        #expect((begun.hasAudio, begun.hasVideo) == (false, true))
        membership.setSending(audio: false)
        membership.setSending(video: false)
        #expect(try await updates(1, at: server).map(\.hasVideo) == [false])
        membership.setSending(audio: true, video: true)
        let all = try await updates(3, at: server)
        #expect(all.map(\.hasAudio) == [nil, true, nil] && all.map(\.hasVideo) == [false, nil, true])
        withExtendedLifetime((client, membership)) {}
    }

    @Test("what is turned on while the stream is published is announced")
    func changeWhilePublishing() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (client, membership) = try await begin(server)
        membership.setSending(video: false)
        membership.begin(publishing: FakeMedia())
        _ = try await publish(at: server)
        membership.setSending(video: true)
        #expect(try await updates(1, at: server).map(\.hasVideo) == [true])
        withExtendedLifetime((client, membership)) {}
    }

    @Test("video that the server does not take now is reported once, and offered again until it is taken")
    func refusedVideo() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let troubles = LockedValue<[ConfabError.Code]>([])
        let (client, membership) = try await begin(server) { news in
            if case .trouble(let error) = news { troubles.withLock { $0.append(error.code) } }
        }
        let events = membership.session.events.makeAsyncIterator()
        membership.setSending(video: false)
        membership.begin(publishing: FakeMedia())
        #expect(try await publish(at: server).hasVideo == false)
        server.post(.fill(true))
        membership.setSending(video: true)
        #expect(try await updates(3, at: server).map(\.hasVideo).prefix(3) == [true, true, true])
        server.post(.fill(false))
        while let event = await events.next() {
            if case .streamChanged(let stream) = event, stream.hasVideo { break }
        }
        #expect(troubles.withLock { $0 } == [.bandwidthExceeded])
        withExtendedLifetime((client, membership)) {}
    }

    @Test("video that the media lacks is not announced")
    func withoutVideo() async throws {
        let server = LoopbackServer(.routed)
        defer { server.finish() }
        let (client, membership) = try await begin(server)
        membership.setSending(audio: false, video: false)
        membership.begin(publishing: FakeMedia(hasVideo: false))
        #expect(try await publish(at: server).hasVideo == false)
        membership.setSending(audio: true, video: true)
        let all = try await updates(1, at: server)
        #expect(all.map(\.hasAudio) == [true] && all.map(\.hasVideo) == [nil])
        withExtendedLifetime((client, membership)) {}
    }
}
