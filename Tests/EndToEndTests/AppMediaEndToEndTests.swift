import AppModel
import Confab
import ConfabHeadless
import Foundation
import Testing

/// Screens, cameras that are off, and what a host does.
extension AppEndToEndTests {
    @Test("a shared screen is seen beside the person, whose voice continues, until a host stops it")
    func sharedScreen() async throws {
        try await Self.withPhones(["Ada"]) { phones, server in
            let (room, guest) = (phones[0].app.room, Guest(server))
            let host = try await guest.client.rooms.join("garden", displayName: "Dee")
            let events = try #require(host.session).events.makeAsyncIterator()
            room.roomName = "garden"
            room.join()
            let camera = try await events.expect(audio: true, video: true)
            #expect(camera.videoKind == .camera)
            room.toggleScreen()
            let screen = try await events.expect(audio: false, video: true)
            #expect(screen.videoKind == .screen && screen.connection == camera.connection)
            #expect(Set(try #require(host.session).streams.map(\.id)) == [camera.id, screen.id])

            try await host.stopSharing()
            try await phones[0].until("Ada reads it") { room.noticeText == "A host stopped your screen share." }
            #expect(!room.isSharingScreen)
            room.toggleScreen()
            let second = try await events.expect(audio: false, video: true)
            room.toggleScreen()
            _ = try await events.first("end of the screen") { event -> Bool? in
                if case .streamDestroyed(let stream, .clientUnpublished) = event, stream.id == second.id {
                    true
                } else {
                    nil
                }
            }
            #expect(try #require(host.session).streams.map(\.id) == [camera.id])
        }
    }

    @Test("a screen that only hosts may share is not shared, and the app says so")
    func forbiddenScreen() async throws {
        try await Self.withPhones(["Ada"]) { phones, server in
            var settings = RoomSettingsChange()
            settings.onlyHostsShare = true
            let host = try await Guest(server).client.rooms.join("garden", displayName: "Dee", settings: settings)
            let room = phones[0].app.room
            room.roomName = "garden"
            room.join()
            try await phones[0].until("Ada is in") { room.isInRoom && room.own != nil }
            room.toggleScreen()
            try await phones[0].until("Ada reads it") { room.noticeText.contains("Only hosts and cohosts may share") }
            #expect(!room.isSharingScreen && host.people.count == 2)
        }
    }

    @Test("a room whose members see each other's addresses is joined by those who accept that, and they see each other")
    func meshRoom() async throws {
        try await Self.withPhones(["Ada", "Bob"]) { phones, server in
            var settings = RoomSettingsChange()
            settings.isMesh = true
            let host = try await Guest(server).client.rooms.join(
                "garden", displayName: "Dee", settings: settings, routedOnly: false)
            for phone in phones {
                let room = phone.app.room
                room.roomName = "garden"
                room.join()
                try await phone.until("the app asks") { room.joinText == "Join anyway" }
                #expect(host.people.count(where: { $0.presence == .connected }) == (phone === phones[0] ? 1 : 2))
                room.join()
                try await phone.until("it is in the room") { room.isInRoom }
            }
            try await phones[0].until("Bob is seen") { phones[0].app.room.members.contains { $0.video != nil } }
            try await Self.expectFilm(in: phones[0].app.room.members.first { $0.video != nil }?.video)
        }
    }

    @Test("a host mutes a person, gives them a role, and removes them from the app")
    func hostInTheApp() async throws {
        try await Self.withPhones(["Ada", "Bob"]) { phones in
            let (ada, bob) = (phones[0].app.room, phones[1].app.room)
            ada.roomName = "garden"
            ada.preview()
            try await phones[0].until("Ada sees herself") { ada.own != nil }
            ada.join()
            try await phones[0].until("Ada is in") { ada.isInRoom && ada.role == .host }
            bob.roomName = "garden"
            bob.join()
            try await phones[0].until("Bob is seen") { ada.members.first?.video != nil }
            let id = ada.members[0].id
            ada.perform(.mute, on: id)
            try await phones[1].until("Bob is muted") { bob.isMutedByHost }
            try await phones[0].until("Ada sees it") { ada.members.first?.isMuted == true }
            ada.perform(.makeCohost, on: id)
            try await phones[1].until("Bob is a cohost") { bob.role == .cohost }
            #expect(bob.actions(on: bob.members.first?.id ?? "") == [.mute])
            bob.toggleScreen()
            try await phones[0].until("Ada sees the screen") { ada.members.contains(where: \.isScreen) }
            ada.perform(.stopSharing, on: ada.members.first(where: \.isScreen)?.id ?? "")
            try await phones[1].until("Bob reads it") { bob.noticeText == "A host stopped your screen share." }
            ada.perform(.remove, on: id)
            ada.confirm(try #require(ada.question))
            try await phones[1].until("Bob is removed") { bob.status == .removed }
            try await phones[0].until("Ada is alone") { ada.members.isEmpty }
        }
    }

    @Test("a file that a person sends in a room is downloaded, and is gone from the device when the person leaves")
    func fileInARoom() async throws {
        try await Self.withPhones(["Ada"]) { phones, server in
            let (ada, room) = (phones[0], phones[0].app.room)
            let host = try await Guest(server).client.rooms.join("garden", displayName: "Dee")
            room.roomName = "garden"
            room.join()
            try await ada.until("Ada is in") { room.isInRoom }
            let notes = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).txt")
            defer { try? FileManager.default.removeItem(at: notes) }
            try Data("Hello".utf8).write(to: notes)
            try await host.send(notes, as: "notes.txt")
            try await ada.until("Ada reads its name") { room.chat.map(\.text) == ["notes.txt"] }
            #expect(room.chat[0].file?.file.size == 5)
            room.download(try #require(room.chat[0].file?.id))
            try await ada.until("it is downloaded") { room.chat[0].file?.savedFile != nil }
            let saved = try #require(room.chat[0].file?.savedFile)
            #expect(saved.lastPathComponent == "notes.txt")
            #expect(try Data(contentsOf: saved) == Data("Hello".utf8))
            room.leave()
            #expect(!FileManager.default.fileExists(atPath: saved.path))

            room.join()
            try await ada.until("Ada is in again") { room.isInRoom }
            let heard = host.events.makeAsyncIterator()
            try await host.send(notes, as: "more.txt")
            try await ada.until("Ada reads the name") { room.chat.map(\.text) == ["notes.txt", "more.txt"] }
            // The host may be notified of its file later than Ada.
            let file = try await heard.first("file") { event -> SharedFile? in
                if case .said(let message) = event, message.file?.name == "more.txt" { message.file } else { nil }
            }
            try await host.remove(file)
            try await ada.until("the line is gone") { room.chat.map(\.text) == ["notes.txt"] }
        }
    }

    @Test("a person in a room is muted by a host, reacts, raises a hand, and admits a person")
    func moderatedRoom() async throws {
        try await Self.withPhones(["Ada"]) { phones, server in
            let (ada, room) = (phones[0], phones[0].app.room)
            var settings = RoomSettingsChange()
            settings.hasLobby = true
            let guest = Guest(server)
            let host = try await guest.client.rooms.join("garden", displayName: "Dee", settings: settings)
            let (reported, events) = (
                host.events.makeAsyncIterator(), try #require(host.session).events.makeAsyncIterator()
            )
            room.roomName = "garden"
            room.join()
            let knock = try await reported.first("knock") { event -> RoomKnock? in
                if case .knock(let knock, isWaiting: true) = event { knock } else { nil }
            }
            try await ada.until("Ada waits") { room.status == .lobby }
            try await host.admit(knock.id)
            try await ada.until("Ada is in") { room.isInRoom }
            _ = try await events.expect(audio: true, video: true)

            try await host.mute(knock.id)
            try await ada.until("Ada reads it") { room.isMutedByHost && room.isMuted }
            _ = try await events.expect(audio: false, video: true)
            room.toggleCamera()
            _ = try await events.expect(audio: false, video: false)
            room.toggleMute()
            _ = try await events.expect(audio: true, video: false)

            try await host.react("🎉")
            try await ada.until("Ada sees it") { room.reactionText(of: room.members.first?.id) == "🎉" }
            room.react("👍")
            let reaction = try await reported.first("reaction") { event -> String? in
                if case .reacted(knock.id, let text) = event { text } else { nil }
            }
            #expect(reaction == "👍")

            try await host.setRole(.cohost, of: knock.id)
            async let joined = Guest(server).client.rooms.join("garden", displayName: "Eve")
            try await ada.until("Eve knocks") { room.waitingPeople.map(\.name) == ["Eve"] }
            room.admit(room.waitingPeople[0].id)
            let eve = try await joined
            let heard = eve.events.makeAsyncIterator()
            try await ada.until("Eve is in") { room.members.map(\.name).contains("Eve") && room.waitingPeople.isEmpty }

            var silent = RoomSettingsChange()
            silent.hasChat = false
            try await host.set(silent)
            room.draft = "Hello"
            room.send()
            try await ada.until("the message is not sent") { room.chat.map(\.isSent) == [false] }
            silent.hasChat = true
            try await host.set(silent)
            room.sendAgain(room.chat[0].id)
            try await ada.until("the message is sent") { room.chat.map(\.isSent) == [true] }
            let text = try await heard.first("message") { event -> String? in
                if case .said(let message) = event { message.text } else { nil }
            }
            #expect(text == "Hello")
        }
    }

    @Test("a camera that is off has no picture at the others, and has one again when it is on")
    func camerasThatAreOff() async throws {
        try await Self.withPhones(["Ada", "Bob"]) { phones in
            let rooms = phones.map(\.app.room)
            for phone in phones {
                phone.app.room.roomName = "garden"
                phone.app.room.join()
            }
            try await phones[1].until("Ada is seen") { rooms[1].members.first?.video != nil }
            rooms[0].toggleCamera()
            try await phones[1].until("Ada is not seen") {
                rooms[1].members.count == 1 && rooms[1].members[0].video == nil
            }
            rooms[0].toggleCamera()
            try await phones[1].until("Ada is seen again") { rooms[1].members.first?.video != nil }
            try await Self.expectFilm(in: rooms[1].members[0].video)

            rooms.forEach { $0.leave() }
            for phone in phones { phone.app.roulette.start() }
            try await phones[1].until("Ada is met and seen") { phones[1].app.roulette.partner != nil }
            phones[0].app.roulette.toggleCamera()
            try await phones[1].until("Ada is not seen") { phones[1].app.roulette.partner == nil }
            #expect(phones[1].app.roulette.isInChat)
            phones[0].app.roulette.toggleCamera()
            try await phones[1].until("Ada is seen again") { phones[1].app.roulette.partner != nil }
            try await Self.expectFilm(in: phones[1].app.roulette.partner)
        }
    }

    @Test("a screen that is shared in a call is seen and heard, and the two people become contacts")
    func sharedScreenInACall() async throws {
        try await Self.withPhones(["Ada"]) { phones, server in
            let (ada, guest) = (phones[0], Guest(server, media: FileEngine()))
            await guest.client.calls.use(EncodedMedia(audio: true, video: nil))
            let events = guest.client.calls.events.makeAsyncIterator()
            let bob = try await guest.appear("Bob")
            ada.app.calls.call(Person(id: bob, name: "Bob"), video: true)
            let call = try await events.first("call") { event -> Call? in
                if case .incoming(let call) = event { call } else { nil }
            }
            try await guest.client.calls.accept(call.id, video: false)
            let camera = try await events.arrival()
            #expect(camera.audio != nil && camera.video != nil)
            try await ada.until("they talk") { ada.app.calls.coordinator.current?.phase == .active }

            ada.app.calls.toggleCamera()
            _ = try await events.first("end of the video") { event -> Bool? in
                if case .changed(let call) = event, !call.receivesVideo { true } else { nil }
            }
            ada.app.calls.toggleScreen()
            let screen = try await events.arrival { $0.video != nil && $0.stream.id != camera.stream.id }
            #expect(screen.audio != nil, "the voice continues")
            #expect(camera.stream.videoKind == .camera && screen.stream.videoKind == .screen)
            try await Self.expectFilm(in: screen.video)
            #expect(ada.app.calls.isCameraOff && ada.app.calls.isSharingScreen)
            ada.app.calls.toggleScreen()
            let voice = try await events.arrival { $0.audio != nil && $0.stream.id != screen.stream.id }
            #expect(voice.stream.videoKind == .camera)

            let contacts = guest.client.contacts.events.makeAsyncIterator()
            ada.app.calls.keepInTouch()
            _ = try await contacts.first("wish") { event -> Bool? in event == .asked(.call(call.id)) ? true : nil }
            try await guest.client.contacts.keep(call: call.id)
            try await ada.until("Ada has a contact") { ada.app.people.contacts?.map(\.name) == ["Bob"] }
            try await ada.until("Ada reads it") { ada.app.calls.keepText.contains("are now contacts") }
        }
    }

    @Test("a search for text closes the preview, and its end does not leave a frozen picture")
    func previews() async throws {
        try await Self.withPhones(["Ada"]) { phones in
            let (ada, roulette) = (phones[0], phones[0].app.roulette)
            roulette.preview()
            try await ada.until("Ada sees herself") { roulette.own != nil && roulette.isPrepared }
            roulette.mode = .text
            try await ada.until("the camera is closed") { roulette.own == nil && !roulette.isPrepared }
            roulette.appear()
            try await ada.until("the people are counted") { roulette.peopleText == "No one else is online yet" }
            roulette.start()
            try await ada.until("the search is on") { roulette.canStop }
            roulette.stop()
            roulette.mode = .video
            roulette.start()
            try await ada.until("Ada sees herself") { roulette.own != nil }
            roulette.stop()
            try await ada.until("the camera is closed") { roulette.own == nil && roulette.isIdle }
        }
    }
}

extension Events<Calls.Event>.Iterator {
    /// Waits until media of the other person arrives that fits.
    fileprivate func arrival(_ fits: @Sendable (MediaSubscriber) -> Bool = { _ in true }) async throws
        -> MediaSubscriber
    {
        try await first("arrival") { event -> MediaSubscriber? in
            if case .receiving(_, let subscriber) = event, fits(subscriber) { subscriber } else { nil }
        }
    }
}
