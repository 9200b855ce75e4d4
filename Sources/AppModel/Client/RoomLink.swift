import Confab
import Foundation

/// A room of the SDK and the events of the room's screen.
@MainActor final class RoomLink {
    private unowned let server: ClientServer
    private var room: Room?
    private var listener: Task<Void, Never>?
    private var videos: [StreamID: (stream: MediaStream, subscriber: MediaSubscriber)] = [:]

    init(_ server: ClientServer) { self.server = server }

    private func tell(_ event: RoomEvent) { server.send(.room(event)) }

    func perform(_ request: RoomRequest) {
        switch request {
        case .join(let name, let displayName, let password): join(name, displayName, password)
        case .cancel, .leave: leave()
        case .mute(let isMuted):
            server.media.setEnabled(.room, audio: !isMuted)
            inRoom { room throws(ConfabError) in await room.setSending(audio: !isMuted) }
        case .camera(let isOn):
            server.media.setEnabled(.room, video: isOn)
            inRoom { room throws(ConfabError) in await room.setSending(video: isOn) }
        case .switchCamera: server.media.switchCamera()
        case .shareScreen(let isOn): server.media.share(isOn)
        case .hand(let isUp): inRoom { room throws(ConfabError) in try await room.raiseHand(isUp) }
        case .react(let text): inRoom { room throws(ConfabError) in try await room.react(text) }
        case .say(let text): inRoom { room throws(ConfabError) in try await room.say(text) }
        }
    }

    private func inRoom(_ work: @escaping @MainActor (Room) async throws(ConfabError) -> Void) {
        guard let room else { return }
        server.queue { _ throws(ConfabError) in try await work(room) }
    }

    /// Joining is not queued: a person who waits to be let in can cancel.
    private func join(_ name: String, _ displayName: String, _ password: String?) {
        guard let client = server.client else { return refused(.offline) }
        Task { [weak self] in
            do throws(ConfabError) {
                let own = try await self?.server.media.open(for: .room, video: true)
                self?.tell(.ownVideo(own?.video))
                let room = try await client.rooms.join(name, displayName: displayName, password: password) {
                    [weak self] in
                    Task { @MainActor in self?.tell(.waitingForHost) }
                }
                await self?.publish(own, in: room)
                self?.entered(room)
            } catch {
                self?.refused(error)
            }
        }
    }

    /// Publishes the camera as the person has set it, or a screen, whose pictures are always sent.
    private func publish(_ media: (any LocalMedia)?, in room: Room) async {
        let wish = server.media.wish(.room)
        let isScreen = media !== server.media.local
        await room.setSending(audio: wish.audio, video: isScreen || wish.video)
        await room.publish(media)
    }

    private func refused(_ error: ConfabError) {
        server.media.release(.room)
        tell(.refused(CallTrouble(error), isFull: error.code == .roomFull, needsPassword: error.code == .roomPassword))
    }

    private func entered(_ room: Room) {
        self.room = room
        videos = [:]
        server.media.onShare = { [weak self] media in
            self?.inRoom { [weak self] room throws(ConfabError) in await self?.publish(media, in: room) }
        }
        tell(.joined)
        tellMembers()
        listener = Task { [weak self] in
            for await event in room.events { self?.happened(event, room) }
        }
    }

    private func leave() {
        listener?.cancel()
        (room, videos) = (nil, [:])
        server.media.release(.room)
        guard let client = server.client else { return }
        Task { try? await client.rooms.leave() }
    }

    private func happened(_ event: Room.Event, _ room: Room) {
        switch event {
        case .person, .role, .settings: tellMembers()
        case .said(let message):
            tell(.message(sender: message.name, text: message.text, isOwn: message.sender == room.connection))
        case .video(let stream, let subscriber):
            videos[stream.id] = (stream, subscriber)
            tellMembers()
        case .videoGone(let stream):
            videos[stream.id] = nil
            tellMembers()
        case .reacted, .knock, .fileRemoved: break
        case .reconnecting: tell(.reconnecting(true))
        case .waiting: break
        case .reconnected:
            tell(.reconnecting(false))
            tellMembers()
        // It is tried again if that can help.
        case .failed: break
        case .ended(let ending, let error): ended(ending, error)
        }
    }

    private func ended(_ ending: RoomEnding, _ error: ConfabError?) {
        listener?.cancel()
        (room, videos) = (nil, [:])
        server.media.release(.room)
        switch ending {
        case .left: break
        case .removed, .banned: tell(.removed)
        default: tell(.failed(error.map(CallTrouble.init) ?? CallTrouble(code: ending.rawValue, message: Self.over)))
        }
    }

    private static let over = "You are no longer in this room. Join again to return."

    /// One tile for each other person, and one for each shared screen.
    private func tellMembers() {
        guard let room else { return }
        let own = room.connection
        var members: [RoomPerson] = []
        for person in room.people where person.id != own {
            var member = RoomPerson(id: "\(person.id)", name: person.name)
            member.isHost = person.role == .host
            member.isAway = person.presence == .reconnecting
            member.hasHandUp = person.hasRaisedHand
            let theirs = videos.values.filter { $0.stream.connection == person.id }
            if let camera = theirs.first(where: { $0.stream.videoKind != .screen }) {
                member.video = camera.subscriber.video
                member.isMuted = !camera.stream.hasAudio
                member.aspect = Self.aspect(camera.stream)
            }
            members.append(member)
            for screen in theirs where screen.stream.videoKind == .screen {
                var tile = RoomPerson(id: "\(screen.stream.id)", name: person.name)
                (tile.isScreen, tile.video, tile.aspect) = (true, screen.subscriber.video, Self.aspect(screen.stream))
                members.append(tile)
            }
        }
        tell(.members(members))
    }

    private static func aspect(_ stream: MediaStream) -> Double? {
        stream.size.flatMap { $0.height > 0 ? Double($0.width) / Double($0.height) : nil }
    }
}
