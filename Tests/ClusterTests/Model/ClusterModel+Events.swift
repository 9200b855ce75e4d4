import Cluster

extension ClusterModel {
    mutating func handle(_ event: Event) {
        if let index = event.node, now < nodes[index].pausedUntil {
            return queue.add(event, at: nodes[index].pausedUntil)
        }
        switch event {
        case .wake(let index, let life): wake(index, life: life)
        case .trouble: trouble()
        case .begin(let index):
            guard nodes[index].machine == nil else { return }
            call(index, .begin)
        case .atLedger(let index, let life, let call): atLedger(index, life: life, call)
        case .fromLedger(let index, let life, let answer):
            guard nodes[index].life == life, now >= nodes[index].cutUntil else { return }
            fromLedger(index, answer)
        case .lookTimeout(let index, let life, let number):
            guard nodes[index].life == life else { return }
            let time = local(index)
            nodes[index].machine?.lives.lookFailed(number, at: time)
            schedule(index)
        case .people(let index):
            queue.add(event, at: now + 20_000 + upTo(400_000))
            people(index)
        case .letter(let index, let key): registry(index, .claim(key))
        case .connect(let index): connect(index)
        case .atRedis(let index, let connection, let store, let command, let number):
            let reply = redis[store].handle(command)
            queue.add(.fromRedis(index, connection: connection, number: number, reply), at: now + delay())
        case .fromRedis(let index, let connection, let number, let reply):
            guard nodes[index].connection == connection else { return }
            registry(index, .replied(number, reply))
        case .redisTimeout(let index, let connection, let number):
            guard nodes[index].connection == connection else { return }
            registry(index, .failed(number))
        }
    }

    // MARK: Lives

    private mutating func wake(_ index: Int, life: Int) {
        // An earlier time may have been added since.
        guard nodes[index].life == life, nodes[index].machine != nil, let due = nodes[index].wakesAt, due <= now else {
            return
        }
        nodes[index].wakesAt = nil
        let time = local(index)
        let leaseEffects = nodes[index].machine!.lease.tick(at: time)
        let livesEffects = nodes[index].machine!.lives.tick(at: time)
        perform(index, leaseEffects)
        perform(index, livesEffects)
        schedule(index)
    }

    /// Wakes the node up when one of its machines wants it, with the delay of a busy thread.
    mutating func schedule(_ index: Int) {
        guard let machine = nodes[index].machine,
            let due = [machine.lease.nextWakeUp, machine.lives.nextWakeUp].compactMap(\.self).min()
        else { return }
        let time = max(now, nodes[index].clock.time(of: due.reading.microseconds + 1)) + upTo(2000)
        if let earlier = nodes[index].wakesAt, earlier <= time { return }
        queue.add(.wake(index, life: nodes[index].life), at: time)
        nodes[index].wakesAt = time
    }

    mutating func perform(_ index: Int, _ effects: [Lease.Effect]) {
        for effect in effects {
            switch effect {
            case .renew(let number): call(index, .renew(number))
            case .froze: break
            case .thawed: registry(index, .looked)
            case .fenced: endLife(index, restartAfter: 1000)
            }
        }
    }

    mutating func perform(_ index: Int, _ effects: [Lives.Effect]) {
        for effect in effects {
            switch effect {
            case .look(let number):
                queue.add(.lookTimeout(index, life: nodes[index].life, number: number), at: now + 1_000_000)
                call(index, .look(number))
            case .fence(let tag): call(index, .fence(tag))
            case .fenceUnregistered: call(index, .fenceUnregistered)
            case .nodeLost(let tag, _): reported.insert(tag)
            }
        }
    }

    /// The node drops everything, and begins another life later.
    mutating func endLife(_ index: Int, restartAfter wait: Int64) {
        nodes[index].former = nodes[index].machine?.tag ?? nodes[index].former
        nodes[index].machine = nil
        nodes[index].life += 1
        nodes[index].wakesAt = nil
        queue.add(.begin(index), at: now + wait)
    }

    // MARK: The ledger

    mutating func call(_ index: Int, _ call: LedgerCall) {
        let life = nodes[index].life
        if case .begin = call { queue.add(.begin(index), at: now + 1_500_000) }
        guard now >= nodes[index].cutUntil else { return }
        queue.add(.atLedger(index, life: life, call), at: now + delay())
    }

    private mutating func atLedger(_ index: Int, life: Int, _ call: LedgerCall) {
        guard now >= ledgerBackAt, now >= nodes[index].cutUntil || upTo(1) == 0 else { return }
        // A killed process has no tag, but its calls may still arrive.
        let tag = nodes[index].life == life ? nodes[index].machine?.tag : nodes[index].former
        var answer: LedgerAnswer?
        switch (call, tag) {
        case (.begin, _):
            guard nodes[index].life == life, nodes[index].machine == nil else { return }
            answer = .began(ledger.begin(node: UInt16(index + 1), former: nodes[index].former, at: now))
        case (_, nil): return
        case (.renew(let number), let tag?): answer = .renewed(number, ledger.renew(tag, at: now))
        case (.look(let number), _?): answer = .looked(number, ledger.look(at: now))
        case (.fence(let dead), let tag?): _ = ledger.fence(dead, heir: tag, at: now)
        case (.fenceUnregistered, let tag?): ledger.fenceUnregistered(heir: tag, at: now)
        case (.beginEpoch(let store), let tag?): ledger.beginEpoch(of: store, by: tag, at: now)
        case (.note(let epoch), let tag?):
            answer = .noted(epoch, plan.claimsAtOnce || ledger.register(tag, under: epoch, at: now))
        }
        if let answer { queue.add(.fromLedger(index, life: life, answer), at: now + delay()) }
    }

    private mutating func fromLedger(_ index: Int, _ answer: LedgerAnswer) {
        let (time, acting) = (local(index), acts(index))
        switch answer {
        case .began(.begun(let tag)):
            guard nodes[index].machine == nil else { return }
            let lease = Lease(of: tag, begun: time, validity: plan.validity)
            let lives = Lives(of: tag, former: nodes[index].former, at: time)
            nodes[index].machine = Machines(lease: lease, lives: lives, registry: PlaceRegistry(of: tag))
            figures.lives += 1
            if nodes[index].connection != nil { registry(index, .connected(store: seenStore(index))) }
        case .began(.held): break
        case .renewed(let number, let renewal):
            let effects = nodes[index].machine?.lease.answered(number, renewal, at: time) ?? []
            perform(index, effects)
        case .looked(let number, let view):
            let view = shown(view, to: index)
            let effects = nodes[index].machine?.lives.looked(number, view, acting: acting, at: time) ?? []
            perform(index, effects)
            registry(index, .looked)
        case .noted(let epoch, let isNoted): registry(index, .noted(epoch, isNoted))
        }
        schedule(index)
    }

    /// What a node sees of a view. Control tests hide what a rule needs.
    private func shown(_ view: LedgerView, to index: Int) -> LedgerView {
        var view = view
        if plan.hidesSteps { view.clock = .microseconds(now) }
        if plan.claimsAtOnce {
            let store = nodes[index].store
            view.epoch = Epoch(number: UInt64(store + 1), store: seenStore(index))
            view.epochAge = .seconds(10)
            for row in view.lives.indices { view.lives[row].epoch = UInt64(store + 1) }
        }
        return view
    }
}

extension ClusterModel.Event {
    /// The node at which this happens, which may be paused. Nil if it happens elsewhere.
    fileprivate var node: Int? {
        switch self {
        case .wake(let index, _), .fromLedger(let index, _, _), .lookTimeout(let index, _, _), .begin(let index),
            .people(let index),
            .fromRedis(let index, _, _, _), .redisTimeout(let index, _, _), .connect(let index), .letter(let index, _):
            index
        case .trouble, .atLedger, .atRedis: nil
        }
    }
}
