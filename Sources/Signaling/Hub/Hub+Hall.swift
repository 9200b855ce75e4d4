import Cluster
import Wire

// Strangers of all nodes meet in the pool of one node, the hall. With relays, strangers on other nodes wait in it without moving: the pool
// reserves them by letters, and the match begins on the node of one of the two people. See `RouletteState+Hall` for the person's part.

// MARK: - On the node with the hall

extension Hub {
    /// Handles what another node posts to this node's pool.
    mutating func received(_ event: PoolEvent, from tag: NodeTag) {
        switch event {
        case .enter(let entry): enter(entry, from: tag)
        case .withdraw(let person), .reserved(_, let person), .refused(_, let person), .exclude(let person, _):
            // The entry may have been removed meanwhile, or replaced by an entry from the person's current node.
            guard pool.machine.node(of: person) == tag else { return }
            context.tell(.pool(event))
        case .count: context.figures.unexpectedLetters += 1
        }
    }

    private mutating func enter(_ entry: PoolEntry, from tag: NodeTag) {
        guard let own = context.tag, entry.node == tag else {
            return context.figures.unexpectedLetters += 1
        }
        guard places?.isHere(.hall) == true, places?.isDraining == false, context.hasMedia(with: tag) else {
            return context.post(.person(entry.identity, .hallClosed), to: tag)
        }
        // The person has since moved to this node and waits here, so this letter is outdated.
        guard pool.machine.node(of: entry.identity) != own else { return }
        context.tell(.pool(.enter(entry)))
    }

    /// Sends the strangers of other nodes back to the pools of their nodes, because the hall is no longer here.
    mutating func closeHall() {
        guard let own = context.tag else { return }
        sendBack { $0 != own }
    }

    /// Sends strangers back to the pools of their nodes if media can no longer cross to these nodes. Their nodes then redirect them.
    mutating func sendBackUnconnected() {
        guard let nodes = context.mediaNodes, let own = context.tag else { return }
        sendBack { $0 != own && !nodes.contains($0) }
    }

    private mutating func sendBack(ofNodes isIncluded: (NodeTag) -> Bool) {
        for entry in pool.machine.waiting(onNodes: { $0.map(isIncluded) ?? false }) {
            context.tell(.pool(.withdraw(entry.identity)))
            context.tell(entry.identity, .hallClosed, at: entry.node)
        }
    }

    /// A node is lost, or letters between it and this node were. Its strangers no longer wait here, and those of this node no longer
    /// wait there.
    mutating func strangersLost(on tag: NodeTag, isOver: Bool) {
        for entry in pool.machine.waiting(onNodes: { $0 == tag }) {
            context.tell(.pool(.withdraw(entry.identity)))
            if !isOver { context.post(.person(entry.identity, .hallClosed), to: tag) }
        }
        for person in people.ids(where: { $0.roulette.hall == tag }).sorted() {
            context.tell(.person(person, .hallClosed))
        }
    }
}

// MARK: - On the node of the match

extension Hub {
    /// Handles what another node posts to a match of this one.
    mutating func received(_ event: MatchEvent, to match: MatchID, from tag: NodeTag) {
        guard let own = context.tag, match.node(unless: own) == nil else {
            return context.figures.unexpectedLetters += 1
        }
        switch event {
        case .begin(_, let first, let second):
            guard let one = first.node, let other = second.node, one == own || other == own, !matches.contains(match)
            else { return context.figures.unexpectedLetters += 1 }
            context.tell(.match(match, event))
            // The other node may have been lost since the pool reserved the two people.
            for side in [first, second] where !context.hasMedia(with: side.node) {
                context.tell(.match(match, .leave(side.identity, .partnerLeft)))
            }
        case .leave(let person, _), .away(let person, _), .moved(let person, _):
            guard let side = matches.read(match, { $0.sides })?.first(where: { $0.identity == person }) else { return }
            guard side.node == tag else { return context.figures.unexpectedLetters += 1 }
            context.tell(.match(match, event))
        }
    }
}

// MARK: - On the node of the person

extension Hub {
    /// Handles what the hall, a match or a partner on another node posts to a person of this node.
    mutating func receivedForStranger(_ event: PersonEvent, _ id: IdentityID, from tag: NodeTag) {
        guard let own = context.tag else { return }
        switch event {
        case .reserve, .release, .queueFull, .hallClosed:
            // If the person has left that pool, its letters are about an entry that no longer exists.
            guard people.read(id, { $0.roulette.hall }) == tag else { return }
        case .matched(let matched, _, _, _):
            // A match on another node has one person of this node, and begins once.
            guard matched.match.node(unless: own) == tag, distantSessions.chats[matched.match] == nil else {
                return context.figures.unexpectedLetters += 1
            }
            guard people.contains(id) else {
                return context.post(.match(matched.match, .leave(id, .partnerLeft)), to: tag)
            }
            distantSessions.began(matched.match, of: id)
        case .matchEnded(let match, _):
            guard match.node(unless: own) == tag, distantSessions.chats[match] ?? id == id else {
                return context.figures.unexpectedLetters += 1
            }
            distantSessions.ended(match)
        case .partnerAway(let match, _), .partnerMoved(let match, _):
            guard match.node(unless: own) == tag else { return context.figures.unexpectedLetters += 1 }
        case .partnerBlurred(let match, _):
            guard isPartner(of: id, in: match, on: tag) else { return }
        case .contact(.asked(let meeting, let other)), .contact(.agreed(let meeting, let other)):
            guard hasMet(id, other.identity, in: meeting, on: tag) else { return }
        default: return context.figures.unexpectedLetters += 1
        }
        if people.contains(id) { context.tell(.person(id, event)) }
    }

    /// Whether this person has recently had a chat with the partner, who was on the given node.
    private func hasMet(
        _ person: IdentityID, _ partner: IdentityID, in meeting: MeetingReference, on tag: NodeTag
    ) -> Bool {
        guard let match = meeting.match else { return false }
        return people.read(person) { $0.roulette.hasMet(partner, on: tag, in: match) } == true
    }

    /// Whether this person's partner in a current match is on the given node.
    private func isPartner(of person: IdentityID, in match: MatchID, on tag: NodeTag) -> Bool {
        guard let own = context.tag else { return false }
        if match.node(unless: own) == tag { return distantSessions.chats[match] == person }
        let sides = matches.read(match) { $0.sides } ?? []
        return sides.contains { $0.identity == person } && sides.contains { $0.node == tag && $0.identity != person }
    }
}
