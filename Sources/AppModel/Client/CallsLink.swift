import Confab
import Foundation

/// Connects the SDK's calls with the call coordinator. The SDK joins the sessions of calls, publishes in them and rejoins
/// them.
@MainActor final class CallsLink {
    private unowned let server: ClientServer
    /// The system ids of outgoing calls whose start the server has not answered.
    private var starting: [SystemCallID] = []
    /// The push token of this device; nil without pushes.
    private var pushToken: String?
    var wantsPush = true
    private var watching: Task<Void, Never>?

    init(_ server: ClientServer) { self.server = server }

    private func tell(_ event: CallServerEvent) { server.send(.call(event)) }

    // MARK: Requests

    func perform(_ request: CallRequest) {
        switch request {
        case .openSocket: server.perform(.retry)
        case .appear: server.appear()
        case .registerPush(let token):
            pushToken = token
            setPush()
        case .unregisterPush(let token):
            pushToken = nil
            server.queue { client throws(ConfabError) in try await client.push.unregister(token: token) }
            setPush()
        case .start(let id, let person, let video): start(id, person.id, video)
        case .accept(let id, let video): accept(id, video)
        case .end(let id): server.queue { client throws(ConfabError) in try await client.calls.end(id) }
        case .update(let id, let video):
            server.queue { client throws(ConfabError) in try await client.calls.update(id, video: video) }
        case .seen(let id): server.queue { client throws(ConfabError) in try await client.calls.seen(id) }
        case .setMuted(let id, let isMuted):
            server.media.setEnabled(.call, audio: !isMuted)
            // Once the server has created the call, notify the other person too.
            if let id { server.queue { client throws(ConfabError) in await client.calls.setAudio(!isMuted, in: id) } }
        case .setVideo(let isOn): setVideo(isOn)
        }
    }

    /// Registers or unregisters this device for pushes, as set by the user, and reports the result to the settings
    /// screen.
    func setPush() {
        guard let token = pushToken else { return server.send(.settings(.push(.unavailable))) }
        let isOn = wantsPush
        server.queue { [weak self] client throws(ConfabError) in
            if isOn {
                try await client.push.register(token: token, isSandbox: PushService.isSandbox)
            } else {
                try await client.push.unregister(token: token)
            }
            self?.server.send(.settings(.push(isOn ? .on : .off)))
        } failed: { [weak self] _ in
            // The registration is retried with the next connection.
            self?.server.send(.settings(.push(.unavailable)))
        }
    }

    private func start(_ id: SystemCallID, _ person: PersonID, _ video: Bool) {
        starting.append(id)
        server.queue { [weak self] client throws(ConfabError) in
            try await self?.prepare(client, video)
            let call = try await client.calls.start(person, video: video)
            guard self?.answered(id) == true else { return }
            // The call may have changed while the request ran, so report its newest state.
            self?.tell(.placed(id, client.calls.all.first { $0.id == call.id } ?? call))
        } failed: { [weak self] error in
            guard let self, answered(id) else { return }
            tell(.startRefused(id, error))
            releaseIfUnused()
        }
    }

    private func answered(_ id: SystemCallID) -> Bool {
        guard let index = starting.firstIndex(of: id) else { return false }
        starting.remove(at: index)
        return true
    }

    private func accept(_ id: CallID, _ video: Bool) {
        server.queue { [weak self] client throws(ConfabError) in
            try await self?.prepare(client, video)
            try await client.calls.accept(id, video: video)
        } failed: { [weak self] error in
            guard let self else { return }
            tell(.acceptRefused(id, error))
            // If the devices could not be opened, the answer was not sent, and the call still rings. End it.
            if server.client?.calls.all.contains(where: { $0.id == id && $0.state == .incoming }) == true {
                perform(.end(id))
            }
            releaseIfUnused()
        }
    }

    /// Opens the devices for a new call, which starts unmuted even if an earlier call was muted.
    private func prepare(_ client: ConfabClient, _ video: Bool) async throws(ConfabError) {
        server.media.setEnabled(.call, audio: true, video: video)
        try await open(client, video)
    }

    /// Opens the microphone, and the camera if `video` is true. Passes them to the SDK, which publishes them in
    /// calls.
    private func open(_ client: ConfabClient, _ video: Bool) async throws(ConfabError) {
        let own = try await server.media.open(for: .call, video: video)
        server.send(.media(.ownVideo(own.video)))
        await client.calls.use(published)
        server.media.onShare = { [weak self] _ in self?.publish() }
    }

    private func setVideo(_ isOn: Bool) {
        server.media.setEnabled(.call, video: isOn)
        // If the call began without video, only the microphone is open.
        guard isOn, let local = server.media.local, local.video == nil else { return }
        server.queue { [weak self] client throws(ConfabError) in
            try await self?.open(client, true)
        } failed: { [weak self] error in
            self?.server.send(.media(.cameraFailed(error)))
        }
    }

    /// The media to publish: the microphone with the screen, or else with the camera. Nil if no device is open.
    private var published: (any LocalMedia)? {
        let (local, screen) = (server.media.local, server.media.screen)
        guard let local, let screen else { return local }
        return SharedScreen(sound: local, picture: screen)
    }

    /// Publishes again after a screen share has started or ended.
    private func publish() {
        server.queue { [weak self] client throws(ConfabError) in
            await client.calls.use(self?.published)
        }
    }

    private func releaseIfUnused() {
        if starting.isEmpty, server.client?.calls.all.isEmpty ?? true { server.media.release(.call) }
    }

    // MARK: Events

    func forget() {
        watching?.cancel()
        for id in starting { tell(.startRefused(id, .offline)) }
        starting = []
    }

    func happened(_ event: Calls.Event) {
        switch event {
        case .incoming(let call): tell(.incoming(call))
        case .changed(let call): tell(.changed(call))
        case .receiving(_, let subscriber): watch(subscriber)
        case .video(_, let source): server.send(.media(.partnerVideo(source)))
        // Ignored, because `Call.receivesVideo` provides the same information.
        case .audioOnly: break
        case .ended(let ending):
            releaseIfUnused()
            tell(.ended(ending))
        // The call continues without the failed media.
        case .failed: break
        }
    }

    /// Reports when the server pauses the other person's video for lack of bandwidth, and when the video resumes.
    private func watch(_ subscriber: MediaSubscriber) {
        watching?.cancel()
        watching = Task { [weak self] in
            for await event in subscriber.events {
                switch event {
                case .connected, .videoResumed: self?.server.send(.media(.partnerPaused(false)))
                case .videoPaused: self?.server.send(.media(.partnerPaused(true)))
                default: break
                }
            }
        }
    }
}
