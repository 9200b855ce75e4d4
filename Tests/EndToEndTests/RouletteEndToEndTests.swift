import Confab
import ConfabHeadless
import Testing

@Suite("The roulette of the SDK over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct RouletteEndToEndTests {
    @Test("two clients meet, write to each other and part")
    func meeting() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (Guest(server).client.roulette, Guest(server).client.roulette)
            let (atAda, atBob) = (ada.events.makeAsyncIterator(), bob.events.makeAsyncIterator())
            try await ada.start(.text, interests: ["chess", "swift"], name: "Ada")
            try await bob.start(.text, interests: ["swift"], name: "Bob")
            let (one, other) = (try await atAda.first("match", matched), try await atBob.first("match", matched))
            #expect(one.id == other.id)
            #expect((one.partnerName, other.partnerName) == ("Bob", "Ada"))
            #expect(one.sharedInterests == ["swift"])
            // At once, although the sessions may not be joined yet.
            try await one.say("Hello")
            let heard = try await atBob.first("message", message)
            #expect(heard.text == "Hello" && !heard.isMine)
            try await other.say("Hello yourself")
            #expect(try await atAda.first("own message", message).isMine)
            #expect(try await atAda.first("message", message).text == "Hello yourself")
            try await ada.stop()
            #expect(try await atAda.first("end", ended) == .stopped)
            #expect(try await atBob.first("end", ended) == .partnerLeft)
            #expect(ada.state == .idle)
            await #expect(throws: ConfabError.self) { try await one.say("Too late") }
        }
    }

    @Test("in a video chat, each client hears that the partner has entered and what arrives")
    func video() async throws {
        try await TestServer.run { server in
            let guests = [FileEngine(), FileEngine()].map { Guest(server, media: $0).client.roulette }
            let all = guests.map { $0.events.makeAsyncIterator() }
            for guest in guests {
                await guest.preview(EncodedMedia(audio: true, video: Frames.size))
                try await guest.start()
                #expect(guest.mediaMode != nil)
            }
            for events in all {
                _ = try await events.first("match", matched)
                _ = try await events.first("partner") { event -> Bool? in
                    if case .entered = event { true } else { nil }
                }
                let subscriber = try await events.first("media") { event -> MediaSubscriber? in
                    if case .receiving(let subscriber) = event { subscriber } else { nil }
                }
                #expect(subscriber.stream.size == Frames.size)
            }
            try await guests[0].stop()
            #expect(try await all[1].first("end", ended) == .partnerLeft)
        }
    }

    @Test("a client asks for the next partner and meets a third person")
    func next() async throws {
        try await TestServer.run { server in
            let guests = [Guest(server).client.roulette, Guest(server).client.roulette, Guest(server).client.roulette]
            let events = guests.map { $0.events.makeAsyncIterator() }
            for guest in guests.prefix(2) { try await guest.start(.text) }
            let first = try await events[0].first("match", matched)
            _ = try await events[1].first("match", matched)
            try await guests[2].start(.text)
            try await guests[0].next()
            #expect(try await events[0].first("end", ended) == .next)
            #expect(try await events[1].first("end", ended) == .partnerNext)
            let second = try await events[0].first("next match", matched)
            #expect(second.id != first.id)
            #expect(try await events[2].first("match", matched).id == second.id)
        }
    }

    @Test("a client meets one on RouletteTok's wire, and both take part in the same sessions")
    func rouletteTok() async throws {
        try await TestServer.run { server in
            let old = try await RouletteTokClient(server)
            let home = try await old.hearAdmission("initial")
            try await old.send("next")
            try await old.hear("empty")
            let guest = Guest(server, media: FileEngine()).client
            let events = guest.roulette.events.makeAsyncIterator()
            await guest.roulette.preview(EncodedMedia(audio: true, video: Frames.size))
            try await guest.roulette.start(.video)
            let match = try await events.first("match", matched)
            #expect(!match.hasTextChat)
            await #expect(throws: ConfabError.self) { try await match.say("Hello") }
            // The old client publishes in its own session, and subscribes in the SDK's.
            let partner = try await old.hearAdmission("subscribe")
            #expect(partner.sessionId != home.sessionId)
            let visitor = Guest(server).client
            try await visitor.connect()
            let session = try await visitor.session(partner.session, token: partner.token)
            let inside = session.events.makeAsyncIterator()
            try await session.connect()
            _ = try await inside.first("the SDK's client in its session") { event -> Bool? in
                if case .connectionCreated = event { true } else { nil }
            }
            let stream = try await inside.first("the stream of the SDK's client") { event -> MediaStream? in
                if case .streamCreated(let stream) = event { stream } else { nil }
            }
            #expect((stream.size, stream.hasAudio, stream.hasVideo) == (Frames.size, true, true))
            try await old.send("disconnectPartners")
            try await old.hear("disconnectPartner")
            #expect(try await events.first("end", ended) == .partnerNext)
            _ = try await inside.first("the end of the token") { event -> Bool? in
                if case .disconnected(.matchEnded) = event { true } else { nil }
            }
        }
    }

    private func matched(_ event: Roulette.Event) -> Match? {
        if case .matched(let match) = event { match } else { nil }
    }
    private func message(_ event: Roulette.Event) -> ChatLine? {
        if case .message(let line) = event { line } else { nil }
    }
    private func ended(_ event: Roulette.Event) -> MatchEnding? {
        if case .ended(let ending) = event { ending } else { nil }
    }
}
