import Signaling
import Testing
import Wire

@Suite struct NextTests {
    private let stage = Stage()

    @Test func aNextForAnEndedMatchKeepsTheNewPartner() {
        let (ada, bob, cat) = (stage.arrive(), stage.arrive(), stage.arrive())
        ada.start()
        bob.start()
        let first = ada.match?.match
        cat.start()
        // Bob stops, and Ada is matched with Cat before her own Next arrives.
        bob.stop()
        let second = ada.match?.match
        #expect(second != first)
        #expect(second == cat.match?.match)
        #expect(ada.ask(.roulette(.next(.init(match: first))))?.type == "ok")
        #expect(ada.match?.match == second)
        #expect(cat.match?.match == second)
        #expect(ada.ask(.roulette(.next(.init(match: second))))?.type == "roulette.waiting")
    }
}
