import Signaling
import TestSupport
import Testing
import Wire

/// Random events on a roulette with native and legacy clients. The invariants are checked after each event.
@Suite("Native and legacy clients together") struct LegacyModelTests {
    @Test("pairings, notifications and admissions are consistent after every event")
    func randomEvents() {
        let world = World()
        world.run(
            "both wires", events: ModelRun.events / 10, kinds: ModelRun.events < 50_000 ? [] : ["mixed pairs"],
            step: world.step, end: world.goHome)
    }

    private final class World: RandomWorld<RandomClient> {
        private var legacyGuests: [LegacyGuest] = []
        private var guests: [Guest] = []
        /// All admissions to matches, each with its match.
        private var known: Set<String> = []

        func step() {
            switch Int.random(in: 0..<20, using: &random) {
            case 0 where legacyGuests.count < 8: legacyGuests.append(stage.arriveLegacy(address: address()))
            case 1 where guests.count < 4: guests.append(stage.arrive(address: address()))
            case 2...9: legacyGuests.randomElement(using: &random)?.next()
            case 10, 11: legacyGuests.randomElement(using: &random)?.disconnectPartners()
            case 12, 13: guests.randomElement(using: &random)?.start()
            case 14: guests.randomElement(using: &random)?.next()
            case 15: guests.randomElement(using: &random)?.stop()
            case 16 where !legacyGuests.isEmpty:
                legacyGuests.remove(at: .random(in: legacyGuests.indices, using: &random))
                    .vanish(leaving: .random(using: &random))
            case 17 where !guests.isEmpty: guests.remove(at: .random(in: guests.indices, using: &random)).leave()
            default: stage.pass(milliseconds(1...8000))
            }
            for guest in guests { guest.take() }
            if let fault = judgment() { fail(fault) }
        }

        private func address() -> String { "192.0.2.\(Int.random(in: 1...200, using: &random))" }

        func goHome() {
            for legacy in legacyGuests { legacy.vanish() }
            for guest in guests { guest.leave() }
            empty()
        }

        // MARK: Invariants

        private func judgment() -> String? {
            for legacy in legacyGuests {
                if let fault = order(legacy) ?? pairing(legacy) { return fault }
            }
            let chatting = legacyGuests.count { $0.partner != nil } + guests.count { $0.match != nil }
            guard stage.hub.matchCount * 2 == chatting else {
                return "\(stage.hub.matchCount) matches, and \(chatting) people believe that they are in one"
            }
            for guest in guests {
                if let match = guest.match, let fault = mixed(match) { return fault }
            }
            return nil
        }

        /// Checks that a client has received no errors, and its own session only once.
        private func order(_ legacy: LegacyGuest) -> String? {
            for heard in legacy.take() {
                switch heard {
                case .initial, .error: return "heard \(heard)"
                case .empty, .subscribe, .disconnectPartner: break
                }
            }
            return nil
        }

        private func pairing(_ legacy: LegacyGuest) -> String? {
            guard let partner = legacy.partner else { return nil }
            guard partner.session != legacy.home.session else { return "paired with himself" }
            guard let grant = grant(partner), grant.role == .subscriber, grant.match != nil else {
                return "a partner's token is not a subscriber token of that match"
            }
            let isNew = known.insert(partner.token).inserted
            if let other = legacyGuests.first(where: { $0.home.session == partner.session }) {
                guard other.partner?.session == legacy.home.session else { return "the partner watches another" }
                if isNew { count("pairs of legacyGuests") }
                return nil
            }
            guard let other = guests.first(where: { $0.match?.publish.session == partner.session }) else {
                return "the partner is not there"
            }
            if isNew { count("mixed pairs") }
            return other.match?.subscribe.session == legacy.home.session ? nil : "the native partner watches another"
        }

        private func mixed(_ match: RouletteNotice.Matched) -> String? {
            let isLegacy = legacyGuests.contains { $0.home.session == match.subscribe.session }
            if match.textChat == isLegacy { return "text chat with a legacy client, or no text chat with a native one" }
            if !match.textChat, match.publish.session == match.subscribe.session { return "both share a session" }
            return nil
        }

        private func grant(_ admission: Admission) -> SessionGrant? {
            try? stage.project.verifySessionToken(admission.token, for: admission.session, now: stage.now)
        }
    }
}
