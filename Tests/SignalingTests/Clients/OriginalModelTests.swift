import Signaling
import TestSupport
import Testing
import Wire

/// Random events on a roulette that speaks both wires at once, with what must always hold asserted after each.
@Suite("Both wires at once") struct OriginalModelTests {
    @Test("who is paired, told and let in is consistent after every event")
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
        private var originals: [Original] = []
        private var guests: [Guest] = []
        private(set) var figures: [String: Int] = [:]
        /// Every admission of a pairing, and the match it is bound to.
        private var known: Set<String> = []

        init(seed: UInt64) {
            stage = Stage(seed: seed)
            random = SeededGenerator(seed: ~seed)
        }

        mutating func step() {
            switch Int.random(in: 0..<20, using: &random) {
            case 0 where originals.count < 8: originals.append(stage.arriveOriginal(address: address()))
            case 1 where guests.count < 4: guests.append(stage.arrive(address: address()))
            case 2...9: originals.randomElement(using: &random)?.next()
            case 10, 11: originals.randomElement(using: &random)?.disconnectPartners()
            case 12, 13: guests.randomElement(using: &random)?.start()
            case 14: guests.randomElement(using: &random)?.next()
            case 15: guests.randomElement(using: &random)?.stop()
            case 16 where !originals.isEmpty:
                originals.remove(at: .random(in: originals.indices, using: &random))
                    .vanish(leaving: .random(using: &random))
            case 17 where !guests.isEmpty: guests.remove(at: .random(in: guests.indices, using: &random)).leave()
            default: stage.pass(.milliseconds(.random(in: 1...8000, using: &random)))
            }
            for guest in guests { guest.take() }
        }

        private mutating func address() -> String { "192.0.2.\(Int.random(in: 1...200, using: &random))" }

        mutating func empty() {
            for original in originals { original.vanish() }
            for guest in guests { guest.leave() }
            stage.pass(.seconds(3600))
        }

        // MARK: What must hold

        mutating func fault() -> String? {
            for original in originals {
                if let fault = order(original) ?? pairing(original) { return fault }
            }
            let chatting = originals.count { $0.partner != nil } + guests.count { $0.match != nil }
            guard stage.hub.matchCount * 2 == chatting else {
                return "\(stage.hub.matchCount) matches, and \(chatting) people believe to be in one"
            }
            for guest in guests {
                if let match = guest.match, let fault = mixed(match) { return fault }
            }
            return nil
        }

        /// Nobody hears a refusal, nor his own session again.
        private func order(_ original: Original) -> String? {
            for heard in original.take() {
                switch heard {
                case .initial, .error: return "heard \(heard)"
                case .empty, .subscribe, .disconnectPartner: break
                }
            }
            return nil
        }

        private mutating func pairing(_ original: Original) -> String? {
            guard let partner = original.partner else { return nil }
            guard partner.session != original.home.session else { return "paired with himself" }
            guard let grant = grant(partner), grant.role == .subscriber, grant.match != nil else {
                return "a partner's token is not a watcher's of that match"
            }
            let isNew = known.insert(partner.token).inserted
            if let other = originals.first(where: { $0.home.session == partner.session }) {
                guard other.partner?.session == original.home.session else { return "the partner watches another" }
                if isNew { figures["pairs of originals", default: 0] += 1 }
                return nil
            }
            guard let other = guests.first(where: { $0.match?.publish.session == partner.session }) else {
                return "the partner is not there"
            }
            if isNew { figures["mixed pairs", default: 0] += 1 }
            return other.match?.subscribe.session == original.home.session ? nil : "the native partner watches another"
        }

        private func mixed(_ match: RouletteNotice.Matched) -> String? {
            let isOriginal = originals.contains { $0.home.session == match.subscribe.session }
            if match.textChat == isOriginal { return "text chat with an original, or none with a native" }
            if !match.textChat, match.publish.session == match.subscribe.session { return "one session on two wires" }
            return nil
        }

        private func grant(_ admission: Admission) -> SessionGrant? {
            try? stage.project.verifySessionToken(admission.token, for: admission.session, now: stage.now)
        }
    }
}
