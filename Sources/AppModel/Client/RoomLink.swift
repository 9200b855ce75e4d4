import Confab
import Foundation

/// Connects a room of the SDK with the room screen.
@MainActor final class RoomLink {
    /// A stream that is being received.
    private struct Received {
        var stream: MediaStream
        let subscriber: MediaSubscriber
        var isPaused = false
        var quality = Session.Quality.good
        let listener: Task<Void, Never>
    }

    private unowned let server: ClientServer
    private var room: Room?
    private var listener: Task<Void, Never>?
    /// The task that reads the events of the room's session. The session changes when the room is joined again.
    private var sessionListener: Task<Void, Never>?
    /// The session whose events `sessionListener` reads.
    private var session: Session?
    private var recordings = RunningCaptures<ArchiveID>()
    private var broadcasts = RunningCaptures<BroadcastID>()
    private var videos: [StreamID: Received] = [:]
    /// Messages that were in the chat when this user joined, and have not arrived as events since.
    private var earlier: Set<RoomMessage> = []
    /// The publisher of the shared screen.
    private var screen: MediaPublisher?
    /// The task that last published or unpublished a screen. These tasks run one at a time.
    private var sharing: Task<Void, Never>?

    private lazy var files = RoomDownloads { [weak self] in self?.tell(.file($0, $1)) }

    init(_ server: ClientServer) { self.server = server }

    private func tell(_ event: RoomEvent) { server.send(.room(event)) }

    func perform(_ request: RoomRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.tell(.trouble($0)) }
        switch request {
        case .join(let name, let displayName, let password, let video, let routedOnly):
            join(withVideo: video) { [weak self] client throws(ConfabError) in
                try await client.rooms.join(
                    name, displayName: displayName, password: password, routedOnly: routedOnly
                ) { [weak self] in
                    Task { @MainActor in self?.tell(.waitingForHost) }
                }
            }
        case .cancel, .leave: leave()
        case .mute(let isMuted):
            server.media.setEnabled(.room, audio: !isMuted)
            inRoom { room throws(ConfabError) in await room.setSending(audio: !isMuted) }
        case .camera(let isOn): setCamera(isOn)
        case .switchCamera: server.media.switchCamera()
        case .shareScreen(let isOn): server.media.share(isOn)
        case .hand(let isUp): inRoom({ room throws(ConfabError) in try await room.raiseHand(isUp) }, failed: failed)
        case .react(let text): inRoom({ room throws(ConfabError) in try await room.react(text) }, failed: failed)
        case .say(let text, let id): say(text, id)
        case .download(let file): files.download(file, from: room)
        case .moderate(let action, let id): moderate(action, id, failed)
        case .consent(let question, let accepts): consent(question, accepts, failed)
        case .preview(let video): preview(video)
        case .closePreview:
            server.media.release(.room)
            tell(.ownVideo(nil))
        // Admit or deny only a person who still waits. Otherwise, the last case ignores the request.
        case .admit(let id) where room?.knocks.contains { $0.id == id } == true:
            inRoom({ room throws(ConfabError) in try await room.admit(id) }, failed: failed)
        case .deny(let id) where room?.knocks.contains { $0.id == id } == true:
            inRoom({ room throws(ConfabError) in try await room.deny(id) }, failed: failed)
        case .admit, .deny: break
        }
    }

    private func inRoom(
        _ work: @escaping @MainActor (Room) async throws(ConfabError) -> Void,
        failed: @escaping @MainActor (ConfabError) -> Void = { _ in }
    ) {
        guard let room else { return failed(.offline) }
        server.queue({ _ throws(ConfabError) in try await work(room) }, failed: failed)
    }

    private func say(_ text: String, _ id: Int) {
        inRoom { [weak self] room throws(ConfabError) in
            try await room.say(text)
            self?.tell(.sent(id: id, true))
        } failed: { [weak self] _ in
            self?.tell(.sent(id: id, false))
        }
    }

    /// Performs a host's action on a person or their screen, unless they have left.
    private func moderate(
        _ action: RoomAction, _ id: ConnectionID, _ failed: @escaping @MainActor (ConfabError) -> Void
    ) {
        guard room?.people.contains(where: { $0.id == id }) == true else { return }
        inRoom(
            { room throws(ConfabError) in
                switch action {
                case .mute: try await room.mute(id)
                case .stopSharing: try await room.stopSharing(id)
                case .makeHost: try await room.setRole(.host, of: id)
                case .makeCohost: try await room.setRole(.cohost, of: id)
                case .makeGuest: try await room.setRole(.guest, of: id)
                case .remove: try await room.remove(id)
                }
            }, failed: failed)
    }

    /// Sends the answer to a question for consent. If that fails, the screen shows the question again.
    private func consent(
        _ question: RoomConsent, _ accepts: Bool, _ failed: @escaping @MainActor (ConfabError) -> Void
    ) {
        // Before the server has the answer, because other events must not show the question again meanwhile.
        setAnswered(question, true)
        inRoom { room throws(ConfabError) in
            guard let session = room.session else { throw ConfabError.offline }
            switch question {
            case .recording: try await session.acceptRecording(accepts)
            case .broadcast: try await session.acceptBroadcast(accepts)
            }
        } failed: { [weak self] error in
            self?.setAnswered(question, false)
            failed(error)
            self?.tellCaptures()
        }
    }

    private func setAnswered(_ question: RoomConsent, _ isAnswered: Bool) {
        switch question {
        case .recording: recordings.setAnswered(isAnswered)
        case .broadcast: broadcasts.setAnswered(isAnswered)
        }
    }

    // MARK: Joining and leaving

    /// Opens the devices for the preview before joining, and reports the local video or the error.
    private func preview(_ video: Bool) {
        Task { [weak self] in
            do throws(ConfabError) {
                let own = try await self?.server.media.open(for: .room, video: video)
                self?.tell(.ownVideo(own?.video))
            } catch {
                self?.tell(.cameraFailed(error))
            }
        }
    }

    /// Joins a room. This is not queued, so a person waiting to be admitted can cancel.
    private func join(
        withVideo video: Bool, _ enter: @escaping @MainActor (ConfabClient) async throws(ConfabError) -> Room
    ) {
        guard let client = server.client else { return refused(.offline) }
        Task { [weak self] in
            do throws(ConfabError) {
                let own = try await self?.server.media.open(for: .room, video: video)
                self?.tell(.ownVideo(own?.video))
                let room = try await enter(client)
                // Create the iterator at once, so that no event is missed.
                let events = room.events.makeAsyncIterator()
                await self?.publish(in: room)
                self?.entered(room, events)
            } catch {
                self?.refused(error)
            }
        }
    }

    private func refused(_ error: ConfabError) {
        server.media.release(.room)
        tell(.refused(error))
    }

    private func entered(_ room: Room, _ events: Events<Room.Event>.Iterator) {
        self.room = room
        let chat = room.chat
        // Remember these messages, because they may arrive again as events and must not be shown twice.
        earlier = Set(chat)
        server.media.onShare = { [weak self] in self?.share($0) }
        tell(.joined)
        tell(.role(room.role))
        tellMembers()
        tellWaiting()
        for message in chat { said(message, in: room, isNew: false) }
        listener = Task { [weak self] in
            while let event = await events.next() { self?.happened(event, room) }
        }
        listenToSession(of: room)
    }

    private func said(_ message: RoomMessage, in room: Room, isNew: Bool) {
        tell(.said(message, isOwn: message.sender == room.connection, isNew: isNew))
    }

    private func leave() {
        forget()
        guard let client = server.client else { return }
        Task { try? await client.rooms.leave() }
    }

    /// Cleans up after the room or its connection has ended.
    func forget() {
        listener?.cancel()
        sessionListener?.cancel()
        for video in videos.values { video.listener.cancel() }
        (room, videos, screen, listener, sessionListener, session) = (nil, [:], nil, nil, nil, nil)
        (recordings, broadcasts) = (RunningCaptures(), RunningCaptures())
        files.forget()
        server.media.release(.room)
    }

    // MARK: Local media

    /// Publishes the devices with the user's mute states.
    private func publish(in room: Room) async {
        let wish = server.media.wish(.room)
        await room.setSending(audio: wish.audio, video: wish.video)
        await room.publish(server.media.local)
    }

    private func setCamera(_ isOn: Bool) {
        server.media.setEnabled(.room, video: isOn)
        inRoom { [weak self] room throws(ConfabError) in
            // If the user joined without the camera, only the microphone is open.
            if isOn, let self, let local = server.media.local, local.video == nil {
                tell(.ownVideo(try await server.media.open(for: .room, video: true).video))
                await publish(in: room)
            }
            await room.setSending(video: isOn)
        } failed: { [weak self] error in
            if isOn, self?.room != nil { self?.tell(.cameraFailed(error)) }
        }
    }

    /// Publishes a screen as a separate stream, so that others see it beside the person and still hear them.
    /// Unpublishes the previous screen first. If `media` is nil, does only that.
    private func share(_ media: (any LocalMedia)?) {
        sharing = Task { [weak self, before = sharing] in
            await before?.value
            await self?.screen?.unpublish()
            self?.screen = nil
            guard let media, self?.server.media.screen === media, let session = self?.room?.session else { return }
            do throws(ConfabError) {
                let options = Session.PublishOptions(videoKind: .screen, audio: false)
                let screen = try await session.publish(media, as: options)
                self?.published(screen, media)
            } catch {
                self?.server.media.endShare(error)
            }
        }
    }

    private func published(_ screen: MediaPublisher, _ media: any LocalMedia) {
        self.screen = screen
        Task { [weak self] in
            for await event in screen.events {
                guard case .ended(.forceUnpublished) = event, self?.server.media.screen === media else { continue }
                self?.server.media.endShare(.shareStopped)
            }
        }
    }

    // MARK: Events

    private func happened(_ event: Room.Event, _ room: Room) {
        switch event {
        case .person: tellMembers()
        case .role(let role):
            tell(.role(role))
            tellMembers()
        case .settings: tellMembers()
        case .said(let message):
            if earlier.remove(message) == nil { said(message, in: room, isNew: true) }
        case .video(let stream, let subscriber): received(stream, subscriber)
        case .videoGone(let stream):
            videos.removeValue(forKey: stream.id)?.listener.cancel()
            tellMembers()
        case .reacted(let id, let text): tell(.reacted(id: id == room.connection ? nil : "\(id)", text))
        case .knock: tellWaiting()
        case .fileRemoved(let id): tell(.fileRemoved(id))
        case .reconnecting: tell(.reconnecting(true))
        case .waiting: break
        case .reconnected:
            tell(.reconnecting(false))
            forgetFormerStreams(of: room)
            listenToSession(of: room)
            tell(.role(room.role))
            tellMembers()
            tellWaiting()
            if let screen = server.media.screen { share(screen) }
        // Ignored, because the SDK retries if that can help.
        case .failed: break
        case .ended(let ending, let error):
            forget()
            tell(.ended(ending, error))
        }
    }

    /// Drops the streams that the session no longer has: rejoining may have replaced the session.
    private func forgetFormerStreams(of room: Room) {
        let present = Set(room.session?.streams.map(\.id) ?? [])
        for (id, video) in videos where !present.contains(id) {
            video.listener.cancel()
            videos[id] = nil
        }
    }

    private func received(_ stream: MediaStream, _ subscriber: MediaSubscriber) {
        if let known = videos[stream.id], known.subscriber === subscriber {
            videos[stream.id]?.stream = stream
        } else {
            videos.removeValue(forKey: stream.id)?.listener.cancel()
            let listener = Task { [weak self] in
                for await event in subscriber.events { self?.happened(event, stream.id) }
            }
            videos[stream.id] = Received(stream: stream, subscriber: subscriber, listener: listener)
        }
        tellMembers()
    }

    private func happened(_ event: MediaSubscriber.Event, _ stream: StreamID) {
        switch event {
        case .videoPaused: videos[stream]?.isPaused = true
        case .videoResumed: videos[stream]?.isPaused = false
        case .quality(let quality, _): videos[stream]?.quality = quality
        default: return
        }
        tellMembers()
    }

    /// Listens to the session of a room, unless it is still the one that is listened to.
    private func listenToSession(of room: Room) {
        guard session == nil || room.session !== session else { return }
        sessionListener?.cancel()
        session = room.session
        (recordings, broadcasts) = (RunningCaptures(), RunningCaptures())
        tellCaptures()
        guard let current = session else { return }
        sessionListener = Task { [weak self] in
            for await event in current.events { self?.happened(event) }
        }
    }

    private func happened(_ event: Session.Event) {
        switch event {
        case .speaking(let stream): tell(.speaker(stream.map { Self.tile(of: $0) }))
        case .muted(active: true, stream: .some): tell(.mutedByHost)
        case .streamCreated, .streamDestroyed: tellConnecting()
        case .archiveStarted(let archive):
            recordings.started(archive.id, asks: archive.asksConsent)
            tellCaptures()
        case .archiveStopped(let archive):
            recordings.stopped(archive.id)
            tellCaptures()
        case .broadcastStarted(let broadcast):
            broadcasts.started(broadcast.id, asks: broadcast.asksConsent)
            tellCaptures()
        case .broadcastStopped(let broadcast):
            broadcasts.stopped(broadcast.id)
            tellCaptures()
        default: break
        }
    }

    // MARK: Reports to the screen

    /// Reports the name of a person whose media has not arrived yet; nil if there is none.
    private func tellConnecting() {
        let missing = room?.session?.streams.first { videos[$0.id] == nil }
        tell(.connecting(name: missing.flatMap { stream in room?.people.first { $0.id == stream.connection }?.name }))
    }

    private func tellCaptures() {
        tell(.capture(.recording, recordings.capture))
        tell(.capture(.broadcast, broadcasts.capture))
    }

    private func tellWaiting() {
        tell(.waitingPeople(room?.knocks ?? []))
    }

    /// Returns the id of the tile that shows a stream: the person's connection id for a camera, or the stream id for a
    /// screen, which has a separate tile.
    private static func tile(of stream: MediaStream) -> String {
        stream.videoKind == .screen ? "\(stream.id)" : "\(stream.connection)"
    }

    /// Reports one tile for each other person, and one for each shared screen.
    private func tellMembers() {
        guard let room else { return }
        let own = room.connection
        var members: [RoomPerson] = []
        for person in room.people where person.id != own && person.presence != .left {
            var member = RoomPerson(id: "\(person.id)", member: person)
            let theirs = videos.values.filter { $0.stream.connection == person.id }
            if let camera = theirs.first(where: { $0.stream.videoKind != .screen }) {
                show(camera, in: &member)
                member.isMuted = !camera.stream.hasAudio
                member.quality = camera.quality
            }
            members.append(member)
            for screen in theirs where screen.stream.videoKind == .screen {
                var tile = RoomPerson(id: "\(screen.stream.id)", member: person)
                (tile.isScreen, tile.quality) = (true, screen.quality)
                show(screen, in: &tile)
                members.append(tile)
            }
        }
        // Without layers, the camera captures a smaller video for many people.
        server.media.conditions.remotes = max(1, room.people.count - 1)
        server.media.conditions.hasLayers = room.settings?.isMesh == false
        tell(.members(members))
        tellConnecting()
    }

    /// Shows a video in a tile. A video that is turned off is removed, because otherwise its last frame would stay.
    private func show(_ video: Received, in tile: inout RoomPerson) {
        tile.video = video.stream.hasVideo ? video.subscriber.video : nil
        tile.isPaused = video.stream.hasVideo && video.isPaused
        tile.aspect = video.stream.size.flatMap { $0.height > 0 ? Double($0.width) / Double($0.height) : nil }
    }
}
