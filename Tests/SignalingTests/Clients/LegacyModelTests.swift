import Signaling
import TestSupport
import Testing
import Wire

/// Random events on a roulette with native and legacy clients. The invariants are checked after each event.
@Suite("Native and legacy clients together") struct LegacyModelTests {
    @Test("pairings, notifications and admissions are consistent after every event")
    func randomEvents() {
        guard var world = ModelRun.run("both wires", World.init) else { return }
        #expect(world.figures["mixed pairs", default: 0] > 0)
        world.empty()
        #expect(world.stage.hub.clientCount == 0)
        #expect(world.stage.hub.matchCount == 0)
        #expect(world.stage.hub.waitingCount == 0)
    }

    private struct World: RandomWorld {
        let stage: Stage
        private var random: SeededGenerator
        private var legacyGuests: [LegacyGuest] = []
        private var guests: [Guest] = []
        private(set) var figures: [String: Int] = [:]
        /// All admissions to matches, each with its match.
        private var known: Set<String> = []

        init(seed: UInt64) {
            stage = Stage(seed: seed)
            random = SeededGenerator(seed: ~seed)
        }

        mutating func step() {
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
            default: stage.pass(.milliseconds(.random(in: 1...8000, using: &random)))
            }
            for guest in guests { guest.take() }
        }

        private mutating func address() -> String { "192.0.2.\(Int.random(in: 1...200, using: &random))" }

        mutating func empty() {
            for legacy in legacyGuests { legacy.vanish() }
            for guest in guests { guest.leave() }
            stage.pass(.seconds(3600))
        }

        // MARK: Invariants

        mutating func fault() -> String? {
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

        private mutating func pairing(_ legacy: LegacyGuest) -> String? {
            guard let partner = legacy.partner else { return nil }
            guard partner.session != legacy.home.session else { return "paired with himself" }
            guard let grant = grant(partner), grant.role == .subscriber, grant.match != nil else {
                return "a partner's token is not a subscriber token of that match"
            }
            let isNew = known.insert(partner.token).inserted
            if let other = legacyGuests.first(where: { $0.home.session == partner.session }) {
                guard other.partner?.session == legacy.home.session else { return "the partner watches another" }
                if isNew { figures["pairs of legacyGuests", default: 0] += 1 }
                return nil
            }
            guard let other = guests.first(where: { $0.match?.publish.session == partner.session }) else {
                return "the partner is not there"
            }
            if isNew { figures["mixed pairs", default: 0] += 1 }
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
