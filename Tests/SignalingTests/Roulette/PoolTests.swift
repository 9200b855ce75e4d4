import Cluster
import Signaling
import TestSupport
import Testing
import Wire

/// Tests the pool alone. The tests answer the pool's requests to people, sometimes with refusals.
@Suite struct PoolTests {
    /// Records the pool's requests and answers them.
    private struct Asking {
        var pool: Pool
        var context: Context
        /// The open requests: who was asked, for which match, and with whom.
        var asked: [(who: IdentityID, match: MatchID, with: IdentityID)] = []
        var begun: [Set<IdentityID>] = []
        var released: [IdentityID] = []
        /// Those who lost their entries because they did not answer.
        var removed: [IdentityID] = []

        init(tag: NodeTag? = nil, _ adjust: (inout Rules) -> Void = { _ in }) {
            var rules = Rules()
            adjust(&rules)
            pool = Pool(rules: rules)
            var settings = HubSettings(rules: rules, project: Stage.project)
            settings.tag = tag
            context = Context(settings, generator: SeededGenerator(seed: 1))
        }

        mutating func tell(_ event: PoolEvent) {
            pool.handle(event, &context)
            take()
        }

        mutating func pass(_ duration: Duration) {
            let end = context.now + duration
            while let next = pool.nextTimeout, next <= end {
                context.now = max(context.now, next)
                pool.handleTimeout(&context)
                take()
            }
            context.now = end
        }

        private mutating func take() {
            while let letter = context.nextLetter() {
                switch letter {
                case .person(let who, .reserve(let match, let with, _)): asked.append((who, match, with))
                case .person(let who, .release(let match)):
                    released.append(who)
                    asked.removeAll { $0.who == who && $0.match == match }
                case .person(let who, .hallClosed): removed.append(who)
                case .match(_, .begin(_, let first, let second)):
                    begun.append([first.identity, second.identity])
                default: break
                }
            }
        }

        /// Accepts all open requests.
        mutating func agree() {
            while let next = asked.first {
                asked.removeFirst()
                tell(.reserved(next.match, next.who))
            }
        }
    }

    private func person(_ number: UInt64) -> IdentityID { IdentityID(high: 0, low: number) }

    private func entry(_ number: UInt64, _ interests: [String] = [], not excluded: [UInt64] = [], last: UInt64? = nil)
        -> PoolEntry
    {
        PoolEntry(
            identity: person(number), interests: interests, excluded: Set(excluded.map(person)),
            lastPartner: last.map(person)
        )
    }

    @Test func aMatchStartsWhenBothAccept() {
        var asking = Asking()
        asking.tell(.enter(entry(1)))
        asking.tell(.enter(entry(2)))
        #expect(asking.asked.map(\.who) == [person(2), person(1)])
        let match = asking.asked[0].match
        asking.tell(.reserved(match, person(1)))
        asking.tell(.reserved(match, person(1)))
        #expect(asking.begun == [], "one person agreeing twice does not count as both agreeing")
        asking.tell(.reserved(match, person(2)))
        #expect(asking.begun == [[person(1), person(2)]])
        #expect(asking.pool.waitingCount == 0)
        asking.tell(.reserved(match, person(2)))
        asking.tell(.refused(match, person(2)))
        #expect(asking.begun.count == 1)
    }

    @Test func inAClusterAMatchBelongsToTheNodeOfThePersonWhoWaitedLongerOrOfALegacyClient() {
        let (here, elsewhere) = (NodeTag(node: 1, life: 1), NodeTag(node: 2, life: 2))
        var asking = Asking(tag: here)
        var (distant, local) = (entry(1), entry(2))
        (distant.node, local.node) = (elsewhere, here)
        asking.tell(.enter(distant))
        asking.tell(.enter(local))
        #expect(asking.asked.map(\.who) == [person(2)], "the other person is asked by a letter")
        #expect(asking.asked.first.map { $0.match.high >> 24 } == elsewhere?.rawValue)
        asking = Asking(tag: here)
        local.home = .unset
        asking.tell(.enter(distant))
        asking.tell(.enter(local))
        #expect(asking.asked.first.map { $0.match.high >> 24 } == here?.rawValue)
    }

    @Test func inAClusterAMatchThatIsNotAnsweredExpiresAndWhoIsSilentNoLongerWaits() {
        var asking = Asking(tag: NodeTag(node: 1, life: 1))
        asking.tell(.enter(entry(1)))
        asking.tell(.enter(entry(2)))
        let match = asking.asked[0].match
        asking.tell(.reserved(match, person(1)))
        asking.asked = []
        asking.pass(.milliseconds(1999))
        #expect(asking.released.isEmpty)
        asking.pass(.milliseconds(1))
        #expect(Set(asking.released) == [person(1), person(2)])
        #expect(asking.removed == [person(2)])
        #expect(asking.asked.isEmpty, "the silent person is not proposed again")
        asking.tell(.reserved(match, person(2)))
        #expect(asking.begun.isEmpty, "the answer came too late")
        #expect(asking.pool.waitingIdentities == [person(1)])
        asking.tell(.enter(entry(2)))
        asking.agree()
        #expect(asking.begun == [[person(1), person(2)]], "the person who was silent is there after all")
        #expect(asking.pool.nextTimeout == nil)
    }

    @Test func aReservedEntryIsNotOfferedToOthers() {
        var asking = Asking()
        for number in 1...3 { asking.tell(.enter(entry(UInt64(number)))) }
        #expect(asking.asked.count == 2)
        asking.agree()
        #expect(asking.begun.count == 1)
        #expect(asking.pool.waitingIdentities == [person(3)])
    }

    @Test func afterAWithdrawalTheOtherSearchesAgainImmediately() {
        var asking = Asking()
        asking.tell(.enter(entry(1)))
        asking.tell(.enter(entry(2)))
        asking.tell(.enter(entry(3)))
        asking.tell(.withdraw(person(1)))
        #expect(asking.released.contains(person(2)))
        #expect(asking.asked.isEmpty)
        asking.pass(.zero)
        #expect(Set(asking.asked.map(\.who)) == [person(2), person(3)])
    }

    @Test func aRefusalIsFinalForThePairAndBothContinue() {
        var asking = Asking()
        asking.tell(.enter(entry(1)))
        asking.tell(.enter(entry(2)))
        asking.tell(.refused(asking.asked[0].match, person(1)))
        asking.asked = []
        asking.pass(.seconds(60))
        #expect(asking.asked.isEmpty)
        #expect(asking.pool.waitingIdentities == [person(1), person(2)], "both keep their places")
        asking.tell(.enter(entry(3)))
        #expect(Set(asking.asked.map(\.who)) == [person(1), person(3)])
    }

    @Test func aFailedMatchKeepsTheOrderOfTheQueue() {
        var asking = Asking()
        asking.tell(.enter(entry(1, not: [2])))
        asking.tell(.enter(entry(2)))
        asking.tell(.enter(entry(3)))
        let match = asking.asked[0].match
        #expect(Set(asking.asked.map(\.who)) == [person(1), person(3)])
        asking.tell(.refused(match, person(3)))
        asking.asked = []
        asking.pass(.zero)
        #expect(
            Set(asking.asked.map(\.who)) == [person(2), person(3)], "1 and 3 are not tried again, 1 and 2 must not be")
    }

    @Test func aFailedMatchKeepsTheExclusiveWait() {
        var asking = Asking()
        asking.tell(.enter(entry(1, ["chess"])))
        asking.pass(.seconds(2))
        asking.tell(.enter(entry(2, ["chess"])))
        asking.tell(.refused(asking.asked[0].match, person(2)))
        asking.asked = []
        asking.tell(.enter(entry(3)))
        asking.pass(.milliseconds(2999))
        #expect(asking.asked.isEmpty)
        asking.pass(.milliseconds(1))
        #expect(Set(asking.asked.map(\.who)) == [person(1), person(3)])
    }

    @Test func aBlockAppliesToWaitingEntries() {
        var asking = Asking()
        asking.tell(.enter(entry(1)))
        asking.tell(.exclude(person(1), person(2)))
        asking.tell(.exclude(person(9), person(1)))
        asking.tell(.enter(entry(2)))
        #expect(asking.asked.isEmpty)
    }

    @Test func onePersonHasOneEntry() {
        var asking = Asking()
        asking.tell(.enter(entry(1)))
        asking.tell(.enter(entry(1)))
        #expect(asking.pool.waitingCount == 1)
        asking.tell(.withdraw(person(1)))
        asking.tell(.withdraw(person(1)))
        #expect(asking.pool.waitingCount == 0)
        #expect(asking.asked.isEmpty)
    }

    /// Regression test: a person scans a long queue and remembers a former partner as a fallback, who leaves during the
    /// scan. The next former partner must still be found.
    @Test func aFormerPartnerWhoLeavesDuringAScanDoesNotHideTheNext() {
        var asking = Asking { $0.candidatesPerAttempt = 4 }
        let all = Array(UInt64(1)...8)
        // 1 and 2 were partners of 100. The people in the queue may not be paired with each other, and 100 may be
        // paired only with 1 and 2.
        for number in all { asking.tell(.enter(entry(number, not: all, last: number <= 2 ? 100 : nil))) }
        asking.tell(.enter(entry(100, not: Array(all.dropFirst(2)))))
        asking.tell(.withdraw(person(1)))
        asking.pass(.seconds(30))
        #expect(Set(asking.asked.map(\.who)) == [person(2), person(100)])
    }

    @Test func nothingIsLeftOfRemovedEntries() {
        var asking = Asking { $0.candidatesPerAttempt = 2 }
        let all = Array(UInt64(1)...40)
        for number in all { asking.tell(.enter(entry(number, ["interest \(number % 7)"], not: all))) }
        asking.pass(.seconds(7))
        for number in all { asking.tell(.withdraw(person(number))) }
        asking.pass(.seconds(60))
        #expect(asking.pool.waitingCount == 0)
        #expect(asking.pool.nextTimeout == nil)
        asking.tell(.enter(entry(50)))
        asking.tell(.enter(entry(51)))
        #expect(asking.asked.count == 2)
    }
}
