import Confab
import Foundation

/// Performs the requests of the roulette, nearby, people and settings screens.
extension ClientServer {
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
            let id = match.flatMap { MatchID(text: $0) }
            queue({ client throws(ConfabError) in try await client.roulette.block(match: id) }, failed: failed)
        case .keep:
            queue { client throws(ConfabError) in
                try await client.roulette.keepInTouch()
            } failed: { [weak self] in
                self?.send(.roulette(.keepFailed(CallTrouble($0))))
            }
        case .say(let text, let id): say(text, id)
        case .typing(let isTyping): queue { client throws(ConfabError) in await client.roulette.setTyping(isTyping) }
        case .mute(let isMuted):
            media.setEnabled(.roulette, audio: !isMuted)
            queue { client throws(ConfabError) in await client.roulette.setSending(audio: !isMuted) }
        case .camera(let isOn): setRouletteCamera(isOn)
        case .switchCamera: media.switchCamera()
        case .report(let reason, let match):
            let id = match.flatMap { MatchID(text: $0) }
            queue { [weak self] client throws(ConfabError) in
                try await client.roulette.report(reason.rawValue, match: id)
                self?.send(.roulette(.reported(nil)))
            } failed: { [weak self] in
                self?.send(.roulette(.reported(CallTrouble($0))))
            }
        case .count:
            queue { [weak self] client throws(ConfabError) in
                let count = try await client.roulette.count()
                self?.send(.roulette(.online(count.online)))
            }
        }
    }

    /// Queues work that opens the camera.
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

    private func start(_ mode: RouletteMode, _ interests: [String], _ video: Bool) {
        let name = name
        begin { [weak self] client throws(ConfabError) in
            if mode == .video {
                let wish = self?.media.wish(.roulette)
                await client.roulette.setSending(audio: wish?.audio, video: wish?.video)
                try await self?.openForRoulette(client, video)
            } else {
                self?.releaseRoulette()
            }
            try await client.roulette.start(mode == .text ? .text : .video, interests: interests, name: name)
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
            // Without the camera, only the microphone has been opened.
            if isOn, let local = self?.media.local, local.video == nil {
                try await self?.openForRoulette(client, true)
            }
            await client.roulette.setSending(video: isOn)
        } failed: { [weak self] in
            if isOn { self?.send(.roulette(.cameraFailed(CallTrouble($0)))) }
        }
    }

    private func say(_ text: String, _ id: Int) {
        queue { client throws(ConfabError) in
            try await client.roulette.say(text)
        } failed: { [weak self] _ in
            self?.send(.roulette(.sent(id: id, false)))
        }
    }

    /// Releases the devices, so that nothing is captured after the search.
    private func releaseRoulette() {
        media.release(.roulette)
        send(.roulette(.released))
    }

    /// Handles an error: stops the roulette unless a search or a chat continues.
    private func failed(_ error: ConfabError) {
        guard client?.roulette.state != .matched, client?.roulette.state != .waiting else { return }
        releaseRoulette()
        send(.roulette(.stopped(CallTrouble(error))))
    }

    func happened(_ event: Roulette.Event) {
        switch event {
        case .waiting(let pause): send(.roulette(.waiting(pause: pause)))
        case .matched(let match):
            send(
                .roulette(
                    .matched(
                        name: match.partnerName, interests: match.sharedInterests, hasChat: match.hasTextChat,
                        match: "\(match.id)")))
        case .partner(let isConnected): send(.roulette(.partner(isAway: !isConnected)))
        case .message(let line): if !line.isMine { send(.roulette(.message(line.text))) }
        case .typing(let isTyping): send(.roulette(.typing(isTyping)))
        case .video(let source): send(.roulette(.video(source)))
        case .audioOnly: send(.roulette(.audioOnly))
        case .noStream: send(.roulette(.noStream))
        case .contactAsked: send(.roulette(.keepAsked))
        case .entered, .receiving, .recovered: break
        case .failed(let error): failed(error)
        case .ended(let ending):
            send(.roulette(.ended(RouletteEnding(ending))))
            if ending.isFinal, rouletteStarts == 0 { releaseRoulette() }
        }
    }

    // MARK: People nearby

    func perform(_ request: NearbyRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.send(.nearby(.failed(CallTrouble($0)))) }
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
            queue { [weak self] client throws(ConfabError) in
                let pages = try await client.nearby.watch(
                    unit: unit == .miles ? .miles : .kilometers, radius: radius, after: after)
                self?.watch(pages)
            } failed: {
                failed($0)
            }
        case .unwatch:
            watch(nil)
            queue { client throws(ConfabError) in try await client.nearby.unwatch() }
        // The app places calls through the call coordinator.
        case .call: break
        }
    }

    // MARK: People

    func perform(_ request: PeopleRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.send(.people(.failed(CallTrouble($0)))) }
        switch request {
        case .contacts:
            queue { [weak self] client throws(ConfabError) in
                let people = try await client.contacts.list()
                self?.send(.people(.contacts(people.map(Contact.init))))
            } failed: {
                failed($0)
            }
        case .log(let before):
            queue { [weak self] client throws(ConfabError) in
                let page = try await client.calls.log(before: before)
                self?.send(
                    .people(.log(page.calls.compactMap(PastCall.init), next: page.next, isFirstPage: before == nil)))
            } failed: {
                failed($0)
            }
        case .find(let text): find(text)
        case .removeContact(let text):
            with(text) { client, id throws(ConfabError) in
                try await client.contacts.remove(id)
            } failed: {
                failed($0)
            }
        case .block(let text):
            with(text) { [weak self] client, id throws(ConfabError) in
                try await client.presence.block(id)
                self?.send(.people(.blocked(text)))
            } failed: {
                failed($0)
            }
        case .unblock(let text):
            with(text) { [weak self] client, id throws(ConfabError) in
                try await client.presence.unblock(id)
                self?.send(.people(.unblocked(text)))
            } failed: {
                failed($0)
            }
        case .forget(let text):
            let id = text.flatMap { CallID(text: $0) }
            guard text == nil || id != nil else { return }
            queue({ client throws(ConfabError) in try await client.calls.forget(id) }, failed: failed)
        case .seen(let text):
            guard let id = CallID(text: text) else { return }
            queue { client throws(ConfabError) in try await client.calls.seen(id) }
        case .keep(let text):
            queue { client throws(ConfabError) in
                guard let id = CallID(text: text) else { throw .noPerson }
                try await client.contacts.keep(call: id)
            } failed: { [weak self] in
                self?.send(.keep(.failed(call: text, CallTrouble($0))))
            }
        case .call: break
        }
    }

    private func find(_ text: String) {
        with(text) { [weak self] client, id throws(ConfabError) in
            let person = try await client.presence.find(id)
            self?.send(.people(.found(Contact(person))))
        } failed: { [weak self] error in
            if error.code == .notFound {
                self?.send(.people(.found(nil)))
            } else {
                self?.send(.people(.failed(CallTrouble(error))))
            }
        }
    }

    /// Performs a request about a person. The id may be invalid text from a link.
    private func with(
        _ text: String, _ work: @escaping @MainActor (ConfabClient, PersonID) async throws(ConfabError) -> Void,
        failed: @escaping @MainActor (ConfabError) -> Void
    ) {
        guard let id = PersonID(text: text) else { return failed(.noPerson) }
        queue({ client throws(ConfabError) in try await work(client, id) }, failed: failed)
    }

    func happened(_ event: Contacts.Event) {
        switch event {
        case .asked(.call(let id)): send(.keep(.asked(call: "\(id)")))
        // The roulette reports it too.
        case .asked(.match): break
        case .added(let person, let meeting):
            send(.people(.contactChanged(Contact(person))))
            switch meeting {
            case .match: send(.roulette(.keepAgreed))
            case .call(let id): send(.keep(.agreed(call: "\(id)")))
            case nil: break
            }
        case .changed(let person): send(.people(.contactChanged(Contact(person))))
        case .removed(let id): send(.people(.contactRemoved("\(id)")))
        }
    }

    // MARK: Settings

    func perform(_ request: SettingsRequest) {
        let failed: @MainActor (ConfabError) -> Void = { [weak self] in self?.send(.settings(.failed(CallTrouble($0))))
        }
        switch request {
        case .changed(let settings): choose(settings)
        case .changeServer, .editAboutYou: break
        case .devices:
            queue { [weak self] client throws(ConfabError) in
                let devices = try await client.presence.devices()
                self?.send(.settings(.devices(devices.map(LinkedDevice.init))))
            } failed: {
                failed($0)
            }
        case .makeCode:
            queue { [weak self] client throws(ConfabError) in
                let code = try await client.presence.link()
                self?.send(.settings(.code(code.code, validFor: code.validFor)))
            } failed: {
                failed($0)
            }
        case .useCode(let code):
            queue { [weak self] client throws(ConfabError) in
                try await client.presence.useLink(code)
                self?.send(.settings(.linked))
                self?.perform(SettingsRequest.devices)
            } failed: {
                failed($0)
            }
        case .unlink(let text):
            with(text) { client, id throws(ConfabError) in
                try await client.presence.unlink(id)
            } failed: {
                failed($0)
            }
            perform(SettingsRequest.devices)
        case .blocked:
            queue { [weak self] client throws(ConfabError) in
                let people = try await client.presence.blocked()
                self?.send(.settings(.blocked(people.map { CallPerson(id: "\($0.id)", name: $0.name) })))
            } failed: {
                failed($0)
            }
        case .unblock(let text): perform(PeopleRequest.unblock(text))
        case .export:
            queue { [weak self] client throws(ConfabError) in
                let data = try await client.presence.export()
                self?.send(.settings(.exported(data)))
            } failed: {
                failed($0)
            }
        case .deleteAccount: queue({ client throws(ConfabError) in try await client.presence.delete() }, failed: failed)
        case .push(let isOn):
            calls.wantsPush = isOn
            calls.setPush()
        }
    }
}

extension ConfabError {
    static let noPerson = ConfabError(.notFound, "This is not a valid person ID. Ask for their link again.")
}

extension RouletteEnding {
    init(_ ending: MatchEnding) {
        self =
            switch ending {
            case .next: .next
            case .stopped: .stopped
            case .blocked: .blocked
            case .partnerNext: .partnerNext
            case .partnerLeft: .partnerLeft
            case .banned: .operators
            case .connectionLost: .connectionLost
            }
    }
}

extension Contact {
    init(_ person: Person) { self.init(id: "\(person.id)", name: person.name, isOnline: person.isOnline) }
}

extension LinkedDevice {
    init(_ device: Presence.Device) {
        self.init(id: "\(device.id)", name: device.label, isCurrent: device.isCurrent)
    }
}

extension PastCall {
    init?(_ call: Calls.Logged) {
        guard let outcome = CallEndReason(rawValue: call.outcome.rawValue) else { return nil }
        self.init(
            id: "\(call.id)", direction: call.isOutgoing ? .outgoing : .incoming, outcome: outcome,
            person: CallPerson(id: "\(call.person.id)", name: call.person.name),
            at: call.placedAt)
        (video, duration, isSeen) = (call.isVideo, call.duration, call.isSeen)
    }
}
