import Signaling
import TestSupport
import Testing
import Wire

@Suite("A change that could not be stored") struct StorageFailureTests {
    private let stage = Stage()

    private func fail(_ guest: Guest) { stage.handle(.storageFailed([guest.identity])) }

    @Test("closes every device of the person with 1012")
    func devices() {
        let ada = stage.arrive()
        let phone = stage.arrive(ada.identity)
        fail(ada)
        for guest in [ada, phone] {
            #expect(guest.closeCode == .serviceRestart)
            #expect(guest.refusals.map(\.code) == [.storageFailed])
            #expect(guest.refusals.first?.retryable == true)
        }
        #expect(stage.hub.clientCount == 0)
        #expect(stage.hub.personCount == 0)
    }

    @Test("ends the person's chat; the partner is notified and continues to search")
    func chat() {
        let (ada, bob, _) = stage.pair()
        fail(ada)
        #expect(bob.takeEnds() == [.partnerLeft])
        #expect(stage.hub.clientCount == 1)
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("leaves nothing to resume, because the person's state in memory is discarded")
    func noResume() {
        let ada = stage.arrive()
        ada.start()
        fail(ada)
        ada.resume()
        #expect(ada.welcome?.resumed == false)
        #expect(stage.hub.waitingCount == 0)
    }

    @Test("has no effect on a person who is not in memory or on a closed socket")
    func absent() {
        let ada = stage.arrive()
        ada.leave()
        stage.handle(.storageFailed([stage.identity(), ada.identity]))
        #expect(stage.hub.clientCount == 0)
    }

    @Test("leaves no page of people nearby behind")
    func watches() {
        let ada = stage.nearby("Ada")
        ada.watch()
        #expect(stage.hub.watchCount == 1)
        fail(ada)
        #expect(stage.hub.watchCount == 0)
    }
}
