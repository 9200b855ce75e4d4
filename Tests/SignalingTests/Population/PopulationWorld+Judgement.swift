import Cluster
import Signaling
import Wire

/// What must be true of a population.
extension PopulationWorld {
    /// How long a request may be unanswered.
    private static let longestAnswer = Duration.seconds(10)
    /// How long a stranger may wait while another one does. A person whose former connection was lost half a minute ago is not
    /// redirected to where strangers wait.
    private static let longestWait = Duration.seconds(45)

    // MARK: At each event

    /// A person was matched: with one other person of the same node, and only if they were waiting.
    func judge(_ matched: RouletteNotice.Matched, _ person: Int) {
        // A person who has just come back may be idle: the search of the lost connection continues.
        guard [.searching, .idle].contains(residents[person].state) else {
            return fail("person \(person) was matched while \(residents[person].state)")
        }
        guard let first = matches[matched.match]?.first else {
            return matches[matched.match] = (first: person, second: nil, left: 0)
        }
        guard first != person, matches[matched.match]?.second == nil else {
            return fail("\(matched.match) has too many people")
        }
        guard residents[first].node == residents[person].node else { return fail("\(matched.match) is on two nodes") }
        matches[matched.match]?.second = person
    }

    /// A call rings only after it was stored.
    func judge(_ incoming: CallNotice.Incoming) {
        if cluster.storage.openCalls[incoming.call] == nil { fail("\(incoming.call) rings and is not stored") }
    }

    /// A person is in a room: on the node on which the others are.
    func judgeRoom(_ person: Int) {
        guard case .room(let room) = PopulationHabit(person) else { return fail("person \(person) is in a room") }
        let node = residents[person].node
        if let known = rooms[room], known.node != node { fail("room \(room) is on two nodes") }
        rooms[room] = (node: node, people: (rooms[room]?.people ?? 0) + 1)
    }

    /// A person is no longer in what they were in.
    func leaveState(_ person: Int) {
        residents[person].session = nil
        switch residents[person].state {
        case .chatting:
            let id = match(of: person)
            guard var match = matches[id] else { return }
            // A person who disconnects at that moment does not hear of the match.
            match.left += 1
            matches[id] = match.left < (match.second == nil ? 1 : 2) ? match : nil
        case .inRoom:
            guard case .room(let room) = PopulationHabit(person), let known = rooms[room] else { return }
            rooms[room] = known.people > 1 ? (node: known.node, people: known.people - 1) : nil
        case .away, .idle, .searching, .calling, .ringing, .talking: break
        }
    }

    // MARK: Once a minute

    /// Checks what takes time for each person.
    func judgeEveryone() {
        var homes = Array(repeating: false, count: count)
        var chatting = homes
        var rooms: Set<RoomName> = []
        for node in cluster.hubs.indices {
            for machine in cluster.hubs[node].placedMachines {
                switch machine {
                case .person(let identity): judge(identity, isNewIn: &homes, "on two nodes")
                case .room(let name): if !rooms.insert(name).inserted { fail("\(name) is on two nodes") }
                case .session, .hall, .directory, .deviceCodes: break
                }
            }
            for identity in cluster.hubs[node].chattingPeople { judge(identity, isNewIn: &chatting, "in two matches") }
            for (machine, key) in cluster.hubs[node].claimedPlaces {
                guard cluster.storage[place: key] != UInt8(node + 1) else { continue }
                fail("\(cluster.tags[node]) uses the place of \(machine), which it does not have")
            }
            if let person = cluster.hubs[node].peopleInTwoPlaces.first { fail("\(person) is in a chat and in a call") }
            if cluster.hubs[node].unexpectedLetters > 0 { fail("\(cluster.tags[node]) got unexpected letters") }
            if cluster.hubs[node].droppedLetters > 0 { fail("\(cluster.tags[node]) dropped letters") }
        }
        judgeWaits()
    }

    private func judge(_ identity: IdentityID, isNewIn people: inout [Bool], _ fault: String) {
        guard let person = cluster.storage.number(identity) else { return fail("\(identity) is nobody") }
        if people[person] { fail("person \(person) is \(fault)") }
        people[person] = true
    }

    private func judgeWaits() {
        var strangers = 0
        for person in residents.indices where residents[person].isConnected {
            if !residents[person].isEverythingAnswered, residents[person].askedAt + Self.longestAnswer < now {
                fail("person \(person) has waited too long for an answer, \(residents[person].state)")
            }
            let isWaiting = residents[person].state == .searching
            if isWaiting, residents[person].since + Self.longestWait < now { strangers += 1 }
        }
        if strangers > 1 { fail("\(strangers) strangers wait side by side") }
    }

    // MARK: At rest

    /// After calm, everything has come to an end, and all agree.
    func judgeRest() {
        judgeEveryone()
        let hubs = cluster.hubs
        for person in residents.indices {
            if !residents[person].isConnected { fail("person \(person) is not connected after calm") }
            if !residents[person].isEverythingAnswered { fail("person \(person) has no answer after calm") }
        }
        let clients = hubs.reduce(0) { $0 + $1.clientCount }
        if clients != count { fail("\(clients) clients are left of \(count) people") }
        let running = hubs.reduce(0) { $0 + $1.matchCount }
        if running != matches.count { fail("\(running) matches run, and people are in \(matches.count)") }
        let calls = hubs.reduce(0) { $0 + $1.callCount }
        if calls != cluster.storage.openCalls.count {
            fail("\(calls) calls run, and \(cluster.storage.openCalls.count) are stored")
        }
        if hubs.contains(where: { $0.waitingLetters > 0 }) { fail("letters wait after calm") }
        judgeContacts()
    }

    /// Everyone sees exactly those contacts online who are, on whichever node.
    private func judgeContacts() {
        var isVisible = Array(repeating: false, count: count)
        for hub in cluster.hubs {
            for identity in hub.visiblePeople {
                if let person = cluster.storage.number(identity) { isVisible[person] = true }
            }
        }
        for hub in cluster.hubs {
            for view in hub.contactViews {
                let expected = view.contacts.filter { contact in
                    cluster.storage.number(contact).map { isVisible[$0] } ?? false
                }
                guard view.online == Set(expected) else {
                    return fail("\(view.person) sees \(view.online.count) contacts online instead of \(expected.count)")
                }
            }
        }
    }
}
