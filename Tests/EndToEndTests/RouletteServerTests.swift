import Foundation
import OpenTokCompat
import Testing
import Wire

@Suite("A server like RouletteTok's, on OpenTok's SDK for Python", .ownThreads, .timeLimit(.minutes(3)))
@MainActor struct RouletteServerTests {
    @Test("two clients of the Swift SDK meet in sessions that it created, part, and do not meet again at once")
    func meeting() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { server in
            try await RouletteServer.run(server) { @MainActor roulette in
                let (ada, bob) = (try RouletteVisitor(roulette), try RouletteVisitor(roulette))
                let adas = try await own(ada, server, film, "Ada")
                let bobs = try await own(bob, server, film, "Bob")
                #expect(adas.place.session != bobs.place.session)

                try ada.emit("next")
                try await ada.next("empty")
                try bob.emit("next")
                try await watch(ada, bobs)
                try await watch(bob, adas)

                try ada.emit("disconnectPartners")
                for one in [ada, bob] { try await one.next("disconnectPartner") }
                for one in [ada, bob] {
                    try one.emit("next")
                    try await one.next("empty")
                }
            }
        }
    }

    /// Joins the visitor's own session, and publishes there.
    private func own(
        _ visitor: RouletteVisitor, _ server: TestServer, _ film: URL, _ name: String
    ) async throws -> OpenTokCaller {
        let initial = try #require(try await visitor.next("initial"))
        let caller = OpenTokCaller(try OpenTokPlace(server, try initial.session), film: film)
        await caller.connect(token: initial.token)
        // The token is for a moderator.
        try #require(caller.session.capabilities?.canForceMute == true)
        let settings = OTPublisherSettings()
        settings.name = name
        caller.session.publish(try #require(OTPublisher(delegate: caller, settings: settings)), error: nil)
        #expect(await caller.next() == "published \(name)")
        return caller
    }

    /// Joins the partner's session, and receives the partner's video.
    private func watch(_ visitor: RouletteVisitor, _ partner: OpenTokCaller) async throws {
        let admission = try #require(try await visitor.next("subscribe"))
        try #require(try admission.session == partner.place.session)
        let watcher = OpenTokCaller(partner.place)
        await watcher.connect(token: admission.token)
        try #require(watcher.session.capabilities?.canPublish == false)
        #expect(await watcher.next(2) == ["connection created ", "stream created"])
        let stream = try #require(watcher.streams.first)
        #expect(stream.connection.connectionId == partner.session.connection?.connectionId)
        #expect(await partner.next() == "connection created ")
        watcher.session.subscribe(try #require(OTSubscriber(stream: stream, delegate: watcher)), error: nil)
        #expect(await watcher.next(2) == ["receiving", "first picture"])
    }
}
