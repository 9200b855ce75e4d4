import Wire

@testable import Confab

/// A model of what a server does beyond sessions, for a few people. It matches each person who searches with the next one, rings
/// each call at the first other person, and has one room.
struct SimulatedFeatures {
    typealias Answer = (SimulatedServer.Client, ServerMessage)

    var media = SimulatedMedia()
    private var searching: [ConnectionID] = []
    /// What those who searched last wanted.
    private var modes: [ConnectionID: ChatMode] = [:]
    private var matches: [(id: MatchID, people: [ConnectionID])] = []
    private var calls: [(id: CallID, people: [ConnectionID])] = []
    private var count: UInt64 = 0

    /// What the server sends, in order, after a request of one of its clients.
    mutating func perform(
        _ message: ClientMessage, of client: SimulatedServer.Client, re: UInt64, among clients: [SimulatedServer.Client]
    ) -> [Answer] {
        let ok = [(client, ServerMessage.ok(.init(re: re)))]
        if let answers = media.perform(message, of: client, re: re, among: clients) { return answers }
        switch message {
        case .roulette(let verb): return roulette(verb, client, re, clients)
        case .call(let verb): return call(verb, client, re, clients)
        case .presence(.appear), .presence(.set):
            var own = PresenceNotice.Own()
            own.re = re
            return [(client, .presence(.own(own)))]
        case .nearby(.watch):
            var list = NearbyNotice.List()
            list.re = re
            return [(client, .nearby(.list(list)))]
        case .contact(.list):
            var list = PeopleList()
            list.re = re
            return [(client, .contact(.list(list)))]
        case .room(.join):
            var joined = RoomNotice.Joined()
            (joined.re, joined.role, joined.name) = (re, .guest, RoomName("garden")!)
            joined.admission = Admission(session: SessionID("room")!, token: "token")
            return [(client, .room(.joined(joined)))]
        default: return ok
        }
    }

    mutating func restart() { self = SimulatedFeatures() }

    private mutating func nextID() -> UInt64 {
        count += 1
        return count
    }

    // MARK: The roulette

    private mutating func roulette(
        _ verb: RouletteVerb, _ client: SimulatedServer.Client, _ re: UInt64, _ clients: [SimulatedServer.Client]
    ) -> [Answer] {
        switch verb {
        case .start, .next:
            if case .start(let start) = verb { modes[client.id] = start.mode ?? .video }
            return part(client, .partnerNext, clients) + [(client, .roulette(.waiting(.init(re: re))))]
                + search(client, clients)
        case .stop:
            searching.removeAll { $0 == client.id }
            return part(client, .partnerLeft, clients) + [(client, .ok(.init(re: re)))]
        case .count: return [(client, .roulette(.count(.init(re: re, online: clients.count, waiting: 0))))]
        default: return [(client, .ok(.init(re: re)))]
        }
    }

    /// Ends the match of a client. The partner searches on.
    private mutating func part(
        _ client: SimulatedServer.Client, _ reason: EndReason, _ clients: [SimulatedServer.Client]
    ) -> [Answer] {
        guard let index = matches.firstIndex(where: { $0.people.contains(client.id) }) else { return [] }
        let match = matches.remove(at: index)
        return match.people.flatMap { id -> [Answer] in
            guard let person = clients.first(where: { $0.id == id }) else { return [] }
            let isOther = person !== client
            let notice = RouletteNotice.Ended(match: match.id, reason: isOther ? reason : .next)
            let ended = (person, ServerMessage.roulette(.ended(notice)))
            return [ended] + (isOther ? [(person, .roulette(.waiting(.init())))] + search(person, clients) : [])
        }
    }

    private mutating func search(_ client: SimulatedServer.Client, _ clients: [SimulatedServer.Client]) -> [Answer] {
        searching.removeAll { id in id == client.id || !clients.contains { $0.id == id } }
        guard let partner = clients.first(where: { searching.contains($0.id) }) else {
            searching.append(client.id)
            return []
        }
        searching.removeAll { $0 == partner.id }
        let match = MatchID(high: 0, low: nextID())
        matches.append((match, [client.id, partner.id]))
        var matched = RouletteNotice.Matched()
        (matched.match, matched.mode) = (match, modes[client.id] ?? .text)
        matched.publish = Admission(session: SessionID("match-\(match)")!, token: "token")
        matched.subscribe = matched.publish
        return [(client, .roulette(.matched(matched))), (partner, .roulette(.matched(matched)))]
    }

    // MARK: Calls

    private mutating func call(
        _ verb: CallVerb, _ client: SimulatedServer.Client, _ re: UInt64, _ clients: [SimulatedServer.Client]
    ) -> [Answer] {
        switch verb {
        case .start(let start):
            guard let callee = clients.first(where: { $0 !== client }) else { return refuse(client, re) }
            let id = CallID(high: 0, low: nextID())
            calls.append((id, [client.id, callee.id]))
            var (placed, incoming) = (CallNotice.Placed(), CallNotice.Incoming())
            (placed.re, placed.call, placed.expiresIn, placed.person.id) = (re, id, .seconds(45), start.person)
            (incoming.call, incoming.expiresIn, incoming.person.name) = (id, .seconds(45), "Ada")
            return [(client, .call(.placed(placed))), (callee, .call(.incoming(incoming)))]
        case .accept(let video):
            let people = people(of: video.call, clients)
            guard !people.isEmpty else { return refuse(client, re) }
            return [(client, .ok(.init(re: re)))]
                + people.map { person in
                    var accepted = CallNotice.Accepted()
                    accepted.call = video.call
                    accepted.admission = Admission(session: SessionID("call-\(video.call)")!, token: "token")
                    return (person, .call(.accepted(accepted)))
                }
        case .decline(let reference), .cancel(let reference), .end(let reference):
            let people = people(of: reference.call, clients)
            calls.removeAll { $0.id == reference.call }
            return [(client, .ok(.init(re: re)))]
                + people.map { person in
                    var ended = CallNotice.Ended()
                    (ended.call, ended.reason) = (reference.call, person === client ? .ended : .hungUp)
                    return (person, .call(.ended(ended)))
                }
        case .rejoin: return refuse(client, re)
        case .log: return [(client, .call(.log(.init(re: re, calls: [], next: nil))))]
        default: return [(client, .ok(.init(re: re)))]
        }
    }

    private func people(of call: CallID, _ clients: [SimulatedServer.Client]) -> [SimulatedServer.Client] {
        let ids = calls.first { $0.id == call }?.people ?? []
        return clients.filter { ids.contains($0.id) }
    }

    private func refuse(_ client: SimulatedServer.Client, _ re: UInt64) -> [Answer] {
        [(client, .error(.init(WireError(.notFound, "There is no such call."), re: re)))]
    }
}
