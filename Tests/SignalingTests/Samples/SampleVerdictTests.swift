import Signaling
import Testing
import Wire

@Suite struct SampleVerdictTests {
    private let stage = Stage {
        $0.checksSamples = true
        $0.sampleInterval = .seconds(10)
    }

    private func source(_ guest: Guest) -> SampleSource {
        guard let matched = guest.match else {
            Issue.record("not in a chat")
            return SampleSource(
                match: MatchID(high: 0, low: 0), person: guest.identity, session: SessionID("1_a")!)
        }
        return SampleSource(match: matched.match, person: guest.identity, session: matched.publish.session)
    }

    private func judge(_ source: SampleSource, _ verdict: SampleVerdict, text: String? = nil) {
        stage.handle(.judged(source, SampleJudgment(verdict, text: text)))
    }

    private func blurs(_ guest: Guest) -> [String] {
        guest.take().compactMap {
            if case .roulette(.blur(let blur)) = $0 { "\(blur.whose) \(blur.blurred)" } else { nil }
        }
    }

    private func warnings(_ messages: [ServerMessage]) -> [RouletteNotice.Warning] {
        messages.compactMap { if case .roulette(.warning(let warning)) = $0 { warning } else { nil } }
    }

    @Test func theWelcomeSaysHowOftenToSendASample() {
        #expect(stage.arrive().welcome?.sampling == Welcome.Sampling(interval: .seconds(10)))
        #expect(Stage().arrive().welcome?.sampling == nil, "sampling is off by default")
    }

    @Test func aBlurReachesBothAndEndsWithTheNextVerdict() {
        let (ada, bob, _) = stage.pair()
        judge(source(ada), .blur)
        #expect(blurs(ada) == ["own true"])
        #expect(blurs(bob) == ["partner true"])
        judge(source(ada), .blur)
        #expect(blurs(ada).isEmpty && blurs(bob).isEmpty, "it is blurred already")
        judge(source(ada), .ok)
        #expect(blurs(ada) == ["own false"])
        #expect(blurs(bob) == ["partner false"])
        #expect(ada.isMatched && bob.isMatched)
    }

    @Test func aWarningIsSentAtMostOnceAMinute() {
        let (ada, bob, matched) = stage.pair()
        judge(source(ada), .warn, text: "Too dark.")
        let expected = RouletteNotice.Warning(match: matched.match, source: .check, text: "Too dark.")
        #expect(warnings(ada.take()) == [expected])
        stage.pass(.seconds(59))
        judge(source(ada), .warn)
        #expect(warnings(ada.take()).isEmpty)
        stage.pass(.seconds(1))
        judge(source(ada), .warn)
        #expect(warnings(ada.take()).count == 1)
        #expect(bob.takeTypes().isEmpty, "the partner is not notified")
    }

    @Test func theEndIsAnnouncedAndInTheAuditLogAndThePartnerSearchesOn() {
        let (ada, bob, matched) = stage.pair()
        let before = source(ada)
        judge(before, .end, text: "Nudity.")
        let messages = ada.take()
        #expect(messages.map(\.type) == ["roulette.warning", "roulette.ended"])
        #expect(warnings(messages).first?.ends == true)
        #expect(bob.takeTypes() == ["roulette.ended", "roulette.waiting"])
        let entries = stage.changes.compactMap(\.summary.auditEntry)
        #expect(entries.map(\.action) == ["chat.end"] && entries.first?.actor == "check")
        #expect(entries.first?.detail == "\(matched.match): Nudity.")
        // A verdict about a chat that is over must not touch the next one.
        ada.start()
        // Two people who have just left each other are matched again after a while.
        stage.pass(.seconds(11))
        #expect(ada.isMatched && bob.isMatched)
        for guest in [ada, bob] { guest.take() }
        judge(before, .end)
        judge(before, .blur)
        #expect(ada.takeTypes().isEmpty && bob.takeTypes().isEmpty)
        #expect(ada.isMatched)
    }

    @Test func aReportHasTheLatestSampleAndWhatWasDecided() {
        let (ada, bob, matched) = stage.pair()
        for guest in [ada, bob] { guest.join(matched.publish.session, token: guest.match?.publish.token ?? "") }
        stage.handle(.sampled(source(bob), [1]))
        judge(source(bob), .blur)
        stage.pass(.seconds(10))
        stage.handle(.sampled(source(bob), [2]))
        stage.handle(.sampled(source(ada), [3]))
        let sampledAt = stage.now
        stage.pass(.seconds(1))
        judge(source(bob), .warn)
        ada.report()
        let reports = stage.changes.compactMap { if case .report(let report) = $0 { report } else { nil } }
        let expected = ReportedSample(jpeg: [2], at: sampledAt, verdict: .warn, warnings: 1, blurs: 1)
        #expect(reports.map(\.sample) == [expected])
    }

    @Test func aSampleIsForgottenWithTheChat() {
        let (ada, bob, matched) = stage.pair()
        for guest in [ada, bob] { guest.join(matched.publish.session, token: guest.match?.publish.token ?? "") }
        stage.handle(.sampled(source(bob), [1]))
        bob.stop()
        stage.pass(.seconds(61))
        #expect(ada.report()?.errorCode == .notMatched)
        #expect(stage.hub.sessionCount == 0)
    }

    @Test func chatsWithoutSamplesAreCountedForEachSide() {
        let (ada, _, _) = stage.pair()
        stage.handle(.sampled(source(ada), [1]))
        stage.pass(.seconds(30))
        ada.stop()
        #expect(stage.hub.unsampledChats == 1, "none came from the partner")
        let (cat, _, _) = stage.pair()
        stage.pass(.seconds(5))
        cat.stop()
        #expect(stage.hub.unsampledChats == 1, "the chat was too short")
    }

    @Test func aTokenOfARunningChatNamesThePersonAndNoOtherTokenDoes() throws {
        let (ada, bob, matched) = stage.pair()
        for guest in [ada, bob] {
            let token = try #require(guest.match?.publish.token)
            let grant = try stage.project.verifySessionToken(token, for: nil, now: stage.now)
            #expect(stage.hub.sampleSource(for: grant) == source(guest))
        }
        let token = try #require(ada.match?.publish.token)
        let grant = try stage.project.verifySessionToken(token, for: matched.publish.session, now: stage.now)
        bob.stop()
        #expect(stage.hub.sampleSource(for: grant) == nil, "the chat is over")
    }

    @Test func anOperatorWarnsAPersonOnAllConnectedDevices() {
        let ada = stage.arrive()
        stage.handle(.warned(ada.identity, "Be kind."))
        #expect(warnings(ada.take()) == [RouletteNotice.Warning(source: .operator, text: "Be kind.")])
    }

    @Test func aWarningIsSeenOnlyIfAConnectedClientShowsWarnings() {
        let ada = stage.arrive()
        #expect(stage.hub.warningReach(ada.identity) == .ignored, "an older client")
        let page = Guest(on: stage, as: ada.identity)
        page.showsWarnings = true
        page.arrive()
        #expect(stage.hub.warningReach(ada.identity) == .shown)
        page.drop()
        #expect(stage.hub.warningReach(ada.identity) == .ignored)
        ada.drop()
        #expect(stage.hub.warningReach(ada.identity) == .notConnected)
        page.resume()
        #expect(stage.hub.warningReach(ada.identity) == .shown)
        #expect(stage.hub.warningReach(IdentityID(high: 4, low: 4)) == .notConnected)
    }

    @Test func roulettetoksClientsIgnoreWarnings() throws {
        let (ada, legacy) = (stage.arrive(), stage.arriveLegacy())
        ada.start()
        legacy.next()
        ada.report()
        let reports = stage.changes.compactMap { if case .report(let report) = $0 { report } else { nil } }
        let report = try #require(reports.first)
        #expect(stage.hub.warningReach(report.against) == .ignored)
    }
}
