import AppModel
import Confab
import ConfabHeadless
import Foundation
import Testing

@Suite("The model of the app over sockets", .ownThreads, .timeLimit(.minutes(3)))
struct AppEndToEndTests {
    private static let sound = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
        .appending(path: "../../Sources/Robots/Sample/sound.ogg")

    /// Runs apps, each of another person, with a film for their cameras.
    static func withPhones(
        _ names: [String], _ body: @escaping @MainActor @Sendable ([Phone]) async throws -> Void
    ) async throws {
        try await withPhones(names) { phones, _ in try await body(phones) }
    }

    static func withPhones(
        _ names: [String], _ body: @escaping @MainActor @Sendable ([Phone], TestServer) async throws -> Void
    ) async throws {
        let film = try Frames.file(Frames.ivf(framesPerSecond: 25), "ivf")
        defer { try? FileManager.default.removeItem(at: film) }
        try await TestServer.run(nearbyInterval: .milliseconds(50)) { @MainActor server in
            var phones: [Phone] = []
            for name in names { phones.append(try await Phone(server, name, publishing: [film, sound])) }
            try await body(phones, server)
            for phone in phones {
                #expect(phone.device.calls.faults.isEmpty)
                phone.turnOff()
            }
        }
    }

    /// Expects frames of the film.
    @MainActor static func expectFilm(in video: (any VideoSource)?) async throws {
        let source = try #require(video as? EncodedSource)
        var count = 0
        for await frame in source.frames {
            #expect((0..<10).contains { Frames.video($0).bytes == frame.bytes })
            count += 1
            if count == 5 { return }
        }
        Issue.record("The video ended after \(count) frames.")
    }

    @Test("the system's screen answers, mutes, holds and ends a call, and changes to a second one")
    func calls() async throws {
        try await Self.withPhones(["Ada", "Bob", "Cem"]) { phones in
            let (ada, bob, cem) = (phones[0], phones[1], phones[2])
            bob.app.nearby.share()
            try await ada.call("Bob")
            try await bob.until("it rings") { bob.shown == ["Ada ringing"] }
            try await ada.until("it rings there") { ada.app.calls.coordinator.current?.call?.devices == 1 }
            #expect(ada.shown == ["Bob connecting"])
            #expect(bob.app.calls.incomingText.contains("Ada"))

            bob.device.calls.answer()
            try await ada.talks(with: "Bob")
            try await bob.talks(with: "Ada")
            #expect(ada.shown == ["Bob connected"] && bob.shown == ["Ada connected"])
            try await Self.expectFilm(in: ada.app.calls.partner)
            try await Self.expectFilm(in: bob.app.calls.partner)
            bob.device.calls.mute(true)
            #expect(bob.app.calls.isMuted && !ada.app.calls.isMuted)

            bob.device.calls.hold(true)
            #expect(bob.app.calls.isHeld && !bob.device.audio.isSounding)
            try await ada.until("Bob's video is off") { !ada.app.calls.partnerSendsVideo }
            bob.device.calls.hold(false)
            try await ada.until("Bob's video is on") { ada.app.calls.partnerSendsVideo }
            try await bob.talks(with: "Ada")
            #expect(bob.app.calls.isMuted)
            try await Self.expectFilm(in: ada.app.calls.partner)

            cem.app.nearby.share()
            try await cem.until("Bob is listed") { cem.app.nearby.rows.contains { $0.title == "Bob" } }
            // The list does not offer to call a person who is in a call. Contacts do.
            let bobsID = try #require(cem.app.nearby.rows.first { $0.title == "Bob" }?.id)
            cem.app.calls.call(Person(id: bobsID, name: "Bob"), video: true)
            try await bob.until("a second call rings") { bob.shown == ["Ada connected", "Cem ringing"] }
            bob.device.calls.answer(endingOther: true)
            try await ada.until("the call is over") { ada.app.calls.over?.ending.outcome == .hungUp }
            try await cem.talks(with: "Bob")
            try await bob.talks(with: "Cem")
            #expect(ada.shown.isEmpty && !bob.app.calls.isMuted)
            try await Self.expectFilm(in: cem.app.calls.partner)

            bob.app.calls.end()
            try await cem.until("the call is over") { cem.app.calls.over?.ending.outcome == .hungUp }
            for phone in phones {
                try await phone.until("it is quiet") { phone.shown.isEmpty && !phone.device.audio.isSounding }
            }
            #expect(ada.device.calls.endings == [.remoteEnded] && cem.device.calls.endings == [.remoteEnded])
        }
    }

    @Test("a call that is declined on the system's screen, and one that is canceled, end at both people")
    func unansweredCalls() async throws {
        try await Self.withPhones(["Ada", "Bob"]) { phones in
            let (ada, bob) = (phones[0], phones[1])
            bob.app.nearby.share()
            try await ada.call("Bob")
            try await bob.until("it rings") { bob.shown == ["Ada ringing"] }
            bob.device.calls.end()
            try await ada.until("it is declined") { ada.app.calls.over?.ending.outcome == .declined }
            #expect(ada.shown.isEmpty && bob.shown.isEmpty)

            ada.app.calls.callAgain()
            try await bob.until("it rings again") { bob.shown == ["Ada ringing"] }
            ada.device.calls.end()
            try await bob.until("it no longer rings") { bob.shown.isEmpty }
            #expect(bob.app.calls.over?.ending.outcome == .cancelled)
            #expect(bob.device.calls.endings == [.remoteEnded])
        }
    }

    @Test("a voice call shows a picture when a camera is turned on")
    func voiceCall() async throws {
        try await Self.withPhones(["Ada", "Bob"]) { phones in
            let (ada, bob) = (phones[0], phones[1])
            bob.app.nearby.share()
            try await ada.call("Bob", video: false)
            try await bob.until("it rings") { bob.shown == ["Ada ringing"] }
            bob.device.calls.answer()
            for phone in phones {
                try await phone.until("they talk") { phone.app.calls.coordinator.current?.phase == .active }
            }
            #expect(ada.app.calls.isCameraOff && !bob.app.calls.partnerSendsVideo && !bob.app.calls.isScreenAwake)
            ada.app.calls.toggleCamera()
            try await bob.until("Ada is seen") { bob.app.calls.partner != nil && bob.app.calls.partnerSendsVideo }
            try await Self.expectFilm(in: bob.app.calls.partner)
            #expect(!ada.app.calls.partnerSendsVideo && bob.app.calls.isCameraOff)
        }
    }

    @Test("what is turned off before joining a room stays off, and the others are notified of each change")
    func mutedRoom() async throws {
        try await Self.withPhones(["Ada"]) { phones, server in
            let (room, guest) = (phones[0].app.room, Guest(server))
            let session = try #require(try await guest.client.rooms.join("garden", displayName: "Dee").session)
            let events = session.events.makeAsyncIterator()
            (room.roomName, room.yourName) = ("garden", "Ada")
            room.toggleMute()
            room.toggleCamera()
            room.join()
            try await events.expect(audio: false, video: false)
            room.toggleCamera()
            try await events.expect(audio: false, video: true)
            room.toggleMute()
            try await events.expect(audio: true, video: true)
        }
    }

    @Test("two apps with different settings meet in a room, see each other and write, until one leaves")
    func rooms() async throws {
        try await Self.withPhones(["Ada", "Bob"]) { phones in
            let rooms = phones.map(\.app.room)
            // The other phone has the usual settings, with which descriptions stay as they are.
            let settings = phones[1].app.settings
            settings.settings.candidates = .local
            settings.settings.transport = .udp
            settings.settings.videoCodec = .vp8
            for (phone, name) in zip(phones, ["Ada", "Bob"]) {
                (phone.app.room.roomName, phone.app.room.yourName) = ("garden", name)
                phone.app.room.join()
                try await phone.until("it is in the room") { phone.app.room.isInRoom && phone.device.audio.isSounding }
            }
            for (phone, other) in zip(phones, ["Bob", "Ada"]) {
                try await phone.until("\(other) is seen") {
                    phone.app.room.members.map(\.name) == [other] && phone.app.room.members[0].video != nil
                }
                try await Self.expectFilm(in: phone.app.room.members[0].video)
            }
            #expect(rooms[1].members[0].isHost)
            rooms[0].draft = "Hello"
            rooms[0].send()
            try await phones[1].until("Bob reads it") { rooms[1].chat.map(\.text) == ["Hello"] }
            #expect(rooms[1].chat[0].name == "Ada")

            rooms[1].leave()
            try await phones[0].until("Ada is alone") { rooms[0].members.isEmpty }
            try await phones[1].until("Bob's sound is off") { !phones[1].device.audio.isSounding }
        }
    }

    @Test("apps meet in the roulette, write, and meet the next person")
    func roulette() async throws {
        try await Self.withPhones(["Ada", "Bob", "Cem"]) { phones in
            let (ada, bob, cem) = (phones[0], phones[1], phones[2])
            ada.app.roulette.start()
            bob.app.roulette.start()
            for (phone, other) in [(ada, "Bob"), (bob, "Ada")] {
                try await phone.until("\(other) is met and seen") {
                    phone.app.roulette.partnerName == other && phone.app.roulette.partner != nil
                }
                try await Self.expectFilm(in: phone.app.roulette.partner)
            }
            ada.app.roulette.draft = "Hello"
            ada.app.roulette.send()
            try await bob.until("Bob reads it") { bob.app.roulette.chat.map(\.text) == ["Hello"] }

            cem.app.roulette.start()
            ada.app.roulette.next()
            try await ada.until("Cem is met and seen") {
                ada.app.roulette.partnerName == "Cem" && ada.app.roulette.partner != nil
            }
            try await bob.until("Bob waits again") { !bob.app.roulette.isInChat && !bob.app.roulette.isIdle }
            #expect(bob.app.roulette.lastEnding == .partnerNext)
            ada.app.roulette.stop()
            try await cem.until("Ada has left") { cem.app.roulette.lastEnding == .partnerLeft }
            try await ada.until("Ada's sound is off") { !ada.device.audio.isSounding }
        }
    }
}

extension Events<Session.Event>.Iterator {
    /// Waits until a stream is announced to have exactly these media.
    @discardableResult
    func expect(audio: Bool, video: Bool) async throws -> MediaStream {
        try await first("stream with audio \(audio) and video \(video)") { event -> MediaStream? in
            switch event {
            case .streamCreated(let stream), .streamChanged(let stream):
                stream.hasAudio == audio && stream.hasVideo == video ? stream : nil
            default: nil
            }
        }
    }
}
