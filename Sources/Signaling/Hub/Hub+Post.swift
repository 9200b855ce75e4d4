import Cluster
import Wire

// Letters between the hubs of a cluster. Without a cluster, nothing of this happens.
//
// A client is on the node of its socket, whose tag is in its id. A person is on the node that has its place, so letters to a person
// on another node first wait in `Places` until the registry has said which node that is.

extension Hub {
    /// Posts a letter to clients on other nodes, or to a room, match or call on another node. Returns true if this node has nothing left to
    /// handle.
    mutating func posts(_ letter: Letter) -> Bool {
        guard let own = context.tag else { return false }
        switch letter {
        case .client(let id, _):
            guard let tag = id.tag(unless: own) else { return false }
            context.post(letter, to: tag)
            return true
        case .clients(let ids, let message):
            guard ids.contains(where: { $0.tag(unless: own) != nil }) else { return false }
            post(message, to: ids, own)
            return true
        case .room, .roomRegistry, .session:
            guard context.spansNodes, let tag = distantNode(of: letter) else { return false }
            context.post(letter, to: tag)
            return true
        case .match(let id, let event):
            guard context.spansNodes, let tag = id.node(unless: own) else { return false }
            if case .leave = event { distantSessions.ended(id) }
            context.post(letter, to: tag)
            return true
        case .call(let id, _):
            guard context.spansNodes, let tag = distantSessions.node(of: id, unless: own) else { return false }
            context.post(letter, to: tag)
            return true
        default: return false
        }
    }

    /// Posts one letter to each node that has some of these clients, and delivers the message to those on this node.
    private mutating func post(_ message: BroadcastMessage, to ids: [ConnectionID], _ own: NodeTag) {
        var here: [ConnectionID] = []
        var (tags, elsewhere) = ([NodeTag](), [NodeTag: [ConnectionID]]())
        for id in ids {
            guard let tag = id.tag(unless: own) else {
                here.append(id)
                continue
            }
            if elsewhere[tag] == nil { tags.append(tag) }
            elsewhere[tag, default: []].append(id)
        }
        for tag in tags { context.post(.clients(elsewhere[tag] ?? [], message), to: tag) }
        if !here.isEmpty { dispatch(.clients(here, message)) }
    }

    /// Posts an event about the relays to another node. Does nothing without a cluster.
    mutating func post(_ event: RelayLetter, to tag: NodeTag) {
        guard let own = context.tag, own != tag else { return }
        context.post(.relay(event), to: tag)
    }

    /// Delivers a letter that another node has posted.
    mutating func received(_ letter: Letter, from tag: NodeTag) {
        guard let own = context.tag else { return }
        // The other node may have learned before this one that media can cross.
        if context.spansNodes { distantSessions.met([tag]) }
        switch letter {
        // The client of an earlier life of this node is gone.
        case .client(let id, let event):
            guard id.tag(unless: own) == nil else { return }
            // A node may post signals only for its own clients.
            if case .perchSignal(let sender, _) = event, sender.tag(unless: own) != tag {
                return context.figures.unexpectedLetters += 1
            }
            if !context.spansNodes || note(event, for: id, from: tag) { context.tell(letter) }
        case .clients(let ids, let message):
            context.tell(.clients(ids.filter { $0.tag(unless: own) == nil }, message))
        case .person(let id, .contact(.presence(let other))):
            // It must not wait until it is known where the person is, because the sender's life may be over by then. A person who comes
            // to this node asks about all contacts.
            guard people.contains(id) else { return }
            context.tell(.person(id, .contact(.presenceElsewhere(of: other, at: tag))))
        case .person(let id, .call(.over(let end))) where !end.record.call.isOn(tag): receivedMissed(end, id)
        case .person(let id, .call(let event)) where context.spansNodes: receivedForCallee(event, id, from: tag)
        // If the person has just moved to another node, the letter is forwarded. Presence is not: a person who moves asks again.
        case .person(_, let event) where event.travels: context.tell(letter)
        case .relay(let event): context.relay(event, from: tag)
        case .person(let id, let event) where context.spansNodes: receivedForStranger(event, id, from: tag)
        case .pool(let event) where context.spansNodes: received(event, from: tag)
        case .match(let id, let event) where context.spansNodes: received(event, to: id, from: tag)
        case .call(let id, let event) where context.spansNodes: received(event, to: id, from: tag)
        case .media(let command) where context.spansNodes: received(command, from: tag)
        case .session(let id, .report(let report, let client, let re)) where context.spansNodes:
            received(report, by: Request(client, re), to: id, from: tag)
        case .session(let id, .full(let isFull)) where context.spansNodes:
            context.tell(.session(id, .fullElsewhere(isFull, at: tag)))
        case .room, .roomRegistry, .session:
            guard admits(letter, from: tag) else { return context.figures.unexpectedLetters += 1 }
            context.tell(letter)
        // Not posted by any release so far.
        default: context.figures.unexpectedLetters += 1
        }
    }

    /// Discards the presence of contacts on another node, because its life is over, or letters between it and this node were lost.
    mutating func contactsLost(on tag: NodeTag, isOver: Bool) {
        guard places != nil else { return }
        let people = people.ids { $0.contacts.areInDoubt(on: tag, isOver: isOver) }
        let isScheduled = !lostContacts.isEmpty
        lostContacts.add(people.sorted(), of: tag, isOver: isOver)
        if !isScheduled { timers.schedule(.lostContacts, refreshNextContacts()) }
    }

    /// Lets the next people refresh what they see of their contacts. Returns when to continue; nil if nobody is left.
    mutating func refreshNextContacts() -> Timestamp? {
        for part in lostContacts.take(now: context.now) where people.contains(part.person) {
            context.tell(.person(part.person, .contact(.nodeLost(part.tag, isOver: part.isOver))))
        }
        return lostContacts.nextTurn(now: context.now)
    }
}

extension ConnectionID {
    /// The life of the node that this client is on; nil if it is `own`. The tag is at the beginning of the id. For a client of PerchRTC's
    /// protocol, it is at the beginning of the id's lower half.
    package func tag(unless own: NodeTag) -> NodeTag? {
        let tag = (isPerch ? low : high) >> 24
        return tag == own.rawValue ? nil : NodeTag(rawValue: tag)
    }
}

extension Letter {
    /// Whether the letter is posted to its person's node if the person is on another one. Other letters to people on other nodes are
    /// answered here.
    var travels: Bool { if case .person(_, let event) = self { event.travels } else { false } }

    /// Whether an older letter to the same person is needless, because this one says the same about the same contact, or something
    /// newer.
    func replaces(_ older: Letter) -> Bool {
        guard case .person(let id, .contact(let event)) = self, case .person(id, .contact(let old)) = older else {
            return false
        }
        return switch (event, old) {
        case (.presence(let other), .presence(let former)): other.identity == former.identity
        case (.queried(let other), .queried(let former)), (.removed(let other), .removed(let former)): other == former
        default: false
        }
    }
}

extension PersonEvent {
    /// Whether the event is sent to the person wherever they are.
    var travels: Bool {
        switch self {
        case .contact(.presence), .contact(.queried), .contact(.removed): true
        case .call(.over(let end)): end.isMissed
        default: false
        }
    }
}
