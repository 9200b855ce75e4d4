import Confab
import Foundation

/// Connects the SDK's calls with the call coordinator. The SDK joins the sessions of calls and publishes in them
/// automatically.
@MainActor final class CallsLink {
    private unowned let server: ClientServer
    /// The calls as last reported to the coordinator.
    private var known: [CallID: Call] = [:]
    /// The system ids of outgoing calls whose start the server has not answered.
    private var starting: [SystemCallID] = []
    /// The push token of this device; nil without pushes.
    private var pushToken: String?
    var wantsPush = true
    private var watching: Task<Void, Never>?

    init(_ server: ClientServer) { self.server = server }

    private func tell(_ event: CallServerEvent) { server.send(.call(event)) }

    // MARK: Effects

    func perform(_ effect: CallEffect) {
        switch effect {
        case .openSocket: server.perform(.retry)
        case .appear: server.appear()
        case .send(let request): send(request)
        case .registerPush(let token):
            pushToken = token
            setPush()
        case .unregisterPush(let token):
            pushToken = nil
            server.queue { client throws(ConfabError) in try await client.push.unregister(token: token) }
            setPush()
        case .leave: if known.isEmpty { server.media.release(.call) }
        case .setMuted(_, let isMuted):
            server.media.setEnabled(.call, audio: !isMuted)
            sendAudio()
        case .setVideo(_, let isOn): setVideo(isOn)
        // The SDK joins and publishes automatically.
        case .join, .publish: break
        // Not addressed to the server.
        case .report, .update, .reportConnecting, .reportConnected, .reportEnded, .completePush, .request, .fulfil,
            .fail,
            .ring, .stopRinging, .audio, .startTimer, .stopTimer, .show, .tell:
            break
        }
    }

    /// Registers or unregisters this device for pushes, as set by the user.
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

    private func send(_ request: CallRequest) {
        switch request {
        case .start(let id, let person, let video): start(id, person, video)
        case .accept(let text, let video): accept(text, video)
        case .decline(let text): with(text) { client, id throws(ConfabError) in try await client.calls.decline(id) }
        case .cancel(let text), .end(let text):
            with(text) { client, id throws(ConfabError) in try await client.calls.end(id) }
        case .update(let text, let video):
            with(text) { client, id throws(ConfabError) in try await client.calls.update(id, video: video) }
        // The SDK rejoins calls automatically, and reports the result.
        case .rejoin: break
        case .seen(let text): with(text) { client, id throws(ConfabError) in try await client.calls.seen(id) }
        }
    }

    private func with(
        _ text: String, _ work: @escaping @MainActor (ConfabClient, CallID) async throws(ConfabError) -> Void,
        failed: @escaping @MainActor (ConfabError) -> Void = { _ in }
    ) {
        guard let id = CallID(text: text) else { return failed(.noPerson) }
        server.queue({ client throws(ConfabError) in try await work(client, id) }, failed: failed)
    }

    private func start(_ id: SystemCallID, _ person: CallPerson, _ video: Bool) {
        guard let personID = PersonID(text: person.id) else {
            return tell(.startRefused(id, CallTrouble(.noPerson)))
        }
        starting.append(id)
        server.queue { [weak self] client throws(ConfabError) in
            try await self?.prepare(client, video)
            let call = try await client.calls.start(personID, video: video)
            self?.placed(id, call)
        } failed: { [weak self] error in
            guard let self, let index = starting.firstIndex(of: id) else { return }
            starting.remove(at: index)
            tell(.startRefused(id, CallTrouble(error)))
        }
    }

    private func placed(_ id: SystemCallID, _ call: Call) {
        guard let index = starting.firstIndex(of: id) else { return }
        starting.remove(at: index)
        tell(.placed(id, callID: "\(call.id)"))
        changed(call)
    }

    private func accept(_ text: String, _ video: Bool) {
        with(text) { [weak self] client, id throws(ConfabError) in
            try await self?.prepare(client, video)
            try await client.calls.accept(id, video: video)
        } failed: { [weak self] in
            self?.tell(.acceptRefused(callID: text, CallTrouble($0)))
        }
    }

    /// Opens the devices for a new call, which starts unmuted even if an earlier call was muted.
    private func prepare(_ client: ConfabClient, _ video: Bool) async throws(ConfabError) {
        server.media.setEnabled(.call, audio: true, video: video)
        try await open(client, video)
    }

    /// Opens the camera, and passes it to the SDK, which publishes it in calls.
    private func open(_ client: ConfabClient, _ video: Bool) async throws(ConfabError) {
        let own = try await server.media.open(for: .call, video: video)
        server.send(.media(.ownVideo(own.video)))
        await client.calls.use(published)
        server.media.onShare = { [weak self] _ in self?.publish() }
    }

    private func setVideo(_ isOn: Bool) {
        server.media.setEnabled(.call, video: isOn)
        // A call without video has only opened the microphone.
        guard isOn, let local = server.media.local, local.video == nil else { return }
        server.queue { [weak self] client throws(ConfabError) in
            try await self?.open(client, true)
        } failed: { [weak self] error in
            self?.server.send(.media(.cameraFailed(CallTrouble(error))))
        }
    }

    /// The media to publish: the microphone with the screen or the camera.
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

    /// Sends audio in the current call, or notifies the other person that this side is muted.
    private func sendAudio() {
        let isOn = server.media.wish(.call).audio
        for call in known.values where call.state != .incoming {
            server.queue { client throws(ConfabError) in await client.calls.setAudio(isOn, in: call.id) }
        }
    }

    // MARK: Events

    func forget() {
        known = [:]
        watching?.cancel()
        for id in starting { tell(.startRefused(id, CallTrouble(.offline))) }
        starting = []
    }

    /// Clears the known states, because the coordinator expects the state of each call again.
    func restarted() { known = known.filter { $0.value.state == .ringing } }

    func happened(_ event: Calls.Event) {
        switch event {
        case .incoming(let call):
            known[call.id] = call
            let person = CallPerson(id: "\(call.person.id)", name: call.person.name)
            tell(.incoming(IncomingCallInfo(callID: "\(call.id)", person: person, video: call.isVideo)))
        case .changed(let call): changed(call)
        case .receiving(_, let subscriber): watch(subscriber)
        case .video(_, let source): server.send(.media(.partnerVideo(source)))
        // `Call.receivesVideo` reports it too.
        case .audioOnly: break
        case .ended(let ending): ended(ending)
        // The call continues without the failed media.
        case .failed: break
        }
    }

    /// Reports when the server pauses the other person's video for lack of bandwidth.
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

    private func changed(_ call: Call) {
        // The answer to a start must come before any event of its call.
        guard known[call.id] != nil || !call.isOutgoing || starting.isEmpty else { return }
        var before = known[call.id]
        if let former = call.formerID, known[former] != nil {
            before = known.removeValue(forKey: former)
            tell(.ended(EndedCall(callID: "\(former)", reason: .merged, into: "\(call.id)")))
        }
        known[call.id] = call
        let callID = "\(call.id)"
        if let devices = call.devices, devices != before?.devices { tell(.ringing(callID: callID, devices: devices)) }
        let isAccepted = call.state == .joining || call.state == .active
        let wasAccepted = before?.state == .joining || before?.state == .active
        if isAccepted, !wasAccepted {
            sendAudio()
            tell(.accepted(callID: callID, personID: "\(call.person.id)"))
        }
        if call.state == .active, before?.state != .active { tell(.mediaConnected(callID: callID)) }
        if call.isPartnerConnected != before?.isPartnerConnected ?? true {
            tell(.partner(callID: callID, isAway: !call.isPartnerConnected))
        }
        if isAccepted, !wasAccepted || call.receivesVideo != before?.receivesVideo {
            server.send(.media(.partnerSendsVideo(call.receivesVideo)))
        }
    }

    private func ended(_ ending: CallEnding) {
        known[ending.id] = nil
        if known.isEmpty { server.media.release(.call) }
        // A newer server may send reasons that are unknown to this app.
        let reason = CallEndReason(rawValue: ending.outcome.rawValue) ?? .failed
        let person = CallPerson(id: "\(ending.person.id)", name: ending.person.name)
        tell(.ended(EndedCall(callID: "\(ending.id)", reason: reason, person: person)))
    }
}
