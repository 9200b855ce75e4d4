import Signaling
import TestSupport
import Testing
import Wire

@Suite struct BanTests {
    private let stage = Stage()

    private func ban(_ guest: Guest, for duration: Duration? = nil) -> Ban {
        Ban(
            subject: .identity(guest.identity), reason: "rude", createdAt: stage.now,
            expiresAt: duration.map { stage.now + $0 }
        )
    }

    @Test func aBanClosesEveryDeviceAndThePartnerContinues() {
        let (ada, bob, _) = stage.pair()
        let tab = stage.arrive(bob.identity)
        stage.handle(.banned(ban(bob, for: .seconds(3 * 24 * 3600))))
        #expect(bob.takeEnds() == [.banned])
        for guest in [bob, tab] {
            #expect(guest.closeCode == .forbidden)
            #expect(guest.refusals.map(\.code) == [.banned])
            #expect(guest.refusals.first?.message.contains("3 days") == true)
            #expect(guest.refusals.first?.retryAfter == .seconds(3 * 24 * 3600))
        }
        #expect(ada.takeEnds() == [.partnerLeft])
        #expect(stage.hub.clientCount == 1)
        #expect(stage.hub.waitingCount == 1)
    }

    @Test func aPermanentBanHasNoRetryTime() {
        let ada = stage.arrive()
        ada.start()
        stage.handle(.banned(ban(ada)))
        #expect(ada.refusals.first?.retryable == false)
        #expect(stage.hub.waitingCount == 0)
    }

    @Test func aBanEndsADroppedConnectionToo() {
        let (_, bob, _) = stage.pair()
        bob.drop()
        stage.handle(.banned(ban(bob)))
        bob.resume()
        #expect(bob.welcome?.resumed == false)
        #expect(bob.start()?.errorCode == .banned, "the ban applies as long as the person is in memory")
    }

    @Test func aStoredBanHoldsUntilItsEnd() {
        let until = stage.now + .seconds(60)
        let ban = Ban(subject: .identity(stage.identity()), reason: "", createdAt: stage.now, expiresAt: until)
        let ada = stage.arrive(record: PersonRecord(ban: ban))
        stage.pass(.milliseconds(59_999))
        #expect(ada.start()?.errorCode == .banned)
        stage.pass(.milliseconds(1))
        #expect(ada.start()?.type == "roulette.waiting")
    }

    @Test func anExpiredBanReplacesTheEarlierOne() {
        let ada = stage.arrive(record: PersonRecord(ban: Ban(subject: .address(""), reason: "", createdAt: stage.now)))
        #expect(ada.start()?.errorCode == .banned)
        stage.handle(.banned(ban(ada, for: .zero)))
        #expect(ada.closeCode == nil)
        #expect(ada.start()?.type == "roulette.waiting")
    }

    @Test func banningAnOfflinePersonSendsNothing() {
        let ada = stage.arrive()
        ada.start()
        stage.handle(.banned(Ban(subject: .identity(stage.identity()), reason: "", createdAt: stage.now)))
        stage.handle(.banned(Ban(subject: .address("203.0.113.7"), reason: "", createdAt: stage.now)))
        #expect(stage.effects == [])
        #expect(ada.closeCode == nil)
    }

    @Test func aBanOfALinkedDeviceClosesThatDeviceAndNoOther() throws {
        let (ada, phone) = (stage.arrive(), stage.arrive())
        ada.appear("Ada")
        phone.useLink(try #require(ada.linkCode()), label: "Phone")
        phone.arrive()
        // After this time, the person that the phone was before is no longer in memory.
        stage.pass(stage.rules.personIdle)
        let tab = stage.arrive(phone.identity)
        #expect(phone.person == ada.identity && tab.person == ada.identity)
        tab.drop()
        stage.handle(.banned(ban(phone, for: .zero)))
        #expect(phone.closeCode == nil, "this ban has expired")
        stage.handle(.banned(ban(phone)))
        #expect(phone.closeCode == .forbidden)
        #expect(phone.refusals.last?.code == .banned)
        #expect(ada.closeCode == nil)
        tab.resume()
        #expect(tab.welcome?.resumed == false, "the dropped connection ended too")
    }

    @Test func anOperatorCanCloseOneSocket() throws {
        let (ada, bob, _) = stage.pair()
        stage.handle(.expel(try #require(bob.socket), .banned(ban(bob), now: stage.now), .forbidden))
        #expect(bob.closeCode == .forbidden)
        #expect(ada.takeEnds() == [.partnerLeft])
    }
}
