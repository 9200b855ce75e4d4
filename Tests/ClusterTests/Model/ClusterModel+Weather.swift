import Cluster

extension ClusterModel {
    // MARK: Troubles

    mutating func trouble() {
        guard !isCalm else { return }
        queue.add(.trouble, at: now + upTo(2 * plan.calm))
        let index = Int(upTo(Int64(plan.nodes) - 1))
        var ticket = upTo(Int64(plan.troubles.reduce(0) { $0 + $1.1 }) - 1)
        for (trouble, weight) in plan.troubles {
            ticket -= Int64(weight)
            if ticket < 0 { return happen(trouble, to: index) }
        }
    }

    private mutating func happen(_ trouble: Trouble, to index: Int) {
        switch trouble {
        case .pause: nodes[index].pausedUntil = max(nodes[index].pausedUntil, now + upTo(plan.longestPause))
        case .cut:
            nodes[index].cutUntil = max(nodes[index].cutUntil, now + upTo(plan.longestLedgerCut ?? plan.longestCut))
        case .kill: endLife(index, restartAfter: upTo(5_000_000))
        case .failover:
            guard now >= ledgerBackAt else { return }
            // Short ones are as important: nodes may act while they last.
            ledgerBackAt = now + (upTo(1) == 0 ? upTo(plan.longestOutage) : upTo(1_000_000))
            ledger.failOver(
                at: now, lost: upTo(1) * upTo(plan.longestLoss),
                offset: plan.keepsClock ? ledger.clock.offset : anHour())
            figures.failovers += 1
        case .clockStep:
            // Smaller steps may stay unnoticed.
            ledger.clock.offset += upTo(1) == 0 ? anHour() : 600_000 + upTo(10_000_000)
        case .redisCut:
            nodes[index].redisCutUntil = max(nodes[index].redisCutUntil, now + upTo(2 * plan.longestCut))
            disconnect(index)
        case .redisForgets: forget()
        }
    }

    /// Another Redis takes over, and has forgotten all or a part. Some nodes see the old one for a while.
    private mutating func forget() {
        var store = upTo(2) == 0 ? PlaceStore() : redis[redis.count - 1]
        let share = upTo(100)
        var random = random
        store.forget { _ in Int64.random(in: 0..<100, using: &random) < share }
        self.random = random
        redis.append(store)
        figures.epochs += 1
        for index in nodes.indices {
            let wait = [0, upTo(500_000), upTo(10_000_000), upTo(25_000_000)][Int(upTo(3))]
            queue.add(.connect(index), at: now + wait)
        }
    }

    // MARK: Redis

    /// The name of the Redis that a node sees. Others than the first have forgotten something.
    func seenStore(_ index: Int) -> String { "run\(nodes[index].store)" }

    /// A node finds the Redis that is now the primary.
    mutating func connect(_ index: Int) {
        guard now >= nodes[index].redisCutUntil else {
            return queue.add(.connect(index), at: nodes[index].redisCutUntil)
        }
        if nodes[index].connection != nil, nodes[index].store == redis.count - 1 { return }
        disconnect(index)
        nodes[index].store = redis.count - 1
        nodes[index].lastConnection += 1
        nodes[index].connection = nodes[index].lastConnection
        registry(index, .connected(store: seenStore(index)))
    }

    private mutating func disconnect(_ index: Int) {
        guard nodes[index].connection != nil else { return }
        nodes[index].connection = nil
        nodes[index].lastArrival = 0
        registry(index, .disconnected)
        queue.add(.connect(index), at: max(now, nodes[index].redisCutUntil) + upTo(100_000))
    }

    /// Passes an input to the registry of places, and does what it says.
    mutating func registry(_ index: Int, _ input: PlaceRegistry.Input) {
        guard let machine = nodes[index].machine else { return }
        // A node has the places whose origin it is, and does not claim them.
        if case .claim(let key) = input, key.origin == machine.tag { return }
        let (time, acting) = (local(index), acts(index))
        let effects = nodes[index].machine!.registry.handle(input, lives: machine.lives, acting: acting, at: time)
        for effect in effects {
            switch effect {
            case .send(let command, let number): send(index, command, number)
            case .beginEpoch(let store): call(index, .beginEpoch(store))
            case .note(let epoch): call(index, .note(epoch))
            case .answer(let key, .claimed):
                figures.claims += 1
                if key.origin != nil { figures.inherited += 1 }
                // A life is an origin only after it has claimed something, as a room before its session.
                guard !origins.contains(where: { $0.origin == machine.tag }) else { break }
                origins.append(PlaceKey(.session, "\(machine.tag)", origin: machine.tag))
            case .answer(let key, .at(let tag)):
                // The client is redirected, and claims the place there if it is not there yet.
                let other = Int(tag.node) - 1
                if nodes[other].machine?.tag == tag { queue.add(.letter(other, key), at: now + delay()) }
            case .answer, .lost: break
            }
        }
    }

    private mutating func send(_ index: Int, _ command: PlaceCommand, _ number: UInt64) {
        guard let connection = nodes[index].connection else { return }
        // Commands of a connection that is lost may still arrive, or not.
        let arrival = max(nodes[index].lastArrival, now + delay())
        nodes[index].lastArrival = arrival
        queue.add(.redisTimeout(index, connection: connection, number: number), at: now + 2_000_000)
        guard upTo(499) > 0 else { return }
        queue.add(
            .atRedis(index, connection: connection, store: nodes[index].store, command, number: number), at: arrival)
    }

    /// A client wants a place on this node, or leaves one.
    mutating func people(_ index: Int) {
        guard let key = places.randomElement(using: &random), acts(index) else {
            return
        }
        if !isCalm, upTo(11) == 0 {
            registry(index, .release(key))
        } else {
            registry(index, upTo(9) == 0 ? .find(key) : .claim(key))
        }
    }
}
