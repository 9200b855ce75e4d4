import Signaling
import TestSupport
import Testing
import Wire

/// Random events in routed sessions, relayed sessions that fall back, and matches. After each event, the state of the
/// media plane is checked. The stage also checks that each command is valid after the previous ones.
@Suite struct MediaModelTests {
    @Test func theMediaPlaneForgetsMembersWhoLeft() {
        let world = MediaWorld()
        world.run(
            "media", events: ModelRun.events / 10,
            kinds: ModelRun.events < 50_000 ? [] : ["publish", "unpublish", "subscribe", "unsubscribe", "leave"],
            step: world.step, end: world.goHome)
    }
}

/// A few people who do random things in a few sessions.
private final class MediaWorld: RandomWorld<RandomClient> {
    private var guests: [Guest] = []
    /// Two routed sessions, a relayed one, and one that must stay relayed.
    private var rooms: [SessionID] = []
    private var relayedOnly: Set<SessionID> = []
    private var matchSessions: Set<SessionID> = []
    private var streams: [(session: SessionID, stream: StreamID, publisher: Guest)] = []

    init() {
        super.init {
            $0.routesMedia = true
            $0.rouletteMediaMode = .routed
            // The limits are raised, because this test is not about limits.
            $0.verbs = .init(perSecond: 1000, burst: 1000)
        }
        rooms = (0..<4).map(newRoom)
    }

    private func newRoom(_ kind: Int) -> SessionID {
        let room = stage.room(kind < 2 ? .routed : .relayed, relayedOnly: kind == 3)
        if kind == 3 { relayedOnly.insert(room) }
        return room
    }

    func step() {
        // A session falls back only once, so create new ones now and then.
        if chance(3) {
            let kind = Int.random(in: rooms.indices, using: &random)
            rooms[kind] = newRoom(kind)
        }
        if guests.count < 6, chance(guests.count < 3 ? 80 : 5) {
            guests.append(stage.arrive())
        } else if let guest = guests.randomElement(using: &random) {
            act(guest)
        }
        for command in stage.media { count(command) }
        for guest in guests {
            for case .session(.mediaModeChanged) in guest.take() { count("fallbacks") }
            if guest.closeCode != nil { guest.arrive() }
        }
        streams.removeAll { $0.publisher.socket != nil && !$0.publisher.places.contains($0.session) }
        if streams.count > 40 { streams.removeFirst() }
        judge()
    }

    private func act(_ guest: Guest) {
        guard guest.socket != nil else { return chance(50) ? guest.resume() : pass(1...20_000) }
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<12: join(guest)
        case 12..<26: publish(guest)
        case 26..<50: subscribe(guest)
        case 50..<56: withStream(guest) { guest.unsubscribe($0, $1) }
        case 56..<60: withStream(guest) { guest.unpublish($0, $1) }
        case 60..<68: withStream(guest) { update(guest, $0, $1) }
        case 68..<70: withStream(guest) { guest.ask(.session(.forceUnpublish(.init(session: $0, stream: $1)))) }
        case 70..<72: mute(guest)
        case 72: disconnectMember(guest)
        case 73..<76:
            if let session = place(of: guest) { guest.ask(.session(.leave(.init(session: session)))) }
        case 76..<79: guest.say(.media(.offer(.init(side: chance(50) ? .send : .receive, sdp: "v"))))
        case 79..<85: _ = guest.isMatched ? guest.next() : guest.start()
        case 85: guest.stop()
        case 86..<88: guest.drop()
        case 88:
            guest.leave()
            guests.removeAll { $0 == guest }
        default: pass(chance(80) ? 1...3000 : 3000...40_000)
        }
    }

    private func pass(_ range: ClosedRange<Int>) { stage.pass(milliseconds(range)) }

    private func mids() -> MediaMids {
        MediaMids(audio: chance(60) ? "\(Int.random(in: 0...3, using: &random))" : nil, video: chance(60) ? "1" : nil)
    }

    private func place(of guest: Guest) -> SessionID? {
        guest.places.sorted { $0.text < $1.text }.randomElement(using: &random)
    }

    private func join(_ guest: Guest) {
        if let match = guest.match, chance(70) {
            matchSessions.insert(match.publish.session)
            guest.join(match.publish.session, token: match.publish.token)
        } else if let room = rooms.randomElement(using: &random), !guest.places.contains(room) {
            guest.enter(room, chance(30) ? .moderator : .publisher, on: stage)
        }
    }

    private func publish(_ guest: Guest) {
        guard let session = place(of: guest), let stream = guest.publish(session, mids: mids()) else { return }
        streams.append((session, stream.id, guest))
        if matchSessions.contains(session) { count("match streams") }
    }

    private func subscribe(_ guest: Guest) {
        let here = streams.filter { guest.places.contains($0.session) }
        guard let chosen = here.randomElement(using: &random) else { return }
        guest.subscribe(chosen.session, chosen.stream, video: chance(80), mids: mids())
        if chance(30) { guest.connected(chosen.session, chosen.publisher, chance(80)) }
    }

    /// Returns a stream, mostly the guest's own. Another guest's stream may be gone, or this guest may not be permitted
    /// to change it.
    private func withStream(_ guest: Guest, _ verb: (SessionID, StreamID) -> Void) {
        let wanted = chance(80) ? streams.filter { $0.publisher == guest } : streams
        if let chosen = wanted.randomElement(using: &random) { verb(chosen.session, chosen.stream) }
    }

    private func update(_ guest: Guest, _ session: SessionID, _ stream: StreamID) {
        let isAudible = Bool.random(using: &random)
        guest.update(session, stream, audio: isAudible, mids: chance(50) ? mids() : MediaMids())
    }

    private func mute(_ guest: Guest) {
        guard let session = place(of: guest) else { return }
        var verb = SessionVerb.ForceMute()
        (verb.session, verb.active) = (session, chance(60))
        verb.stream = chance(50) ? streams.randomElement(using: &random)?.stream : nil
        guest.ask(.session(.forceMute(verb)))
    }

    private func disconnectMember(_ guest: Guest) {
        guard let session = place(of: guest), let other = guests.randomElement(using: &random) else { return }
        guest.ask(.session(.forceDisconnect(.init(session: session, connection: other.connection))))
    }

    private func count(_ command: MediaCommand) {
        let name =
            switch command {
            case .offer: "offers"
            case .close: "closes"
            case .estimate: "estimates"
            case .leave: "leave"
            case .publish: "publish"
            case .update: "update"
            case .unpublish: "unpublish"
            case .subscribe: "subscribe"
            case .unsubscribe: "unsubscribe"
            }
        count(name)
    }

    // MARK: Invariants

    private func judge() {
        let known = Dictionary(guests.map { ($0.connection, $0) }, uniquingKeysWith: { first, _ in first })
        for (stream, routed) in stage.ledger.streams {
            if relayedOnly.contains(routed.session) { return fail("a relayed-only session is routed") }
            for client in [routed.publisher] + routed.subscribers.keys {
                guard let guest = known[client] else {
                    return fail("\(stream) still exists although its subscriber left")
                }
                // A disconnected guest does not know yet that it was removed.
                if guest.socket != nil, !guest.places.contains(routed.session) {
                    return fail("\(stream) still exists for a client that is not in its session")
                }
            }
        }
    }

    func goHome() {
        for guest in guests where guest.socket != nil { guest.leave() }
        empty()
    }
}
