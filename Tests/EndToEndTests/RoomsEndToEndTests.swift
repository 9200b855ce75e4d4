import Confab
import ConfabHeadless
import Foundation
import Testing

@Suite("Rooms of the SDK over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct RoomsEndToEndTests {
    private static let names = ["Ada", "Bob", "Cem", "Dee"]

    @Test("four people meet in a room, see each other's video, write and leave")
    func four() async throws {
        let film = try Frames.file(Frames.ivf(framesPerSecond: 25), "ivf")
        defer { try? FileManager.default.removeItem(at: film) }
        try await TestServer.run { server in
            let engines = Self.names.map { _ in FileEngine(publishing: film) }
            let guests = engines.map { Guest(server, media: $0) }
            var rooms: [Room] = []
            var events: [Events<Room.Event>.Iterator] = []
            for (guest, name) in zip(guests, Self.names) {
                let room = try await guest.client.rooms.join("garden", displayName: name)
                rooms.append(room)
                events.append(room.events.makeAsyncIterator())
            }
            #expect(rooms[0].role == .host)
            #expect(rooms[3].people.map(\.name) == Self.names)
            var media: [any LocalMedia] = []
            for (room, engine) in zip(rooms, engines) {
                media.append(try await engine.capture(.camera()))
                await room.publish(media[media.count - 1])
            }
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                for events in events { tasks.addTask { try await expectVideos(3, of: events) } }
                try await tasks.waitForAll()
            }
            try await rooms[1].say("Hello")
            for events in events {
                let message = try await events.first("message") { event in
                    if case .said(let message) = event { message } else { nil }
                }
                #expect((message.name, message.text) == ("Bob", "Hello"))
            }
            try await rooms[3].leave()
            let gone = try await events[0].first("departure") { event -> String? in
                if case .person(let person) = event, person.presence == .left { person.name } else { nil }
            }
            #expect(gone == "Dee")
            for media in media { await media.stop() }
        }
    }

    /// Expects a number of videos, and counts the frames of each: they come in the order of the file.
    private func expectVideos(_ count: Int, of events: Events<Room.Event>.Iterator) async throws {
        var streams: Set<StreamID> = []
        while streams.count < count {
            let (stream, source) = try await events.first("video") { event -> (StreamID, EncodedSource)? in
                guard case .video(let stream, let subscriber) = event,
                    let source = subscriber.video as? EncodedSource
                else { return nil }
                return (stream.id, source)
            }
            #expect(streams.insert(stream).inserted)
            try await expectFilm(in: source)
        }
    }

    private func expectFilm(in source: EncodedSource) async throws {
        var last: Int?
        var count = 0
        for await frame in source.frames {
            let number = try #require((0..<10).first { Frames.video($0).bytes == frame.bytes })
            // A keyframe may come early, because a subscriber requested it.
            #expect(last.map { ($0 + 1) % 10 == number || number == 0 } ?? (number == 0))
            (last, count) = (number, count + 1)
            if count == 15 { return }
        }
        Issue.record("The video ended after \(count) frames.")
    }
}
