import Cluster
import Wire

@testable import Signaling

/// Invariants of strangers, calls and their media in calm times, whichever nodes they are on.
extension ClusterWorld {
    var spanningFaults: [String] { strangerFaults + callFaults + streamFaults }

    /// Inconsistencies between pools, people and matches: entries that their person does not have, people who wait without an entry, and
    /// the same for matches.
    private var strangerFaults: [String] {
        var faults: [String] = []
        var (waiting, chatting) = strangers
        for node in live {
            for id in node.stage.hub.pool.machine.waitingIdentities where waiting.removeValue(forKey: id) != node.tag {
                faults.append("\(id) has an entry in the pool of \(node.tag), and does not wait there")
            }
            for match in node.stage.hub.matches.ids(where: { _ in true }) {
                for side in node.stage.hub.matches.read(match, { $0.sides }) ?? []
                where chatting.removeValue(forKey: side.identity) != match {
                    faults.append("\(side.identity) is in \(match) on \(node.tag), and does not know it")
                }
            }
        }
        if !waiting.isEmpty { faults.append("\(waiting) wait in pools without an entry") }
        if !chatting.isEmpty { faults.append("\(chatting) are in matches that are over") }
        return faults
    }

    /// The nodes in whose pools people wait, and the matches in which people are, as the people know it.
    private var strangers: (waiting: [IdentityID: NodeTag], chatting: [IdentityID: MatchID]) {
        var waiting: [IdentityID: NodeTag] = [:]
        var chatting: [IdentityID: MatchID] = [:]
        for node in live {
            for id in node.stage.hub.people.ids(where: { !$0.roulette.isIdle }) {
                guard let roulette = node.stage.hub.people.read(id, { $0.roulette }) else { continue }
                switch roulette.activity {
                case .waiting, .reserved: waiting[id] = roulette.hall ?? node.tag
                case .chatting(_, let chat): chatting[id] = chat.match
                case .idle, .penalized, .away: break
                }
            }
        }
        return (waiting, chatting)
    }

    /// Inconsistencies between calls and people: people in calls that no node has, and callees on other nodes who do not have the call.
    private var callFaults: [String] {
        var parts: [CallID: Set<IdentityID>] = [:]
        for node in live {
            for id in node.stage.hub.people.ids(where: { !$0.calls.parts.isEmpty }) {
                for part in node.stage.hub.people.read(id, { $0.calls.parts }) ?? [] {
                    parts[part.id, default: []].insert(id)
                }
            }
        }
        var faults: [String] = []
        for node in live {
            for call in node.stage.hub.calls.ids(where: { _ in true }) {
                let people = parts.removeValue(forKey: call) ?? []
                guard let callee = node.stage.hub.calls.read(call, { $0.distantCallee }) ?? nil,
                    !people.contains(callee.identity)
                else { continue }
                faults.append("\(callee) does not know of \(call), which is on \(node.tag)")
            }
        }
        return faults + parts.map { "\($0.value) are in \($0.key), which no node has" }
    }

    /// The nodes whose media planes do not know exactly the streams of the sessions that have members there.
    private var streamFaults: [String] {
        var expected: [NodeTag: Set<StreamID>] = [:]
        for node in live {
            node.stage.hub.sessions.forEach { session in
                guard session.isRouted, !session.members.isEmpty else { return }
                for tag in [node.tag] + session.otherNodes {
                    expected[tag, default: []].formUnion(session.streams.keys)
                }
            }
        }
        return live.compactMap { node in
            let (known, needed) = (Set(node.stage.ledger.streams.keys), expected[node.tag] ?? [])
            return known == needed ? nil : "the media plane of \(node.tag) has \(known) instead of \(needed)"
        }
    }
}
