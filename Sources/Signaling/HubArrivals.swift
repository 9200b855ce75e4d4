import Wire

/// Who comes in: at the door, by being asked for, and from before a restart.
extension Hub {
    /// A resume goes to the client it names; everybody else is new.
    mutating func receive(_ arrival: Arrival, into effects: inout [Effect]) {
        guard let claim = arrival.resume else { return effects.tell(.reception(arrival)) }
        guard let client = ResumeSecret.client(of: claim.secret), clients[client] != nil else {
            return effects.tell(.reception(arrival.withoutResume(failed: true, into: &effects)))
        }
        sockets[arrival.socket] = client
        effects.tell(.client(client, .resume(arrival)))
    }

    mutating func receive(_ arrival: Arrival, now: Timestamp, into effects: inout [Effect]) {
        let id = ConnectionID.random(using: &generator)
        sockets[arrival.socket] = id
        let secret = ResumeSecret.make(for: id, using: &generator)
        let client = Client(
            arrival, id: id, secret: secret, now: now, in: surroundings, into: &effects
        )
        clients[id] = Slot(machine: client)
    }

    /// Everybody is new on RouletteTok's wire, and gets a session of his own first.
    mutating func receive(_ arrival: OriginalArrival, now: Timestamp, into effects: inout [Effect]) {
        let id = ConnectionID.random(using: &generator)
        let identity = IdentityID.random(using: &generator)
        sockets[arrival.socket] = id
        let (project, rules) = (surroundings.project, surroundings.rules)
        let session = project.makeSessionID(mediaMode: rules.matchMediaMode, now: now, using: &generator)
        let token = project.makeSessionToken(
            session: session, role: .publisher, now: now, lifetime: rules.matchTokenLifetime, using: &generator
        )
        let client = OriginalClient(
            arrival, id: id, identity: identity, home: Admission(session: session, token: token), into: &effects
        )
        originals[id] = Slot(machine: client)
    }

    mutating func receive(_ arrival: ResourceArrival, now: Timestamp, into effects: inout [Effect]) {
        let rules = surroundings.rules
        do throws(WireError) {
            guard rules.routesMedia else { throw WireError(.mediaUnavailable, "This server routes no media.") }
            try register.admit(arrival, rules)
        } catch {
            effects.append(.reply(arrival.socket, .refused(re: nil, error)))
            return effects.append(.close(arrival.socket, .normal, ""))
        }
        let id = ConnectionID.random(using: &generator)
        sockets[arrival.socket] = id
        let identity = IdentityID.random(using: &generator)
        let resource = MediaResource(arrival, id: id, identity: identity, now: now, rules, into: &effects)
        resources[id] = Slot(machine: resource)
        if let at = resources[id]?.wakeUp() { schedule(.client(id), at) }
    }

    // MARK: Introductions

    /// Storage is asked about those in memory too: an answer that comes at once, before those to requests said after it,
    /// would tell that somebody is here who hides, or who blocked the one who asks.
    mutating func introduce(_ person: PersonID, _ introduction: Introduction, into effects: inout [Effect]) {
        lookups.began(person)
        let question = Question(
            identity: introduction.identity, client: introduction.client, re: introduction.re,
            .person(person, introduction)
        )
        effects.append(.inquire(question))
    }

    mutating func receive(
        _ finding: Finding, to question: Question, now: Timestamp, into effects: inout [Effect]
    ) {
        var isCurrent = true
        if case .person(let person, _) = question.inquiry { isCurrent = lookups.ended(person) }
        switch (question.inquiry, finding) {
        case (.person(_, let introduction), .person(let known)):
            let found = isCurrent ? known : nil
            // Meanwhile they may have come by themselves, knowing more.
            if let found, people[found.identity] == nil {
                remember(found.identity, found.record)
                people[found.identity]?.machine.wasLookedUp(now: now)
                finish(person: found.identity)
            }
            effects.tell(.person(introduction.identity, .introduced(introduction, found?.identity)))
        case (.callLog, .callLog(let records, let next)):
            let project = surroundings.project
            let calls = records.map { LoggedCall($0, project) }
            effects.send(.call(.log(CallLog(re: question.re, calls: calls, next: next))), to: question.client)
        case (.wakeable, .push(let isReachable)):
            effects.tell(.person(question.identity, .presence(.pushChanged(isReachable: isReachable))))
        // Nobody waits for this answer: what is not known stays as it was.
        case (.wakeable, _): break
        case (_, .push(let isReachable)):
            effects.tell(.person(question.identity, .presence(.pushChanged(isReachable: isReachable))))
            effects.send(.ok(Answer(re: question.re)), to: question.client)
        case (_, .refused(let error)): effects.fail(error, re: question.re, to: question.client)
        default:
            effects.fail(WireError(.internalError, "Try again.", retryable: true), re: question.re, to: question.client)
        }
    }

    // MARK: After a restart

    mutating func restore(
        _ call: StoredCall, _ caller: PersonRecord, _ callee: PersonRecord, now: Timestamp, into effects: inout [Effect]
    ) {
        for (identity, record) in [(call.caller, caller), (call.callee, callee)] {
            if people[identity] == nil {
                remember(identity, record)
                people[identity]?.machine.wasLookedUp(now: now)
                finish(person: identity)
            }
            effects.tell(.person(identity, .call(.restored(call))))
        }
        effects.tell(.call(call.id, .restore(call)))
    }
}
