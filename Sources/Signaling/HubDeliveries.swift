import Wire

/// Bringing one event to one machine: made if the event may make it, forgotten if it is over, woken when it asks.
extension Hub {
    mutating func deliver(
        _ event: ClientEvent, to id: ConnectionID, now: Timestamp, into effects: inout [Effect]
    ) {
        if originals[id] != nil {
            originals[id]?.machine.handle(event, now: now, into: &effects)
            return finish(original: id)
        }
        if resources[id] != nil {
            let surroundings = surroundings
            resources[id]?.machine.handle(event, now: now, in: surroundings, using: &generator, into: &effects)
            return finish(resource: id)
        }
        guard clients[id] != nil else {
            // It left while an answer was on the way.
            if case .deliver(.joined(let joined)) = event {
                effects.tell(.session(joined.session, .gone(id, .clientDisconnected)))
            }
            return
        }
        var next: String?
        if case .resume = event { next = ResumeSecret.make(for: id, using: &generator) }
        let surroundings = surroundings
        clients[id]?.machine.handle(
            event, now: now, in: surroundings, newSecret: { next ?? "" }, into: &effects
        )
        finish(client: id)
    }

    mutating func finish(client id: ConnectionID) {
        guard let isOver = clients[id]?.machine.isGone else { return }
        if isOver {
            clients[id] = nil
        } else if let at = clients[id]?.wakeUp() {
            schedule(.client(id), at)
        }
    }

    mutating func finish(original id: ConnectionID) {
        guard let isOver = originals[id]?.machine.isGone else { return }
        if isOver {
            originals[id] = nil
        } else if let at = originals[id]?.wakeUp() {
            schedule(.client(id), at)
        }
    }

    mutating func finish(resource id: ConnectionID) {
        guard let resource = resources[id]?.machine else { return }
        if resource.isGone {
            resources[id] = nil
            sockets[resource.socket] = nil
            register.release(address: resource.address, fingerprint: resource.grant.fingerprint)
        } else if let at = resources[id]?.wakeUp() {
            schedule(.client(id), at)
        }
    }

    mutating func deliver(
        _ event: PersonEvent, to id: IdentityID, now: Timestamp, into effects: inout [Effect]
    ) {
        if people[id] == nil {
            guard case .arrived(_, _, _, let record, _, _) = event else { return }
            remember(id, record)
        }
        let surroundings = surroundings
        let wasThere = people[id]?.machine.isThere ?? false
        people[id]?.machine.handle(event, now: now, in: surroundings, into: &effects)
        if let person = people[id]?.machine, person.isDeleted || event.makesDevice { lookups.void(person.publicID) }
        finish(person: id)
        presentCount += (people[id]?.machine.isThere ?? false ? 1 : 0) - (wasThere ? 1 : 0)
    }

    mutating func finish(person id: IdentityID) {
        absences.note(id, isAbsent: people[id]?.machine.isAbsent ?? false)
        while let longest = absences.overflow(surroundings.rules.absentPeople) {
            people[longest]?.machine.forgetAbsence()
            if longest != id { finish(person: longest) }
        }
        guard let isOver = people[id]?.machine.isForgettable else { return }
        if isOver {
            people[id] = nil
        } else if let at = people[id]?.wakeUp() {
            schedule(.person(id), at)
        }
    }

    mutating func deliver(
        _ event: SessionEvent, to id: SessionID, now: Timestamp, into effects: inout [Effect]
    ) {
        if sessions[id] == nil {
            switch event {
            case .join, .matchOpened: sessions[id] = Slot(machine: Session(id: id))
            case .report(let report, let client, let re):
                // Its chat is forgotten, the complaint is not.
                effects.append(.persist(.report(report)))
                return effects.send(.ok(Answer(re: re)), to: client)
            case .verb(let client, let re, _):
                return effects.fail(WireError(.notJoined, "Join this session first."), re: re, to: client)
            case .dropped, .returned, .gone, .matchClosed, .videoPaused, .layersWanted, .speaking: return
            }
        }
        let rules = surroundings.rules
        sessions[id]?.machine.handle(
            event, now: now, rules: rules, using: &generator, into: &effects
        )
        finish(session: id)
    }

    mutating func finish(session id: SessionID) {
        guard let isOver = sessions[id]?.machine.isEmpty else { return }
        if isOver {
            sessions[id] = nil
        } else if let at = sessions[id]?.wakeUp() {
            schedule(.session(id), at)
        }
    }

    mutating func deliver(
        _ event: MatchEvent, to id: MatchID, now: Timestamp, into effects: inout [Effect]
    ) {
        if matches[id] == nil {
            guard case .begin = event else { return }
            matches[id] = Match(id: id)
        }
        let surroundings = surroundings
        matches[id]?.handle(event, now: now, in: surroundings, using: &generator, into: &effects)
        if matches[id]?.isOver ?? false { matches[id] = nil }
    }

    mutating func remember(_ id: IdentityID, _ record: PersonRecord) {
        people[id] = Slot(machine: Person(id: id, record: record, in: surroundings))
    }

    mutating func deliver(_ event: CallEvent, to id: CallID, now: Timestamp, into effects: inout [Effect]) {
        if calls[id] == nil {
            switch event {
            case .begin, .restore: calls[id] = Slot(machine: Call(id: id))
            default: return
            }
        }
        let surroundings = surroundings
        calls[id]?.machine.handle(event, now: now, in: surroundings, using: &generator, into: &effects)
        finish(call: id)
    }

    mutating func finish(call id: CallID) {
        guard let isOver = calls[id]?.machine.isOver else { return }
        if isOver {
            calls[id] = nil
        } else if let at = calls[id]?.wakeUp() {
            schedule(.call(id), at)
        }
    }
}

extension Person {
    /// On some device whose line is not down.
    fileprivate var isThere: Bool { devices.values.contains { $0.isPresent && !$0.isDropped } }
}

extension PersonEvent {
    /// Whoever it reaches is another person's device from now on, and known to nobody by its own id.
    fileprivate var makesDevice: Bool { if case .presence(.becameDevice) = self { true } else { false } }
}
