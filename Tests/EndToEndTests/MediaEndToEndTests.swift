import Confab
import ConfabHeadless
import Testing

@Suite("Media of the SDK over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct MediaEndToEndTests {
    @Test("in a call, every frame arrives at the other person once and in order")
    func frames() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (Guest(server, media: FileEngine()), Guest(server, media: FileEngine()))
            let (atAda, atBob) = (
                ada.client.calls.events.makeAsyncIterator(), bob.client.calls.events.makeAsyncIterator()
            )
            let (film, answer) = (
                EncodedMedia(audio: false, video: Frames.size), EncodedMedia(audio: false, video: Frames.size)
            )
            await ada.client.calls.use(film)
            await bob.client.calls.use(answer)
            _ = try await ada.appear("Ada")
            let call = try await ada.client.calls.start(bob.appear("Bob"))
            _ = try await atBob.first("incoming call") { event -> Bool? in
                if case .incoming = event { true } else { nil }
            }
            try await bob.client.calls.accept(call.id)
            let (seenByBob, seenByAda) = (
                try await atBob.first("video", source), try await atAda.first("video", source)
            )
            try await expectFrames(from: film, in: seenByBob)
            try await expectFrames(from: answer, in: seenByAda)
            try await ada.client.calls.end(call.id)
        }
    }

    @Test("a person who sends only sound is there without a picture")
    func audioOnly() async throws {
        try await TestServer.run { server in
            let (ada, bob) = (Guest(server, media: FileEngine()), Guest(server, media: FileEngine()))
            let (atAda, atBob) = (
                ada.client.calls.events.makeAsyncIterator(), bob.client.calls.events.makeAsyncIterator()
            )
            await ada.client.calls.use(EncodedMedia(audio: true, video: nil))
            await bob.client.calls.use(EncodedMedia(audio: true, video: nil))
            _ = try await ada.appear("Ada")
            let call = try await ada.client.calls.start(bob.appear("Bob"), video: false)
            _ = try await atBob.first("incoming call") { event -> Bool? in
                if case .incoming = event { true } else { nil }
            }
            try await bob.client.calls.accept(call.id, video: false)
            for events in [atAda, atBob] {
                let id = try await events.first("sound") { event -> CallID? in
                    if case .audioOnly(let id) = event { id } else { nil }
                }
                #expect(id == call.id)
            }
            try await ada.client.calls.end(call.id)
        }
    }

    private func source(_ event: Calls.Event) -> EncodedSource? {
        if case .video(_, let video) = event { video as? EncodedSource } else { nil }
    }

    /// Sends frames one after the other, and expects each at the other end before the next is sent.
    private func expectFrames(from media: EncodedMedia, in source: EncodedSource) async throws {
        var frames = source.frames.makeAsyncIterator()
        // Until the first frame arrives, each request for a keyframe is answered with one.
        let opening = Task {
            media.send(Frames.video(0))
            for await _ in media.keyframeRequests { media.send(Frames.video(0)) }
        }
        #expect(await frames.next()?.bytes == Frames.video(0).bytes)
        opening.cancel()
        _ = await opening.value
        media.send(Frames.video(10))
        while let frame = await frames.next(), frame.bytes != Frames.video(10).bytes {
            #expect(frame.bytes == Frames.video(0).bytes)
        }
        for number in 11..<100 {
            media.send(Frames.video(number))
            #expect(await frames.next()?.bytes == Frames.video(number).bytes)
        }
    }
}
