import Signaling
import TestSupport
import Testing
import Wire

@Suite("A change that could not be stored") struct StorageFailureTests {
    private let stage = Stage()

    private func fail(_ guest: Guest, re: UInt64? = nil) {
        stage.handle(.storageFailed([guest.identity], socket: guest.socket, re: re))
    }

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

    @Test("ends the person's chat; the partner is told and searches on")
    func chat() {
        let (ada, bob, _) = stage.pair()
        fail(ada)
        #expect(bob.takeEnds() == [.partnerLeft])
        #expect(stage.hub.clientCount == 1)
        #expect(stage.hub.waitingCount == 1)
    }

    @Test("cannot be resumed: what memory knew is gone, and storage is asked")
    func noResume() {
        let ada = stage.arrive()
        ada.start()
        fail(ada)
        ada.resume()
        #expect(ada.welcome?.resumed == false)
        #expect(stage.hub.waitingCount == 0)
    }

    @Test("concerns the person whose request it was, if the change names nobody")
    func requester() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        stage.handle(.storageFailed([], socket: ada.socket, re: nil))
        #expect(ada.closeCode == .serviceRestart)
        #expect(bob.closeCode == nil)
    }

    @Test("changes nothing for a person who is not in memory, nor for a socket that has closed")
    func absent() {
        let ada = stage.arrive()
        let socket = ada.socket
        ada.leave()
        stage.handle(.storageFailed([stage.identity()], socket: socket, re: 1))
        #expect(stage.hub.clientCount == 0)
    }
}
