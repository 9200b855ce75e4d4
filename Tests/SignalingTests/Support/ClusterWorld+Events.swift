import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Random events in a cluster, and what must be true after each.
extension ClusterWorld {
    private static let rooms = ["kitchen", "cellar", "attic"].compactMap { RoomName($0) }
    private static let people = 14
    private static let maxClients = 24

    func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private func identity() -> IdentityID {
        IdentityID(high: 7, low: UInt64.random(in: 0..<UInt64(Self.people), using: &random))
    }

    private func anybody(_ isWanted: (ClusterClient) -> Bool = { $0.isConnected }) -> ClusterClient? {
        clients.filter(isWanted).randomElement(using: &random)
    }

    // MARK: Events

    /// Performs one random event. Faults of nodes and of the registry are rare, so that there is also calm.
    func step() {
        events += 1
        switch Int.random(in: 0..<1000, using: &random) {
        case ..<250: pass(.milliseconds(Int.random(in: 0...200, using: &random)))
        case ..<290: pass(.milliseconds(Int.random(in: 200...3000, using: &random)))
        case ..<430:
            guard clients.count < Self.maxClients else { return leaveOne() }
            count("arrival")
            arrive(identity())
        case ..<480: leaveOne()
        case ..<520: drop()
        case ..<620: anybody()?.want(.room(Self.rooms.randomElement(using: &random)!))
        case ..<640: joinSession()
        case ..<700: leaveRoom()
        case ..<800: anybody()?.want(.chat)
        case ..<850: anybody { $0.isConnected && $0.wish == .chat }?.say(.roulette(.next(.init())))
        case ..<880: if spans, chance(30) { hangUp() } else { stopChat() }
        case ..<977: spans && chance(20) ? callAcrossNodes() : anybody()?.want(.request(request()))
        case ..<980: failOver()
        case ..<986: disturb()
        case ..<992: setRegistryAway(!registry.isAway)
        case ..<997: repair()
        default: beCalm()
        }
        check()
    }

    private func leaveOne() { anybody { _ in true }?.leave() }

    private func drop() {
        guard let client = anybody() else { return }
        count("drop")
        client.drop()
        client.reconnect(to: chance(50) ? client.node : nil)
    }

    private func leaveRoom() {
        guard let client = anybody({ $0.isInRoom }) else { return }
        client.endWish()
        client.say(.room(.leave))
    }

    /// A client joins the session of a room, chat or call with a token of an application, from any node. The session's node may be dead.
    private func joinSession() {
        func note(_ session: SessionID) { if !latestSessions.contains(session) { latestSessions.append(session) } }
        for node in live {
            node.stage.hub.rooms.forEach { note($0.session) }
            node.stage.hub.sessions.forEach { note($0.id) }
        }
        latestSessions = Array(latestSessions.suffix(12))
        guard let session = latestSessions.randomElement(using: &random), let client = anybody(), let node = client.node
        else { return }
        count("application in a session")
        // The client repeats the join when it reconnects, which may be much later.
        client.want(.session(session, token: node.stage.token(session, lifetime: .seconds(1_000_000))))
    }

    private func stopChat() {
        guard let client = anybody({ $0.isConnected && $0.wish == .chat }) else { return }
        client.endWish()
        client.say(.roulette(.stop))
    }

    private func hangUp() {
        guard let client = anybody({ $0.isConnected && $0.call != nil }), let call = client.call else { return }
        client.say(.call(.end(.init(call: call))))
    }

    private func request() -> ClientMessage {
        let person = nodes[0].stage.project.personID(of: identity())
        // Most calls need two visible contacts who do nothing else. With relays, there are more of them.
        switch Int.random(in: 0..<(spans ? 13 : 9), using: &random) {
        case 0, 1, 9, 10: return .presence(.appear(Appearance(name: chance(80) ? "Ada" : "Bo")))
        case 2: return .presence(.find(.init(person: person)))
        case 3, 11, 12: return .call(.start(.init(person: person, video: chance(50))))
        case 4: return .nearby(.move(.init(latitude: 52, longitude: 13)))
        case 5: return .nearby(.watch(.init(unit: .miles, radius: 200)))
        case 6: return .presence(.link)
        case 7: return .contact(.list)
        // Few, because blocking a person also ends the contact.
        default: return chance(10) ? .presence(.block(.init(person: person))) : .presence(.leave)
        }
    }

    private func call(to callee: IdentityID) -> ClientMessage {
        .call(.start(.init(person: nodes[0].stage.project.personID(of: callee), video: chance(50))))
    }

    /// A visible person calls one on another node. Of people chosen at random, one is almost never visible, or they are on the same node.
    private func callAcrossNodes() {
        let visible = live.map { ($0, $0.stage.hub.visiblePeople) }
        guard
            let caller = anybody({ client in
                client.isConnected && visible.contains { $0.0 === client.node && $0.1.contains(client.identity) }
            }),
            let callee = visible.filter({ $0.0 !== caller.node }).flatMap({ $0.1.sorted() }).randomElement(
                using: &random)
        else { return }
        caller.want(.request(call(to: callee)))
    }

    /// Makes everybody a contact of everybody, before anyone connects.
    func acquaintEveryone() {
        for one in 0..<UInt64(Self.people) {
            for other in (one + 1)..<UInt64(Self.people) {
                shelf.archive.apply(
                    .keptInTouch(
                        IdentityID(high: 7, low: one), IdentityID(high: 7, low: other), names: ["Ada", "Ada"], at: now))
            }
        }
    }

    /// Redis fails over to a replica that lacks the newest entries. Sometimes it lacks more than can be posted again: letters are lost, and
    /// nodes begin again with each other.
    private func failOver() {
        count("failover")
        if chance(70) {
            post.failOver(losing: .milliseconds(Int.random(in: 0...3000, using: &random)), now: now)
        } else {
            post.loseEntries(now: now)
        }
    }

    /// Kills a node or begins to stop it, if others remain.
    private func disturb() {
        guard ready.count > 1, let node = ready.randomElement(using: &random) else { return }
        if chance(60) {
            count("kill")
            kill(node)
        } else {
            count("drain")
            drain(node)
        }
    }

    private func repair() {
        for node in nodes where !node.isLive && chance(70) {
            count("restart")
            restart(node)
        }
        // A node that was stopped starts again with a new life.
        for node in nodes where node.isDraining && chance(50) {
            kill(node)
            restart(node)
        }
    }

    private func setRegistryAway(_ isAway: Bool) {
        if isAway { count("outage") }
        registry.setAway(isAway)
        post.setAway(isAway, now: now)
    }

    // MARK: Judging

    /// Checks what must be true at every moment.
    func check() {
        if let fault = post.fault { fail(fault) }
        var owners: [PlacedMachine: NodeTag] = [:]
        var hosts: [SessionID: NodeTag] = [:]
        var chatting: Set<IdentityID> = []
        for node in live {
            let hub = node.stage.hub
            for machine in hub.placedMachines {
                if let other = owners.updateValue(node.tag, forKey: machine) {
                    fail("\(machine) is on \(other) and \(node.tag)")
                }
            }
            hub.sessions.forEach { session in
                guard !session.members.isEmpty, let other = hosts.updateValue(node.tag, forKey: session.id) else {
                    return
                }
                fail("\(session.id) has members on \(other) and \(node.tag)")
            }
            if hub.matches.count(where: { Set($0.sides.map(\.node)).count > 1 }) > 0 { count("chat that spans nodes") }
            if hub.calls.count(where: { $0.distantCallee != nil }) > 0 { count("call that spans nodes") }
            for person in hub.chattingPeople where !chatting.insert(person).inserted {
                fail("\(person) is in two matches")
            }
            for (machine, key) in hub.claimedPlaces where registry.places[key] != node.tag {
                fail(
                    "\(node.tag) uses the place \(key) of \(machine), which \(String(describing: registry.places[key])) has"
                )
            }
        }
    }

    /// Repairs everything and waits. Then all requests are answered, and all who want to meet have met.
    func beCalm() {
        count("calm")
        setRegistryAway(false)
        for node in nodes where !node.isLive { restart(node) }
        for node in nodes where node.isDraining {
            kill(node)
            restart(node)
        }
        pass(.seconds(45))
        for client in clients { client.beginCalm() }
        pass(.seconds(10))
        for client in clients {
            if !client.isConnected { fail("a client is not connected after calm") }
            if let open = client.guest?.openRequests, open > 0 {
                fail("\(open) requests are not answered: \(client.wish)")
            }
            if client.redirects > 0 { fail("\(client.redirects) redirects although nothing happened") }
        }
        for room in Self.rooms {
            let inside = Set(clients.filter { $0.isInRoom && $0.wish == .room(room) }.map { $0.node?.name })
            if !spans, inside.count > 1 { fail("people of \(room) are on \(inside)") }
            checkPeople(of: room)
        }
        // A stranger with a second device asks where the hall is each second, and waits for the answer.
        if live.contains(where: { $0.stage.hub.waitingLetters > 0 }) { pass(.milliseconds(100)) }
        for node in live where node.stage.hub.waitingLetters > 0 { fail("letters wait on \(node.tag)") }
        checkContacts()
        // A stranger whose penalty is over may be meeting another one just now.
        if !spanningFaults.isEmpty { pass(.seconds(1)) }
        for fault in spanningFaults { fail(fault) }
        let both = bothWaitingAlone()
        // Two who have just met meet again only after `rematchWait`. Without relays, they wait for that on one node.
        if both > .seconds(spans ? 14 : 2) { fail("two strangers have waited on different nodes for \(both)") }
    }

    /// After calm, a room is on one node, and has exactly the people who believe to be in it.
    private func checkPeople(of room: RoomName) {
        let rosters = live.compactMap { node in node.stage.hub.rooms.read(room) { $0.roster.members.map(\.client) } }
        let people = rosters.filter { !$0.isEmpty }
        if people.count > 1 { fail("\(room) has people on \(people.count) nodes") }
        let inside = clients.filter { $0.isInRoom && $0.wish == .room(room) }.compactMap(\.guest?.connection)
        let missing = Set(inside).subtracting(people.first ?? [])
        if !missing.isEmpty { fail("\(missing) believe to be in \(room), which has \(people.first ?? [])") }
    }

    /// After calm, everyone sees exactly those contacts online who are, on whichever node.
    private func checkContacts() {
        let visible = live.reduce(into: Set<IdentityID>()) { $0.formUnion($1.stage.hub.visiblePeople) }
        for node in live {
            if node.stage.hub.unexpectedLetters > 0 { fail("\(node.tag) got unexpected letters") }
            for view in node.stage.hub.contactViews {
                // A removal can be lost with the node on which it waits for Redis. Then the other person still has the contact in memory,
                // and sees them offline.
                let stored = shelf.archive.record(of: view.person).contacts.map(\.identity)
                let expected = visible.intersection(view.contacts).intersection(stored)
                guard view.online != expected else { continue }
                fail("\(view.person) on \(node.tag) sees \(view.online) online instead of \(expected)")
            }
        }
    }

    /// How long two strangers, both with one device, have waited on different nodes. Others are not redirected.
    private func bothWaitingAlone() -> Duration {
        let devices = clients.reduce(into: [:]) { $0[$1.identity, default: 0] += $1.isConnected ? 1 : 0 }
        return bothWaiting { devices[$0.identity] == 1 && !$0.hasBlocks }
    }
}
