import HeapModule
import Wire

/// Waking machines when they asked to be.
extension Hub {
    mutating func schedule(_ address: Address, _ at: Timestamp) {
        timerOrder += 1
        timers.insert(Timer(at: at, order: timerOrder, address: address))
    }

    mutating func wake(_ timer: Timer, now: Timestamp, into effects: inout [Effect]) {
        switch timer.address {
        case .client(let id) where originals[id] != nil:
            guard originals[id]?.scheduled == timer.at else { return }
            originals[id]?.scheduled = nil
            originals[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(original: id)
        case .client(let id) where resources[id] != nil:
            guard resources[id]?.scheduled == timer.at else { return }
            resources[id]?.scheduled = nil
            resources[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(resource: id)
        case .client(let id):
            guard clients[id]?.scheduled == timer.at else { return }
            clients[id]?.scheduled = nil
            clients[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(client: id)
        case .person(let id):
            guard people[id]?.scheduled == timer.at else { return }
            people[id]?.scheduled = nil
            let surroundings = surroundings
            people[id]?.machine.handleTimeout(now: now, in: surroundings, into: &effects)
            finish(person: id)
        case .session(let id):
            guard sessions[id]?.scheduled == timer.at else { return }
            sessions[id]?.scheduled = nil
            sessions[id]?.machine.handleTimeout(now: now, into: &effects)
            finish(session: id)
        case .call(let id):
            guard calls[id]?.scheduled == timer.at else { return }
            calls[id]?.scheduled = nil
            let surroundings = surroundings
            calls[id]?.machine.handleTimeout(now: now, in: surroundings, using: &generator, into: &effects)
            finish(call: id)
        case .directory:
            guard directory.scheduled == timer.at else { return }
            directory.scheduled = nil
            directory.machine.handleTimeout(now: now, into: &effects)
            if let at = directory.wakeUp() { schedule(.directory, at) }
        case .links:
            guard links.scheduled == timer.at else { return }
            links.scheduled = nil
            links.machine.handleTimeout(now: now, into: &effects)
            if let at = links.wakeUp() { schedule(.links, at) }
        case .pool:
            guard pool.scheduled == timer.at else { return }
            pool.scheduled = nil
            pool.machine.handleTimeout(now: now, using: &generator, into: &effects)
            if let at = pool.wakeUp() { schedule(.pool, at) }
        }
    }
}
