import Signaling
import TestSupport
import Testing
import Wire

/// Tests the rules for one person with several tabs, and blocks.
@Suite struct PeopleTests {
    private let stage = Stage { ($0.entriesPerAddress, $0.maxBlocks) = (3, 3) }

    // MARK: Tabs

    @Test func twoTabsOfOnePersonAreNeverPaired() {
        let identity = stage.identity()
        let (one, two) = (stage.arrive(identity), stage.arrive(identity))
        one.start()
        #expect(two.start()?.errorCode == .elsewhere)
        stage.pass(.seconds(60))
        #expect(!one.isMatched)
        #expect(stage.hub.waitingCount == 1)
        let ada = stage.arrive()
        ada.start()
        #expect(one.isMatched)
        #expect(two.start()?.errorCode == .elsewhere, "the other tab cannot start a second chat")
        #expect(two.next()?.errorCode == .notMatched)
        #expect(two.stop()?.type == "ok")
        #expect(one.isMatched, "the other tab cannot stop the chat")
        #expect(stage.hub.matchCount == 1)
    }

    @Test func anotherTabMayStartAfterTheFirstStops() {
        let identity = stage.identity()
        let (one, two) = (stage.arrive(identity), stage.arrive(identity))
        one.start()
        one.stop()
        #expect(two.start()?.type == "roulette.waiting")
        #expect(one.start()?.errorCode == .elsewhere)
        two.leave()
        #expect(one.start()?.type == "roulette.waiting")
    }

    @Test func aDroppedTabYieldsToAConnectedOne() {
        let identity = stage.identity()
        let (one, two) = (stage.arrive(identity), stage.arrive(identity))
        let (_, ada, _) = stage.pair(one)
        one.drop()
        ada.take()
        #expect(two.start()?.type == "roulette.waiting")
        #expect(ada.takeEnds() == [.partnerLeft])
        one.resume()
        #expect(one.welcome?.state.roulette == Snapshot.Roulette(), "the first tab is notified that it is idle")
        #expect(one.next()?.errorCode == .notMatched)
        #expect(stage.hub.waitingCount == 2)
    }

    @Test func closingOneTabDoesNotEndTheChatOfAnother() {
        let identity = stage.identity()
        let (one, two) = (stage.arrive(identity), stage.arrive(identity))
        _ = stage.pair(one)
        two.leave()
        #expect(one.isMatched)
        #expect(one.takeEnds() == [])
    }

    // MARK: Dropping while waiting

    @Test func aDroppedWaiterReentersAtTheEndOfTheQueue() {
        let people = (0..<2).map { _ in stage.identity() }
        let waiting = people.map {
            stage.arrive($0, name: $0 == people[0] ? "first" : "second", record: PersonRecord(blocked: people))
        }
        for guest in waiting { guest.start() }
        waiting[0].drop()
        #expect(stage.hub.waitingCount == 1)
        waiting[0].take()
        waiting[0].resume()
        #expect(waiting[0].take() == [.roulette(.waiting(.init()))])
        let ada = stage.arrive()
        ada.start()
        #expect(ada.partner == "second")
        let bob = stage.arrive()
        bob.start()
        #expect(bob.partner == "first")
    }

    @Test func droppedPeopleAreNotPaired() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.start()
        ada.drop()
        bob.start()
        #expect(!bob.isMatched)
        ada.resume()
        #expect(bob.isMatched)
    }

    @Test func aDroppedPersonWhoseMatchEndsWaitsForTheReturn() {
        let (ada, bob, _) = stage.pair()
        bob.drop()
        ada.next()
        let eve = stage.arrive(record: PersonRecord(blocked: [ada.identity]))
        eve.start()
        #expect(!eve.isMatched)
        bob.resume()
        #expect(bob.isMatched)
        #expect(eve.isMatched)
    }

    @Test func onlyNewInterestsMoveAWaiterToTheEnd() {
        let people = (0..<2).map { _ in stage.identity() }
        let names = ["first", "second"]
        let waiting = zip(names, people).map { stage.arrive($1, name: $0, record: PersonRecord(blocked: people)) }
        for guest in waiting { guest.start() }
        #expect(waiting[0].start()?.type == "roulette.waiting")
        let ada = stage.arrive()
        ada.start()
        #expect(ada.partner == "first")
        waiting[1].start(["chess"])
        stage.pass(.seconds(1))
        #expect(stage.hub.waitingCount == 1)
    }

    // MARK: Addresses

    @Test func placesInTheQueueAreLimitedByAddress() {
        let people = (0..<5).map { _ in stage.identity() }
        let record = PersonRecord(blocked: people)
        let guests = people.map { stage.arrive($0, address: "203.0.113.7", record: record) }
        for guest in guests.prefix(3) { guest.start() }
        guests[3].say(.roulette(.start(.init())))
        #expect(guests[3].take().last?.errorCode == .queueFull)
        #expect(stage.hub.waitingCount == 3)
        let elsewhere = stage.arrive(people[4], address: "203.0.113.8", record: record)
        elsewhere.start()
        #expect(stage.hub.waitingCount == 4, "another address has its own places")
        guests[0].stop()
        guests[3].start()
        #expect(stage.hub.waitingCount == 4)
        guests[1].leave()
        guests[2].drop()
        #expect(stage.hub.waitingCount == 2)
        elsewhere.leave()
        stage.arrive(address: "203.0.113.7").start()
        #expect(guests[3].isMatched, "a paired person frees a place in the queue")
    }

    // MARK: Blocks

    @Test func blockedPeopleAreNeverPairedAgain() {
        let (ada, bob, _) = stage.pair()
        let seq = ada.say(.roulette(.block(.init(match: nil))))
        let heard = ada.take()
        #expect(heard.first == .ok(ServerMessage.OK(re: seq)))
        #expect(heard.map(\.type) == ["ok", "roulette.ended", "roulette.waiting"])
        #expect(bob.takeEnds() == [.partnerNext], "the reason is not revealed")
        stage.pass(.seconds(120))
        #expect(!ada.isMatched && !bob.isMatched)
        bob.stop()
        bob.start()
        stage.pass(.seconds(120))
        #expect(!ada.isMatched && !bob.isMatched)
    }

    @Test func aBlockHoldsAfterARestart() {
        let (ada, bob) = (stage.identity(), stage.identity())
        let guests = [stage.arrive(ada, record: PersonRecord(blocked: [bob])), stage.arrive(bob)]
        for guest in guests { guest.start() }
        stage.pass(.seconds(60))
        #expect(!guests[0].isMatched)
    }

    @Test func theLastPartnerCanBeBlockedForAMinute() {
        let (ada, bob, matched) = stage.pair()
        bob.next()
        ada.take()
        stage.pass(.seconds(9))
        #expect(ada.block(matched.match)?.type == "ok")
        stage.pass(.seconds(60))
        #expect(!ada.isMatched, "the block applies to people who are already waiting")
        #expect(ada.block(matched.match)?.errorCode == .notMatched)
    }

    @Test func blockingTheLastPartnerKeepsTheCurrentChat() {
        let (ada, bob, first) = stage.pair()
        bob.stop()
        let eve = stage.arrive()
        eve.start()
        #expect(ada.isMatched)
        #expect(ada.block(first.match)?.type == "ok")
        #expect(ada.isMatched)
        #expect(ada.block(MatchID(high: 1, low: 1))?.errorCode == .notMatched)
    }

    @Test func blockingByAnEarlierChatEndsTheCurrentOneToo() {
        let (ada, bob, first) = stage.pair()
        bob.next()
        stage.pass(.seconds(10))
        #expect(ada.isMatched && bob.isMatched)
        ada.take()
        ada.block(first.match)
        #expect(ada.takeEnds() == [.blocked])
        #expect(!bob.isMatched)
    }

    @Test func blocksAreLimitedAndTheOldestIsDropped() {
        let old = (0..<3).map { _ in stage.identity() }
        let ada = stage.arrive(record: PersonRecord(blocked: old))
        let (_, bob, _) = stage.pair(ada)
        ada.block()
        bob.leave()
        stage.arrive(old[0]).start()
        #expect(ada.isMatched)
        ada.stop()
        ada.start()
        stage.arrive(old[1]).start()
        #expect(!ada.isMatched)
    }

    // MARK: Forgetting

    @Test func aPersonWithoutMeetingsIsForgottenImmediately() {
        let ada = stage.arrive()
        ada.start()
        ada.leave()
        #expect(stage.hub.personCount == 0)
        #expect(stage.hub.nextTimeout == nil)
    }

    @Test func aPersonWithMeetingsIsForgottenLater() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.start()
        bob.start()
        #expect(ada.isMatched)
        ada.leave()
        bob.leave()
        stage.pass(.seconds(599))
        #expect(stage.hub.personCount == 2)
        stage.pass(.seconds(1))
        #expect(stage.hub.personCount == 0)
        #expect(stage.hub.nextTimeout == nil)
    }

    @Test func aPersonWhoReturnsIsNotForgotten() {
        let ada = stage.arrive()
        ada.leave()
        stage.pass(.seconds(300))
        let again = stage.arrive(ada.identity)
        stage.pass(.seconds(3600))
        #expect(stage.hub.personCount == 1)
        #expect(again.start()?.type == "roulette.waiting")
    }
}
