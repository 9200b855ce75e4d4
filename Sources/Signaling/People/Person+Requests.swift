import Cluster
import Wire

/// Handles requests from the person's devices and events from other state machines. Most go to one part of the
/// person, such as its calls. Those that concern several parts are coordinated here.
extension Person {
    // MARK: Presence

    mutating func perform(_ verb: PresenceVerb, _ request: Request, _ context: inout Context) {
        switch verb {
        case .appear(let settings): appear(settings, request, &context)
        case .set(let settings):
            do throws(WireError) { try devices.checkAppeared(request.client) } catch {
                return context.fail(error, request)
            }
            _ = become(settings, request, appears: false, &context)
        case .leave:
            devices.leave(request.client, &context)
            context.ok(request)
        case .find(let verb): snapshot.introduce(verb.person, for: .presence(.find(verb)), request, &context)
        case .block(let verb): snapshot.introduce(verb.person, for: .presence(.block(verb)), request, &context)
        case .unblock(let verb): blocks.unblock(verb.person, request, of: id, &context)
        case .blocked: blocks.list(contacts.addingNames(to: calls.unseen.names), request, of: id, &context)
        case .link: devices.link(request, of: id, &context)
        case .useLink(let verb): devices.useLink(verb, request, of: id, &context)
        case .devices: devices.list(request, snapshot, &context)
        case .unlink(let verb): devices.unlink(verb.device, request, snapshot, &context)
        case .delete: delete(request, &context)
        }
    }

    mutating func handle(_ event: PersonPresenceEvent, _ context: inout Context) {
        switch event {
        case .linked(let device, let client, let re): devices.add(device, Request(client, re), snapshot, &context)
        case .becameDevice(let person): devices.handOver(to: person, snapshot, &context)
        case .inherited(let others, let deviceHasPush):
            if deviceHasPush { devices.setPush(true) }
            for other in others where other != id {
                if blocks.add(other, of: id, &context) { endAll(with: other, &context) }
            }
        case .pushChanged(let isReachable): devices.setPush(isReachable)
        case .directoryLost(let error): directoryLost(error, &context)
        case .sought(let other, let client, let re, _):
            // A blocked person gets the same answer as if this person were offline. The answer to a call does not
            // reveal the block either.
            let isOnline = snapshot.isSeenOnline && !blocks.contains(other)
            let info = PersonInfo(id: persona.id, name: persona.shownName, online: isOnline)
            context.send(.presence(.person(.init(re: re, person: info))), to: client)
        }
    }

    private mutating func appear(_ settings: Appearance, _ request: Request, _ context: inout Context) {
        var settings = settings
        if !persona.isKnown, settings.name == nil, persona.profile.name.isEmpty,
            case .chosen(let name)? = devices[request.client]?.name
        {
            // Use the name from `hello`. If that name is invalid, ignore it.
            settings.name = PersonName.normalized(name)
        }
        guard become(settings, request, appears: true, &context) else { return }
        calls.appeared(request.client, snapshot, &context)
        calls.unseen.tell(request.client, &context)
        contacts.sendRequests(to: request.client, &context)
    }

    /// Applies new presence settings, answers the request and notifies the other devices.
    ///
    /// - Returns: false if the request was refused, because the settings are invalid or currently cannot be stored.
    private mutating func become(
        _ settings: Appearance, _ request: Request, appears: Bool, _ context: inout Context
    ) -> Bool {
        let wanted: Profile
        do throws(WireError) {
            wanted = try persona.profile(settings, vouchedName: devices.vouchedName)
        } catch {
            context.fail(error, request)
            return false
        }
        if let error = persona.refusal(of: wanted, context) {
            context.fail(error, request)
            return false
        }
        let hasChanged = persona.become(wanted, of: id, &context)
        if appears { devices.setAppeared(request.client) }
        context.send(.presence(.own(ownPresence(re: request.re))), to: request.client)
        if hasChanged { notifyDevices(otherThan: request.client, &context) }
        return true
    }

    func ownPresence(re: UInt64?) -> PresenceNotice.Own {
        snapshot.ownPresence(re: re, hasPosition: locationState.cell != nil)
    }

    /// Sends this person's state to their other devices: immediately, or at the end of `Rules.ownPresenceInterval` if
    /// the state was already sent within that interval.
    private mutating func notifyDevices(otherThan client: ConnectionID, _ context: inout Context) {
        let interval = context.rules.ownPresenceInterval
        guard devices.ownPresence.mayBeSent(context.now, every: interval, changedBy: client) else { return }
        sendOwnPresence(except: client, &context)
    }

    func sendOwnPresence(except client: ConnectionID?, _ context: inout Context) {
        for other in devices.clients where other != client && devices.hasAppeared(other) {
            context.send(.presence(.own(ownPresence(re: nil))), to: other)
        }
    }

    mutating func perform(_ verb: NearbyVerb, _ request: Request, _ context: inout Context) {
        switch locationState.perform(verb, request, snapshot, &context) {
        case .presenceChanged: notifyDevices(otherThan: request.client, &context)
        case .watches(let watches): devices.setWatching(request.client, watches)
        case nil: return
        }
    }

    /// Whether the person has a location or watches people nearby.
    var usesDirectory: Bool { locationState.cell != nil || !devices.watching.isEmpty }

    /// Forgets the location, and redirects the devices that watch people nearby. A device that sends the location again is
    /// redirected too.
    private mutating func directoryLost(_ error: WireError, _ context: inout Context) {
        locationState.disappear()
        for client in devices.watching {
            devices.setWatching(client, false)
            context.fail(error, re: nil, to: client)
        }
        sendOwnPresence(except: nil, &context)
    }

    // MARK: Calls

    mutating func perform(_ verb: CallVerb, _ request: Request, _ context: inout Context) {
        guard case .accept(let verb) = verb else {
            return calls.perform(verb, at: nodeOfCallee(verb, context), request, snapshot, &context)
        }
        guard calls.accept(verb, request, snapshot, &context) else { return }
        // A person in a call must not be in a chat at the same time.
        roulette.interrupt("You answered a call. Press Start to continue after the call.", snapshot, &context)
        context.tell(.call(verb.call, .accept(id, video: verb.video)))
    }

    /// The node that this person must move to in order to call a contact there, because media cannot cross; nil for any other request.
    ///
    /// Only a contact's own node says that, and only while the contact is visible. So a caller learns nothing about people who
    /// do not want to be seen. With a second device, this person cannot move.
    private func nodeOfCallee(_ verb: CallVerb, _ context: Context) -> NodeTag? {
        guard case .start(let start) = verb, devices.clients.count == 1,
            let node = contacts.node(of: start.person, context.project), !context.hasMedia(with: node)
        else { return nil }
        return node
    }

    /// The other node on which a contact is online, if this person can call the contact without moving; otherwise nil.
    private func distantNode(of callee: IdentityID, _ context: Context) -> NodeTag? {
        contacts.node(of: callee).flatMap { context.hasMedia(with: $0) ? $0 : nil }
    }

    mutating func handle(_ event: PersonCallEvent, _ context: inout Context) {
        switch event {
        case .asked(let offer):
            calls.asked(offer, isContact: contacts.contains(offer.other.identity), snapshot, &context)
        case .over(let end): over(end, &context)
        case .nodeLost(let node): for end in calls.nodeLost(node, snapshot, &context) { over(end, &context) }
        default: calls.handle(event, snapshot, &context)
        }
    }

    private mutating func over(_ end: CallEnd, _ context: inout Context) {
        if let call = calls.over(end, snapshot, &context) { contacts.recordCall(in: call, context.now) }
    }

    // MARK: Contacts

    mutating func perform(_ verb: ContactVerb, _ request: Request, _ context: inout Context) {
        switch verb {
        case .keep(let meeting):
            let encounter = encounter(meeting, context)
            let other = contacts.keep(encounter, request, snapshot, &context)
            if let other { agree(with: other, encounter, &context) }
        case .list: contacts.list(request, &context)
        case .remove(let verb): contacts.remove(verb, request, snapshot, &context)
        }
    }

    mutating func handle(_ event: PersonContactEvent, _ context: inout Context) {
        switch event {
        case .asked(let meeting, let other):
            let encounter = encounter(meeting, context)
            let agrees = contacts.asked(encounter, by: other, snapshot, &context)
            if agrees { agree(with: other, encounter, &context) }
        case .agreed(let meeting, let other):
            if contacts.accepts(other, snapshot, &context) { add(other, encounter(meeting, context), &context) }
        case .removed(let other): contacts.removed(by: other, snapshot, &context)
        case .presence(let other): contacts.presenceChanged(of: other, devices, &context)
        case .queried(let other): contacts.queried(by: other, snapshot, &context)
        case .presenceElsewhere(let other, let tag):
            contacts.presenceChanged(of: other, at: tag, snapshot, &context)
        case .placeLost(let other): contacts.placeLost(of: other, snapshot, &context)
        case .absent(let other): contacts.absent(other, snapshot, &context)
        case .nodeLost(let tag, let isOver): contacts.nodeLost(tag, isOver: isOver, snapshot, &context)
        }
    }

    private func encounter(_ meeting: MeetingReference, _ context: Context) -> Encounter {
        if let match = meeting.match {
            let chat = roulette.chat(match, context)
            let node = chat?.partnerNode == context.tag ? nil : chat?.partnerNode
            return Encounter(meeting: meeting, other: chat?.partner, node: node)
        }
        let other = meeting.call.flatMap { calls.partner(in: $0) ?? contacts.other(in: $0, context.now) }
        return Encounter(meeting: meeting, other: other)
    }

    private mutating func agree(with other: Counterpart, _ encounter: Encounter, _ context: inout Context) {
        let own = snapshot.acquaintance
        context.persist(.keptInTouch(id, other.identity, names: [own.name, other.name], at: context.wallNow))
        add(other, encounter, &context)
        context.tell(other.identity, .contact(.agreed(encounter.meeting, with: own)), at: encounter.node)
    }

    private mutating func add(_ other: Counterpart, _ encounter: Encounter, _ context: inout Context) {
        persona.becomeKnown(as: snapshot.acquaintance.name, of: id, &context)
        contacts.add(other, encounter, devices, &context)
    }

    // MARK: Push notifications

    mutating func perform(_ verb: PushVerb, _ request: Request, _ context: inout Context) {
        // Only people who have appeared can be called, so others need no push endpoint.
        if case .register = verb, !persona.isKnown {
            let error = WireError(
                .notPresent, "Send presence.appear before push.register. Nobody can call you until then.")
            return context.fail(error, request)
        }
        let device = devices[request.client]?.identity
        context.query(
            Question(identity: id, client: request.client, re: request.re, verb.query, device: device))
    }

    // MARK: Introductions

    /// Handles a request that was waiting for a lookup, now that the lookup has finished.
    mutating func introduced(_ introduction: Introduction, to found: FoundPerson?, _ context: inout Context) {
        let request = introduction.request
        switch (introduction.message, found) {
        case (.presence(.find), let other?) where !blocks.contains(other.identity):
            let event = PersonPresenceEvent.sought(by: id, request.client, re: request.re, name: other.name)
            context.tell(.person(other.identity, .presence(event)))
        case (.presence(.block), let found?):
            let other = found.identity
            guard other != id else {
                return context.fail(WireError(.notPermitted, "You cannot block yourself."), request)
            }
            block(other, &context)
            context.ok(request)
            roulette.endChat(withBlocked: other, nil, snapshot, &context)
        case (.call(.start(let start)), let other?):
            let attempt = CallAttempt(
                caller: snapshot.counterpart, client: request.client, re: request.re, callee: other.identity,
                calleeName: other.name, calleeNode: distantNode(of: other.identity, context), video: start.video)
            calls.place(attempt, snapshot, &context)
        default:
            context.fail(WireError(.notFound, "No person has this ID. Check the link."), request)
        }
    }

    // MARK: Blocking

    /// Blocks another person. Ends any call with them, removes the contact, and deletes the meetings through which the two
    /// could become contacts.
    mutating func block(_ other: IdentityID, _ context: inout Context) {
        if blocks.add(other, of: id, &context) {
            context.persist(.block(owner: id, blocked: other, at: context.wallNow))
        }
        endAll(with: other, &context)
    }

    private mutating func endAll(with other: IdentityID, _ context: inout Context) {
        calls.endAll(with: other, snapshot, &context)
        contacts.remove(other, of: id, &context)
        contacts.forgetMeetings(with: other)
    }
}
