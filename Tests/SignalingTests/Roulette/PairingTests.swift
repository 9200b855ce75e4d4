import Signaling
import TestSupport
import Testing
import Wire

/// Tests who is paired with whom.
@Suite struct PairingTests {
    private let stage = Stage()

    /// Returns people who can wait at the same time, because they have blocked each other.
    private func strangers(_ names: [String], interests: [String] = []) -> [Guest] {
        let people = names.map { _ in stage.identity() }
        return zip(names, people).map { name, identity in
            let guest = stage.arrive(identity, name: name, record: PersonRecord(blocked: people))
            guest.start(interests)
            return guest
        }
    }

    @Test func bothReceiveMatchingAnnouncements() throws {
        let (ada, bob) = (stage.arrive(), stage.arrive(name: "Bob"))
        ada.start(["Chess", "jazz"], name: "Ada")
        bob.start(["tea", "JAZZ"])
        let (hers, his) = (try #require(ada.match), try #require(bob.match))
        #expect(hers.match == his.match)
        #expect(hers.partner == PartnerInfo(name: "Bob", interests: ["jazz"]))
        #expect(his.partner == PartnerInfo(name: "Ada", interests: ["jazz"]))
        #expect((hers.mode, hers.textChat) == (.video, true))
        #expect(hers.publish == hers.subscribe, "two native clients share one session")
        #expect(hers.publish.session == his.publish.session)
        #expect(hers.publish.token != his.publish.token)
        #expect(stage.project.mediaMode(of: hers.publish.session) == .relayed)
    }

    @Test func aNameFromATokenCannotBeChanged() {
        let user = Guest(on: stage, as: stage.identity(), name: "the page's")
        user.vouched = "Ada"
        user.arrive()
        user.start(name: "Another name")
        let bob = stage.arrive(name: "Bob")
        bob.start(name: "Bobby")
        #expect(bob.partner == "Ada")
        #expect(user.partner == "Bobby")
    }

    @Test func theOldestEligibleWaiterIsPairedFirst() {
        let waiting = strangers(["first", "second", "third"])
        for name in ["first", "second", "third"] {
            let guest = stage.arrive()
            guest.start()
            #expect(guest.partner == name)
        }
        #expect(waiting.areMatched)
    }

    @Test func theOldestWaiterIsSkippedOnlyIfNotEligible() {
        let waiting = strangers(["first", "second"])
        let picky = stage.arrive(record: PersonRecord(blocked: [waiting[0].identity]))
        picky.start()
        #expect(picky.partner == "second")
        let open = stage.arrive()
        open.start()
        #expect(open.partner == "first")
    }

    @Test func videoAndTextAreNeverPaired() {
        let (ada, bob) = (stage.arrive(), stage.arrive(name: "Bob"))
        ada.start(["chess"], mode: .video)
        bob.start(["chess"], mode: .text)
        stage.pass(.seconds(60))
        #expect(!ada.isMatched)
        let eve = stage.arrive()
        eve.start(mode: .text)
        #expect(eve.partner == "Bob")
        #expect(eve.match?.mode == .text)
    }

    // MARK: Interests

    @Test func onlySharedInterestsForFiveSecondsThenAnyone() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.start(["chess"])
        bob.start(["jazz"])
        stage.pass(.milliseconds(4999))
        #expect(!ada.isMatched)
        stage.pass(.milliseconds(1))
        #expect(ada.isMatched)
        #expect(ada.match?.partner.interests == [])
    }

    @Test func peopleWithoutInterestsWaitForThoseWithSome() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.start(["chess"])
        stage.pass(.seconds(1))
        bob.start()
        stage.pass(.milliseconds(3999))
        #expect(!bob.isMatched)
        stage.pass(.milliseconds(1))
        #expect(bob.isMatched, "the two are matched after the other person's five seconds")
    }

    @Test func bothHaveToWaitFiveSeconds() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.start(["chess"])
        stage.pass(.seconds(4))
        bob.start(["jazz"])
        stage.pass(.milliseconds(4999))
        #expect(!ada.isMatched)
        stage.pass(.milliseconds(1))
        #expect(ada.isMatched)
    }

    @Test func sharedInterestsPairImmediatelyEvenBehindOthers() {
        _ = strangers(["jazz one", "jazz two"], interests: ["jazz"])
        let chess = strangers(["chess"], interests: ["chess"])
        let ada = stage.arrive()
        ada.start(["tea", "chess"])
        #expect(ada.partner == "chess")
        #expect(chess[0].isMatched)
    }

    @Test func afterFiveSecondsTheOldestIsPairedFirst() {
        let people = (0..<3).map { _ in stage.identity() }
        let record = PersonRecord(blocked: people)
        let names = ["had interests", "had none", "late"]
        for (index, name) in names.enumerated() {
            stage.arrive(people[index], name: name, record: record).start(index == 0 ? ["chess"] : [])
            stage.pass(.seconds(1))
        }
        stage.pass(.seconds(10))
        for name in names {
            let guest = stage.arrive()
            guest.start()
            #expect(guest.partner == name)
        }
    }

    @Test(arguments: [
        ("chess", " CHESS "), ("café", "cafe\u{301}"), ("Ödön", "ÖDÖN"), ("board  games", "Board\tGames"),
        ("ДОМ", "дом"),
    ])
    func interestsAreComparedAsPeopleMeanThem(_ one: String, _ other: String) {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.start([one])
        bob.start([other])
        #expect(ada.isMatched)
        #expect(ada.match?.partner.interests?.count == 1)
    }

    @Test func interestsAreLimitedToTenOfFiftyCharacters() {
        let ada = stage.arrive()
        #expect(ada.start((0..<11).map { "interest \($0)" })?.errorCode == .invalidInterests)
        #expect(ada.start([String(repeating: "é", count: 51)])?.errorCode == .invalidInterests)
        #expect(stage.hub.waitingCount == 0)
        #expect(ada.start((0..<10).map { "interest \($0)" })?.type == "roulette.waiting")
        #expect(ada.start([String(repeating: "é", count: 50)])?.type == "roulette.waiting")
        #expect(
            ada.start(Array(repeating: "same", count: 20) + [" ", ""])?.type == "roulette.waiting",
            "duplicates do not count")
    }

    // MARK: Former partners

    @Test func lonelyFormerPartnersArePairedAfterTenSeconds() {
        let (ada, bob, first) = stage.pair()
        ada.next()
        stage.pass(.milliseconds(9999))
        #expect(!ada.isMatched)
        #expect(!bob.isMatched)
        stage.pass(.milliseconds(1))
        #expect(ada.isMatched)
        #expect(ada.match?.match != first.match)
        #expect(ada.match?.publish.session != first.publish.session)
    }

    @Test func theTenSecondsStartWithTheLaterWaiter() {
        let (ada, bob, _) = stage.pair()
        ada.stop()
        stage.pass(.seconds(8))
        ada.start()
        stage.pass(.milliseconds(9999))
        #expect(!bob.isMatched)
        stage.pass(.milliseconds(1))
        #expect(bob.isMatched)
    }

    @Test func otherEligibleWaitersArePreferredToFormerPartners() {
        let ada = stage.arrive(name: "Ada")
        let bob = stage.arrive(name: "Bob")
        _ = stage.pair(ada, bob)
        stage.pass(.seconds(6))
        bob.stop()
        let eve = stage.arrive(record: PersonRecord(blocked: [ada.identity]))
        eve.start()
        stage.pass(.seconds(60))
        #expect(!ada.isMatched && !eve.isMatched)
        // Both are waiting. Ada, who is Bob's former partner, has been waiting longer.
        bob.start()
        #expect(bob.isMatched)
        #expect(eve.isMatched)
        #expect(!ada.isMatched)
    }

    @Test func anotherChatEndsBeingFormerPartners() {
        let (ada, bob, _) = stage.pair()
        ada.next()
        let eve = stage.arrive()
        eve.start()
        let dan = stage.arrive()
        dan.start()
        #expect([ada, bob, eve, dan].areMatched)
        stage.pass(.seconds(6))
        ada.next()
        stage.pass(.seconds(6))
        bob.next()
        // Everyone may be paired immediately, except the members of two pairs of former partners with each other.
        #expect([ada, bob, eve, dan].matchedCount >= 2)
    }

    // MARK: Probing

    @Test func anAttemptProbesAFewCandidatesAndContinuesLater() {
        let stage = Stage { $0.candidatesPerAttempt = 4 }
        let people = (0..<12).map { _ in stage.identity() }
        for (index, identity) in people.enumerated() {
            stage.arrive(identity, name: "\(index)", record: PersonRecord(blocked: people)).start()
        }
        let picky = stage.arrive(record: PersonRecord(blocked: Array(people.prefix(10))))
        picky.start()
        #expect(!picky.isMatched)
        stage.pass(.milliseconds(1999))
        #expect(!picky.isMatched, "eight candidates were probed so far")
        stage.pass(.milliseconds(1))
        #expect(picky.partner == "10")
    }

    @Test func anEntryMovedDuringAScanIsStillFound() {
        let stage = Stage { $0.candidatesPerAttempt = 4 }
        let people = (0..<6).map { _ in stage.identity() }
        let waiting = people.enumerated().map { index, identity in
            stage.arrive(identity, name: "\(index)", record: PersonRecord(blocked: people))
        }
        for guest in waiting { guest.start() }
        let picky = stage.arrive(record: PersonRecord(blocked: people))
        picky.start()
        stage.pass(.milliseconds(500))
        // Another person arrives in the middle of the scan and is paired with the one who is scanning.
        let ada = stage.arrive(record: PersonRecord(blocked: people))
        ada.start()
        stage.pass(.seconds(3))
        #expect(picky.isMatched)
        #expect(ada.isMatched)
    }
}
