import Signaling
import TestSupport
import Testing
import Wire

@Suite struct ReportTests {
    private let stage = Stage()

    /// Two people in a match who have both joined its session.
    private func chat() -> (Guest, Guest, RouletteNotice.Matched) {
        let (ada, bob, matched) = stage.pair()
        for guest in [ada, bob] { guest.join(matched.publish.session, token: guest.match?.publish.token ?? "") }
        for guest in [ada, bob] { guest.take() }
        return (ada, bob, matched)
    }

    private var reports: [Report] {
        stage.changes.compactMap { if case .report(let report) = $0 { report } else { nil } }
    }

    @Test func aReportHasBothIDsTimeReasonAndChat() {
        let (ada, bob, matched) = chat()
        bob.signal(matched.publish.session, "chat", "something rude")
        stage.pass(.seconds(1))
        ada.signal(matched.publish.session, "chat", "stop it")
        #expect(ada.report("Was rude.")?.type == "ok")
        let lines = [
            ChatLine(from: bob.identity, text: "something rude", at: stage.now - .seconds(1)),
            ChatLine(from: ada.identity, text: "stop it", at: stage.now),
        ]
        let expected = Report(
            match: matched.match, by: ada.identity, against: bob.identity, reason: "Was rude.", lines: lines,
            createdAt: stage.now
        )
        #expect(reports == [expected])
        #expect(ada.isMatched, "a report does not end the chat")
        #expect(bob.take().allSatisfy { $0.type == "session.signal" }, "the partner is not notified")
    }

    @Test func aReportHasTheLastTwentyChatLines() {
        let (ada, bob, matched) = chat()
        for count in 0..<30 {
            bob.signal(matched.publish.session, "chat", "\(count)")
            bob.signal(matched.publish.session, "typing", "1")
            stage.pass(.milliseconds(200))
        }
        ada.report()
        #expect(reports.first?.lines.map(\.text) == (10..<30).map(String.init))
    }

    /// A chat line that is sent only to the partner is displayed like any other, so the report must contain it.
    @Test func linesSentOnlyToThePartnerAreReportedToo() {
        let (ada, bob, matched) = chat()
        bob.signal(matched.publish.session, "chat", "between us", to: ada.connection)
        ada.report()
        #expect(reports.first?.lines.map(\.text) == ["between us"])
    }

    @Test func linesSentToOneselfDoNotDisplaceOthers() {
        let (ada, bob, matched) = chat()
        bob.signal(matched.publish.session, "chat", "something rude")
        for _ in 0..<20 { bob.signal(matched.publish.session, "chat", "nothing", to: bob.connection) }
        ada.report()
        #expect(reports.first?.lines.map(\.text) == ["something rude"])
    }

    @Test func anEndedChatCanBeReportedForAMinute() {
        let (ada, bob, matched) = chat()
        bob.signal(matched.publish.session, "chat", "bye, idiot")
        bob.next()
        ada.stop()
        stage.pass(.seconds(59))
        #expect(ada.report("rude")?.type == "ok")
        #expect(reports.first?.lines.map(\.text) == ["bye, idiot"])
        #expect(reports.first?.against == bob.identity)
        stage.pass(.seconds(2))
        #expect(bob.report("no, her")?.errorCode == .notMatched)
        #expect(stage.hub.sessionCount == 0, "the hub has forgotten the chat")
    }

    @Test func theLastChatCanBeReportedDuringTheNextOne() {
        let (ada, bob, first) = chat()
        bob.stop()
        let eve = stage.arrive()
        eve.start()
        #expect(ada.isMatched)
        #expect(ada.report("the one before", first.match)?.type == "ok")
        #expect(ada.report("this one")?.type == "ok")
        #expect(reports.map(\.against) == [bob.identity, eve.identity])
        #expect(ada.report("another person's", MatchID(high: 4, low: 4))?.errorCode == .notMatched)
    }

    @Test func aChatIsReportedOnceByEachSide() {
        let (ada, bob, _) = chat()
        ada.report("one")
        #expect(ada.report("two")?.type == "ok")
        #expect(reports.map(\.reason) == ["one"])
        bob.report("three")
        #expect(reports.map(\.reason) == ["one", "three"])
        ada.next()
        #expect(ada.report("four")?.type == "ok")
        #expect(reports.count == 2)
    }

    @Test func quickSkippersCanBeReportedForAMinuteToo() {
        let ada = stage.arrive()
        ada.start()
        var matches: [MatchID] = []
        for _ in 0..<3 {
            let stranger = stage.arrive()
            stranger.start()
            ada.match.map { matches.append($0.match) }
            stranger.next()
            stranger.leave()
        }
        for match in matches { #expect(ada.report("rude", match)?.type == "ok") }
        #expect(reports.map(\.match) == matches)
    }

    @Test func reportsAreLimitedPerHour() {
        let stage = Stage { $0.reports = .init(perSecond: 1 / 360, burst: 2) }
        let ada = stage.arrive()
        ada.start()
        for count in 0..<4 {
            if count == 3 { stage.pass(.seconds(360)) }
            let stranger = stage.arrive()
            stranger.start()
            #expect(ada.isMatched)
            #expect(ada.report()?.errorCode == (count == 2 ? .rateLimited : nil))
            stranger.leave()
        }
        #expect(stage.changes.count == 3)
    }

    /// One character can consist of thousands of combining marks.
    @Test func reportedLinesAreLimitedInBytes() {
        let (ada, bob, matched) = chat()
        bob.signal(matched.publish.session, "chat", "e" + String(repeating: "\u{301}", count: 3000))
        ada.report()
        #expect(reports.first.map { ($0.lines.first?.text.utf8.count ?? 0) <= 1003 } == true)
    }

    @Test func reportingRequiresAChat() {
        let ada = stage.arrive()
        #expect(ada.report()?.errorCode == .notMatched)
        ada.start()
        #expect(ada.report()?.errorCode == .notMatched)
        #expect(stage.changes == [])
    }

    @Test func theChatOfOneMatchIsNotInTheReportOfTheNext() {
        let (ada, bob, first) = chat()
        bob.signal(first.publish.session, "chat", "earlier")
        ada.next()
        stage.pass(.seconds(10))
        #expect(ada.isMatched)
        ada.report()
        #expect(reports.first?.lines == [])
        #expect(reports.first?.match != first.match)
    }

    // MARK: Addresses

    @Test func aReportHasTheAddressThatALegacyPartnerMovedTo() {
        let (ada, bob) = (stage.arrive(address: "192.0.2.1"), stage.arriveLegacy(address: "192.0.2.9"))
        stage.handle(.moved(bob.socket, address: "203.0.113.1"))
        bob.next()
        ada.start()
        ada.report()
        #expect(reports.map(\.againstAddress) == ["203.0.113.1"])
        #expect(reports.map(\.byAddress) == ["192.0.2.1"])
        ada.next()
        bob.next()
        stage.pass(.seconds(60))
        #expect(ada.isMatched)
        stage.handle(.moved(bob.socket, address: "203.0.113.2"))
        ada.report()
        #expect(reports.last?.againstAddress == "203.0.113.2", "it moved during the chat")
    }

    @Test func aReportHasTheAddressOfAPartnerWhoMovedWhileWaiting() {
        let (ada, bob) = (stage.arrive(), stage.arriveLegacy(address: "192.0.2.9"))
        bob.next()
        stage.handle(.moved(bob.socket, address: "203.0.113.1"))
        ada.start()
        ada.report()
        #expect(reports.map(\.againstAddress) == ["203.0.113.1"])
    }

    @Test func aReportHasTheAddressFromWhichAPartnerResumed() {
        let (ada, bob) = (stage.arrive(address: "192.0.2.1"), stage.arrive(address: "192.0.2.9"))
        ada.start()
        bob.start()
        bob.drop()
        bob.address = "203.0.113.1"
        bob.resume()
        #expect(bob.welcome?.resumed == true)
        ada.report()
        bob.report()
        #expect(reports.map(\.againstAddress) == ["203.0.113.1", "192.0.2.1"])
        #expect(reports.map(\.byAddress) == ["192.0.2.1", "203.0.113.1"])
    }

    // MARK: Storage before answers

    private func isPersistedBeforeAnythingIsSent(_ effects: [Effect]) -> Bool {
        let persist = effects.firstIndex { if case .persist = $0 { true } else { false } }
        let transmit = effects.firstIndex { if case .transmit = $0 { true } else { false } }
        guard let persist, let transmit else { return false }
        return persist < transmit
    }

    @Test func aReportIsStoredBeforeItIsAnswered() {
        let (ada, _, _) = chat()
        ada.say(.roulette(.report(.init(reason: "rude"))))
        #expect(isPersistedBeforeAnythingIsSent(stage.effects))
    }

    @Test func aBlockIsStoredBeforeItIsAnswered() {
        let (ada, bob, _) = chat()
        ada.say(.roulette(.block(.init(match: nil))))
        #expect(isPersistedBeforeAnythingIsSent(stage.effects))
        #expect(stage.changes == [.block(owner: ada.identity, blocked: bob.identity, at: stage.now)])
    }

    @Test func aReportOfAForgottenChatIsStoredBeforeItIsAnswered() {
        let stage = Stage { $0.personIdle = .seconds(600) }
        let (ada, bob, _) = stage.pair()
        bob.stop()
        ada.stop()
        stage.pass(.seconds(60))
        #expect(stage.hub.sessionCount == 0)
        ada.say(.roulette(.report(.init(reason: "rude"))))
        #expect(isPersistedBeforeAnythingIsSent(stage.effects))
        #expect(stage.changes.count == 1, "the report is stored although the hub has forgotten the chat")
    }

    @Test func aRepeatedBlockIsStoredOnce() {
        let (ada, _, matched) = chat()
        ada.block()
        ada.block(matched.match)
        #expect(stage.changes.count == 1)
    }
}
