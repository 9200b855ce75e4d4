import Confab
import Foundation

/// Performs the requests of the roulette, nearby, people and settings screens.
extension ClientServer {
    /// Queues a request, and sends its answer to the screens as an event.
    private func ask<Answer: Sendable>(
        _ request: @escaping @MainActor (ConfabClient) async throws(ConfabError) -> Answer,
        _ failed: @escaping @MainActor (ConfabError) -> Void, event: @escaping @MainActor (Answer) -> AppEvent
    ) {
        queue(
            { [weak self] client throws(ConfabError) in self?.send(event(try await request(client))) }, failed: failed)
    }

    // MARK: The roulette

    func perform(_ request: RouletteRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.failed($0) }
        switch request {
        case .preview(let video):
            begin(
                { [weak self] client throws(ConfabError) in try await self?.openForRoulette(client, video) },
                failed: failed)
        case .start(let mode, let interests, let video): start(mode, interests, video)
        case .next: queue({ client throws(ConfabError) in try await client.roulette.next() }, failed: failed)
        case .stop:
            queue { [weak self] client throws(ConfabError) in
                try await client.roulette.stop()
                self?.releaseRoulette()
            } failed: { [weak self] _ in
                self?.releaseRoulette()
            }
        case .closePreview: queue { [weak self] _ throws(ConfabError) in self?.releaseRoulette() }
        case .block(let match):
            queue({ client throws(ConfabError) in try await client.roulette.block(match: match) }, failed: failed)
        case .keep:
            queue { client throws(ConfabError) in
                try await client.roulette.keepInTouch()
            } failed: { [weak self] in
                self?.send(.roulette(.keepFailed($0)))
            }
        case .say(let text, let id): say(text, id)
        case .typing(let isTyping): queue { client throws(ConfabError) in await client.roulette.setTyping(isTyping) }
        case .mute(let isMuted):
            media.setEnabled(.roulette, audio: !isMuted)
            queue { client throws(ConfabError) in await client.roulette.setSending(audio: !isMuted) }
        case .camera(let isOn): setRouletteCamera(isOn)
        case .switchCamera: media.switchCamera()
        case .report(let reason, let match):
            queue { [weak self] client throws(ConfabError) in
                try await client.roulette.report(reason.rawValue, match: match)
                self?.send(.roulette(.reported(nil)))
            } failed: { [weak self] in
                self?.send(.roulette(.reported($0)))
            }
        case .count:
            queue { [weak self] client throws(ConfabError) in
                let count = try await client.roulette.count()
                self?.send(.roulette(.online(count.online)))
            }
        }
    }

    /// Queues the start of a preview or a search, which may open the camera. Counts it in `rouletteStarts` until it
    /// is done.
    private func begin(
        _ work: @escaping @MainActor (ConfabClient) async throws(ConfabError) -> Void,
        failed: @escaping @MainActor (ConfabError) -> Void
    ) {
        rouletteStarts += 1
        queue { [weak self] client throws(ConfabError) in
            try await work(client)
            self?.rouletteStarts -= 1
        } failed: { [weak self] error in
            self?.rouletteStarts -= 1
            failed(error)
        }
    }

    private func start(_ mode: Roulette.Mode, _ interests: [String], _ video: Bool) {
        let name = name
        begin { [weak self] client throws(ConfabError) in
            if mode == .video {
                let wish = self?.media.wish(.roulette)
                await client.roulette.setSending(audio: wish?.audio, video: wish?.video)
                try await self?.openForRoulette(client, video)
            } else {
                self?.releaseRoulette()
            }
            try await client.roulette.start(mode, interests: interests, name: name)
        } failed: { [weak self] in
            self?.failed($0)
        }
    }

    private func openForRoulette(_ client: ConfabClient, _ video: Bool) async throws(ConfabError) {
        let own = try await media.open(for: .roulette, video: video)
        await client.roulette.preview(own)
        send(.roulette(.preview(own.video)))
    }

    private func setRouletteCamera(_ isOn: Bool) {
        media.setEnabled(.roulette, video: isOn)
        queue { [weak self] client throws(ConfabError) in
            // If the chat began without the camera, only the microphone is open.
            if isOn, let local = self?.media.local, local.video == nil {
                try await self?.openForRoulette(client, true)
            }
            await client.roulette.setSending(video: isOn)
        } failed: { [weak self] in
            if isOn { self?.send(.roulette(.cameraFailed($0))) }
        }
    }

    private func say(_ text: String, _ id: Int) {
        queue { client throws(ConfabError) in
            try await client.roulette.say(text)
        } failed: { [weak self] _ in
            self?.send(.roulette(.sent(id: id, false)))
        }
    }

    /// Releases the devices at the end of a preview, a search or a chat. They stay open while a call or a room uses
    /// them.
    private func releaseRoulette() {
        media.release(.roulette)
        send(.roulette(.released))
    }

    /// Handles an error: ends the roulette and reports the error. Ignores the error while a search or a chat
    /// continues.
    private func failed(_ error: ConfabError) {
        guard client?.roulette.state != .matched, client?.roulette.state != .waiting else { return }
        releaseRoulette()
        send(.roulette(.stopped(error)))
    }

    func happened(_ event: Roulette.Event) {
        if case .failed(let error) = event { return failed(error) }
        send(.roulette(.happened(event)))
        if case .ended(let ending) = event, ending.isFinal, rouletteStarts == 0 { releaseRoulette() }
    }

    // MARK: People nearby

    func perform(_ request: NearbyRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.send(.nearby(.failure($0))) }
        switch request {
        case .appear(let visible, let doNotDisturb):
            (isVisible, self.doNotDisturb) = (visible, doNotDisturb)
            appear()
        case .move(let position):
            queue(
                { client throws(ConfabError) in
                    try await client.nearby.move(to: .init(latitude: position.latitude, longitude: position.longitude))
                }, failed: failed)
        case .forgetPosition: queue { client throws(ConfabError) in try await client.nearby.forget() }
        case .watch(let unit, let radius, let after):
            queue(
                { [weak self] client throws(ConfabError) in
                    self?.watch(try await client.nearby.watch(unit: unit, radius: radius, after: after))
                }, failed: failed)
        case .unwatch:
            watch(nil)
            queue { client throws(ConfabError) in try await client.nearby.unwatch() }
        // The app places calls through the call coordinator.
        case .call: break
        }
    }

    // MARK: People

    func perform(_ request: PeopleRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.send(.people(.failed($0))) }
        switch request {
        case .contacts:
            ask({ client throws(ConfabError) in try await client.contacts.list() }, failed) { .people(.contacts($0)) }
        case .log(let before):
            ask({ client throws(ConfabError) in try await client.calls.log(before: before) }, failed) {
                .people(.log($0.calls, next: $0.next, isFirstPage: before == nil))
            }
        case .find(let id):
            let notFound: @MainActor (ConfabError) -> Void = { [weak self] in
                if $0.code == .notFound { self?.send(.people(.found(nil))) } else { failed($0) }
            }
            ask({ client throws(ConfabError) in try await client.presence.find(id) }, notFound) { .people(.found($0)) }
        case .removeContact(let id):
            queue({ client throws(ConfabError) in try await client.contacts.remove(id) }, failed: failed)
        case .block(let id):
            ask({ client throws(ConfabError) in try await client.presence.block(id) }, failed) { .people(.blocked(id)) }
        case .unblock(let id):
            ask({ client throws(ConfabError) in try await client.presence.unblock(id) }, failed) {
                .people(.unblocked(id))
            }
        case .forget(let id):
            queue({ client throws(ConfabError) in try await client.calls.forget(id) }, failed: failed)
        case .seen(let id): queue { client throws(ConfabError) in try await client.calls.seen(id) }
        case .keep(let id):
            queue { client throws(ConfabError) in
                try await client.contacts.keep(call: id)
            } failed: { [weak self] in
                self?.send(.keepFailed(id, $0))
            }
        case .call: break
        }
    }

    // MARK: Settings

    func perform(_ request: SettingsRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.send(.settings(.failed($0)))
        }
        switch request {
        case .changed(let settings): choose(settings)
        case .changeServer, .editAboutYou: break
        case .devices:
            ask({ client throws(ConfabError) in try await client.presence.devices() }, failed) {
                .settings(.devices($0))
            }
        case .makeCode:
            ask({ client throws(ConfabError) in try await client.presence.link() }, failed) { .settings(.code($0)) }
        case .useCode(let code):
            queue(
                { [weak self] client throws(ConfabError) in
                    try await client.presence.useLink(code)
                    self?.send(.settings(.linked))
                    self?.perform(SettingsRequest.devices)
                }, failed: failed)
        case .unlink(let id):
            queue({ client throws(ConfabError) in try await client.presence.unlink(id) }, failed: failed)
            perform(SettingsRequest.devices)
        case .blocked:
            ask({ client throws(ConfabError) in try await client.presence.blocked() }, failed) {
                .settings(.blocked($0))
            }
        case .unblock(let id): perform(PeopleRequest.unblock(id))
        case .export:
            ask({ client throws(ConfabError) in try await client.presence.export() }, failed) {
                .settings(.exported($0))
            }
        case .deleteAccount: queue({ client throws(ConfabError) in try await client.presence.delete() }, failed: failed)
        case .push(let isOn):
            calls.wantsPush = isOn
            calls.setPush()
        }
    }
}
