import Wire

/// Handles requests from the person's devices and events from other state machines. Most go to one part of the person, such as
/// its call desk. Those that concern several parts are coordinated here.
extension Person {
    // MARK: Presence

    mutating func perform(_ verb: PresenceVerb, _ request: Request, _ turn: inout Turn) {
        switch verb {
        case .appear(let settings): appear(settings, request, &turn)
        case .set(let settings):
            do throws(WireError) { try devices.checkAppeared(request.client) } catch {
                return turn.fail(error, request)
            }
            _ = become(settings, request, appears: false, &turn)
        case .leave:
            devices.leave(request.client, &turn)
            turn.ok(request)
        case .find(let verb): facts.introduce(verb.person, for: .presence(.find(verb)), request, &turn)
        case .block(let verb): facts.introduce(verb.person, for: .presence(.block(verb)), request, &turn)
        case .unblock(let verb): blocks.unblock(verb.person, request, of: id, &turn)
        case .blocked: blocks.list(contacts.addingNames(to: calls.unseen.names), request, of: id, &turn)
        case .link: devices.link(request, of: id, &turn)
        case .useLink(let verb): devices.useLink(verb, request, of: id, &turn)
        case .devices: devices.list(request, facts, &turn)
        case .unlink(let verb): devices.unlink(verb.device, request, facts, &turn)
        case .delete: delete(request, &turn)
        }
    }

    mutating func handle(_ event: PersonPresenceEvent, _ turn: inout Turn) {
        switch event {
        case .linked(let device, let client, let re): devices.add(device, Request(client, re), facts, &turn)
        case .becameDevice(let person): devices.handOver(to: person, facts, &turn)
        case .inherited(let others, let deviceHasPush):
            if deviceHasPush { devices.setPush(true) }
            for other in others where other != id {
                if blocks.add(other, of: id, &turn) { endAll(with: other, &turn) }
            }
        case .pushChanged(let isReachable): devices.setPush(isReachable)
        case .sought(let other, let client, let re):
            // A blocked person gets the same answer as if this person were offline. Calls are answered in the same way.
            let isOnline = facts.isSeenOnline && !blocks.contains(other)
            let info = PersonInfo(id: persona.id, name: persona.shownName, online: isOnline)
            turn.send(.presence(.person(.init(re: re, person: info))), to: client)
        }
    }

    private mutating func appear(_ settings: Appearance, _ request: Request, _ turn: inout Turn) {
        var settings = settings
        if !persona.isKnown, settings.name == nil, persona.profile.name.isEmpty,
            case .chosen(let name)? = devices[request.client]?.name
        {
            // Use the name from `hello`. An invalid name in `hello` is ignored everywhere, so ignore it here too.
            settings.name = PersonName.normalized(name)
        }
        guard become(settings, request, appears: true, &turn) else { return }
        calls.appeared(request.client, facts, &turn)
        calls.unseen.tell(request.client, &turn)
        contacts.sendRequests(to: request.client, &turn)
    }

    /// Applies new presence settings, answers the request and notifies the other devices.
    ///
    /// - Returns: false if the settings are invalid.
    private mutating func become(
        _ settings: Appearance, _ request: Request, appears: Bool, _ turn: inout Turn
    ) -> Bool {
        let wanted: Profile
        do throws(WireError) {
            wanted = try persona.profile(settings, vouchedName: devices.vouchedName)
        } catch {
            turn.fail(error, request)
            return false
        }
        if let error = persona.refusal(of: wanted, turn) {
            turn.fail(error, request)
            return false
        }
        let hasChanged = persona.become(wanted, of: id, &turn)
        if appears { devices.setAppeared(request.client) }
        turn.send(.presence(.own(ownPresence(re: request.re))), to: request.client)
        if hasChanged { tellOtherDevices(than: request.client, &turn) }
        return true
    }

    func ownPresence(re: UInt64?) -> PresenceNotice.Own {
        facts.ownPresence(re: re, hasPosition: whereabouts.cell != nil)
    }

    /// Sends this person's state to their other devices: now, or at the end of the interval if the state was sent only
    /// recently.
    private mutating func tellOtherDevices(than client: ConnectionID, _ turn: inout Turn) {
        let interval = turn.rules.ownPresenceInterval
        guard devices.ownPresence.mayBeSent(turn.now, every: interval, changedBy: client) else { return }
        sendOwnPresence(except: client, &turn)
    }

    func sendOwnPresence(except client: ConnectionID?, _ turn: inout Turn) {
        for other in devices.clients where other != client && devices.hasAppeared(other) {
            turn.send(.presence(.own(ownPresence(re: nil))), to: other)
        }
    }

    mutating func perform(_ verb: NearbyVerb, _ request: Request, _ turn: inout Turn) {
        switch whereabouts.perform(verb, request, facts, &turn) {
        case .presenceChanged: tellOtherDevices(than: request.client, &turn)
        case .watches(let watches): devices.setWatching(request.client, watches)
        case nil: return
        }
    }

    // MARK: Calls

    mutating func perform(_ verb: CallVerb, _ request: Request, _ turn: inout Turn) {
        guard case .accept(let verb) = verb else { return calls.perform(verb, request, facts, &turn) }
        guard calls.accept(verb, request, facts, &turn) else { return }
        // A person in a call must not be in a chat at the same time.
        roulette.interrupt("You answered a call. Press Start to continue after the call.", facts, &turn)
        turn.tell(.call(verb.call, .accept(id, video: verb.video)))
    }

    mutating func handle(_ event: PersonCallEvent, _ turn: inout Turn) {
        switch event {
        case .asked(let offer):
            calls.asked(offer, isContact: contacts.contains(offer.other.identity), facts, &turn)
        case .over(let end):
            if let call = calls.over(end, facts, &turn) { contacts.recordCall(in: call, turn.now) }
        default: calls.handle(event, facts, &turn)
        }
    }

    // MARK: Contacts

    mutating func perform(_ verb: ContactVerb, _ request: Request, _ turn: inout Turn) {
        switch verb {
        case .keep(let meeting):
            let other = contacts.keep(encounter(meeting, turn), request, facts, &turn)
            if let other { agree(with: other, meeting, &turn) }
        case .list: contacts.list(request, &turn)
        case .remove(let verb): contacts.remove(verb, request, facts, &turn)
        }
    }

    mutating func handle(_ event: PersonContactEvent, _ turn: inout Turn) {
        switch event {
        case .asked(let meeting, let other):
            let agrees = contacts.asked(encounter(meeting, turn), by: other, facts, &turn)
            if agrees { agree(with: other, meeting, &turn) }
        case .agreed(let meeting, let other):
            if contacts.accepts(other, facts, &turn) { add(other, meeting, &turn) }
        case .removed(let other): contacts.removed(by: other, facts, &turn)
        case .presence(let other): contacts.presenceChanged(of: other, devices, &turn)
        case .inquired(let other): contacts.inquired(by: other, facts, &turn)
        }
    }

    private func encounter(_ meeting: MeetingReference, _ turn: Turn) -> Encounter {
        if let match = meeting.match { return Encounter(meeting: meeting, other: roulette.chat(match, turn)?.partner) }
        let other = meeting.call.flatMap { calls.partner(in: $0) ?? contacts.other(in: $0, turn.now) }
        return Encounter(meeting: meeting, other: other)
    }

    private mutating func agree(with other: Counterpart, _ meeting: MeetingReference, _ turn: inout Turn) {
        let own = facts.acquaintance
        turn.persist(.keptInTouch(id, other.identity, names: [own.name, other.name], at: turn.wallNow))
        add(other, meeting, &turn)
        turn.tell(.person(other.identity, .contact(.agreed(meeting, with: own))))
    }

    private mutating func add(_ other: Counterpart, _ meeting: MeetingReference, _ turn: inout Turn) {
        persona.becomeKnown(as: facts.acquaintance.name, of: id, &turn)
        contacts.add(other, meeting, devices, &turn)
    }

    // MARK: Push notifications

    mutating func perform(_ verb: PushVerb, _ request: Request, _ turn: inout Turn) {
        // Only people who have appeared can be called, so others need no push endpoint.
        if case .register = verb, !persona.isKnown {
            let error = WireError(
                .notPresent, "Send presence.appear before push.register. Nobody can call you until then.")
            return turn.fail(error, request)
        }
        let device = devices[request.client]?.identity
        turn.inquire(
            Question(identity: id, client: request.client, re: request.re, verb.inquiry, device: device))
    }

    // MARK: Introductions

    /// Handles a request that was waiting for a lookup, now that the lookup has finished.
    mutating func introduced(_ introduction: Introduction, to other: IdentityID?, _ turn: inout Turn) {
        let request = introduction.request
        switch (introduction.message, other) {
        case (.presence(.find), let other?) where !blocks.contains(other):
            turn.tell(.person(other, .presence(.sought(by: id, request.client, re: request.re))))
        case (.presence(.block), let other?):
            guard other != id else {
                return turn.fail(WireError(.notPermitted, "You cannot block yourself."), request)
            }
            block(other, &turn)
            turn.ok(request)
            roulette.endChat(withBlocked: other, nil, facts, &turn)
        case (.call(.start(let start)), let other?):
            let attempt = CallAttempt(
                caller: facts.counterpart, client: request.client, re: request.re, callee: other, video: start.video)
            calls.place(attempt, facts, &turn)
        default:
            turn.fail(WireError(.notFound, "No person has this ID. Check the link."), request)
        }
    }

    // MARK: Blocking

    /// Blocks another person. Ends any call with them, removes the contact, and deletes the meetings through which the two
    /// could become contacts.
    mutating func block(_ other: IdentityID, _ turn: inout Turn) {
        if blocks.add(other, of: id, &turn) {
            turn.persist(.block(owner: id, blocked: other, at: turn.wallNow))
        }
        endAll(with: other, &turn)
    }

    private mutating func endAll(with other: IdentityID, _ turn: inout Turn) {
        calls.endAll(with: other, facts, &turn)
        contacts.remove(other, of: id, &turn)
        contacts.forgetMeetings(with: other)
    }
}
