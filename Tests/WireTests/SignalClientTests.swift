import TestSupport
import Testing
import Wire

/// Tests hello, numbering, acknowledgments, requests and liveness on an open socket.
@Suite struct SignalClientTests {
    // MARK: Hello and welcome

    @Test func theHelloIdentifiesTheClientAndTheWelcomeConnects() throws {
        var hello = Hello()
        (hello.identity, hello.name, hello.client) = ("a_secret", "Ada", "tests 1")
        hello.resume = Hello.Resume(secret: "somebody else's", received: 7)
        var script = SignalScript(hello: hello)
        #expect(script.handle(.connect).hasOpen)
        hello.resume = nil
        #expect(script.open() == hello)
        #expect(!script.line.isConnected)
        let welcome = SignalScript.welcome()
        #expect(script.hear(.welcome(welcome)) == [.connected(welcome, .first)])
        #expect(script.line.isConnected)
        #expect(script.line.welcome == welcome)
    }

    @Test func connectHasAnEffectOnce() {
        var script = SignalScript()
        script.connect()
        #expect(script.handle(.connect) == [])
    }

    @Test func aRefusedHelloEndsTheConnectionWithTheServersError() {
        var script = SignalScript()
        script.handle(.connect)
        script.open()
        let id = script.ask()
        let error = WireError(.tokenExpired, "Get a new token.")
        #expect(script.hear(.error(ServerMessage.Failure(error))) == [])
        let ending = SignalClient.Ending(code: .token, error: error)
        #expect(script.close(.token) == [.failed(id, error), .ended(ending)])
        #expect(script.line.ending == ending)
        #expect(script.line.nextTimeout == nil)
    }

    @Test func aSecondWelcomeOnASocketIsIgnored() {
        var script = SignalScript()
        script.connect()
        #expect(script.hear(.welcome(SignalScript.welcome { $0.resume.secret = "other" })) == [])
        #expect(script.reconnect()?.resume?.secret == "first")
    }

    @Test func theIdentityOfAWelcomeIsUsedForTheNextHello() {
        var script = SignalScript()
        script.connect { $0.identity = "a_new" }
        #expect(script.reconnect()?.identity == "a_new")
        var hello = Hello()
        hello.token = "a.b.c"
        script = SignalScript(hello: hello)
        script.connect { $0.identity = "a_new" }
        let next = script.reconnect()
        #expect(next?.identity == nil)
        #expect(next?.token == "a.b.c")
    }

    // MARK: Requests

    @Test func requestsAreNumberedAndEachGetsItsAnswer() {
        var script = SignalScript()
        script.connect()
        let (first, sent) = script.request(.roulette(.count))
        #expect(sent.said == [Envelope(seq: 1, ack: 0, message: .roulette(.count))])
        let (second, next) = script.request(.roulette(.stop))
        #expect(next.numbers == [2])
        #expect(script.hearNext(ok(2), ack: 2) == [.answered(second, ok(2))])
        let refusal = ServerMessage.error(ServerMessage.Failure(WireError(.notMatched, "No."), re: 1))
        #expect(script.hearNext(refusal) == [.answered(first, refusal)])
        #expect(script.line.unansweredCount == 0)
        #expect(script.hearNext(ok(2)) == [.event(ok(2))], "no request is waiting for an answer")
        #expect(script.hearNext(someEvent) == [.event(someEvent)])
    }

    @Test func requestsBeforeTheWelcomeAreSentAfterIt() {
        var script = SignalScript()
        script.handle(.connect)
        #expect(script.request(.roulette(.count)).effects == [])
        script.open()
        #expect(script.request(.roulette(.stop)).effects == [])
        let effects = script.hear(.welcome(SignalScript.welcome()))
        #expect(effects.said.map(\.message) == [.roulette(.count), .roulette(.stop)])
        #expect(effects.numbers == [1, 2])
        #expect(effects.start == .first)
    }

    @Test func unsendableRequestsFailImmediately() {
        var script = SignalScript { $0.maxRequests = 3 }
        let (early, notYet) = script.request(.roulette(.count))
        #expect(notYet.failures == [early: .notConnected])
        script.connect { $0.limits.message = 1000 }
        for message in [ClientMessage.hello(Hello()), .ack, .ping, .bye] {
            #expect(script.request(message).effects.failures.values.first == .malformed)
        }
        let long = String(repeating: "x", count: 1000)
        #expect(script.request(.roulette(.start(.init(name: long)))).effects.failures.values.first == .messageTooLarge)
        let offer = script.request(.media(.offer(.init(side: .send, sdp: long))))
        #expect(offer.effects.numbers == [1], "a failed request uses no number, and descriptions have their own limit")
        script.ask()
        script.ask()
        #expect(script.request(.roulette(.count)).effects.failures.values.first == .tooManyRequests)
        script.hearNext(ok(1))
        #expect(script.request(.roulette(.count)).effects.numbers == [4])
    }

    @Test func requestsWaitingForAConnectionAreLimited() {
        var script = SignalScript { $0.replay = Link.Bounds(messages: 2, bytes: 1000) }
        script.connect()
        script.close()
        script.ask()
        script.ask()
        #expect(script.request(.roulette(.count)).effects.failures.values.first == .offlineQueueFull)
        #expect(script.line.unansweredCount == 2)
    }

    @Test func offersOfTheGreatestSizeWaitForAConnectionBesideOtherRequests() {
        var script = SignalScript()
        script.connect()
        script.close()
        script.ask()
        let offer = ClientMessage.media(.offer(.init(side: .send, sdp: String(repeating: "v", count: 200_000))))
        for _ in 0..<2 { #expect(script.request(offer).effects == []) }
        script.ask()
        #expect(script.request(offer).effects.failures.values.first == .offlineQueueFull)
        script.wait(SignalScript.longestBackoff)
        script.open()
        #expect(script.hear(SignalScript.resumed(received: 0)).numbers == [1, 2, 3, 4], "none was dropped")
    }

    // MARK: Receiving

    @Test func duplicatesAreIgnored() {
        var script = SignalScript()
        script.connect()
        #expect(script.hearNext(someEvent) == [.event(someEvent)])
        #expect(script.hear(someEvent, seq: 1) == [])
    }

    @Test func anUnreadableAnswerFailsItsRequest() throws {
        var script = SignalScript()
        script.connect()
        let id = script.ask()
        let effects = script.hear(Array(#"{"type":"from.the.future","seq":1,"re":1}"#.utf8))
        #expect(effects.failures == [id: .unknownType])
        #expect(effects.count == 2)
        #expect(script.hear(Array("nonsense".utf8)).count == 1)
        #expect(script.hear(Array(#"{"type":"ok"}"#.utf8)).count == 1, "an answer without re")
        #expect(script.hear(someEvent, seq: 2) == [.event(someEvent)])
    }

    @Test func acknowledgmentsAreSentAfter32Messages() {
        var script = SignalScript()
        script.connect()
        for _ in 1...31 { #expect(script.hearNext(someEvent).said == []) }
        #expect(script.hearNext(someEvent).said == [Envelope(ack: 32, message: .ack)])
        #expect(script.wait(.seconds(5)) == [])
    }

    @Test func aPageOfARosterIsAcknowledgedAtOnceIfAnotherFollows() {
        var script = SignalScript()
        script.connect()
        let session = SessionID("1_room") ?? .unset
        var page = SessionNotice.Roster()
        (page.session, page.more) = (session, true)
        #expect(script.hearNext(.session(.roster(page))).said.map(\.ack) == [1])
        page.more = nil
        #expect(script.hearNext(.session(.roster(page))).said.isEmpty)
        var joined = SessionNotice.Joined()
        (joined.session, joined.more) = (session, true)
        #expect(script.hearNext(.session(.joined(joined))).said.map(\.ack) == [3])
    }

    @Test func acknowledgmentsAreSentAfterTwoSeconds() {
        var script = SignalScript()
        script.connect()
        script.hearNext(someEvent)
        #expect(script.wait(.milliseconds(1999)) == [])
        script.hearNext(someEvent)
        #expect(script.wait(.milliseconds(1)).said == [Envelope(ack: 2, message: .ack)])
    }

    @Test func aRequestAlsoAcknowledges() {
        var script = SignalScript()
        script.connect()
        script.hearNext(someEvent)
        #expect(
            script.request(.roulette(.count)).effects.said == [Envelope(seq: 1, ack: 1, message: .roulette(.count))])
        #expect(script.wait(.seconds(5)) == [])
    }

    // MARK: Liveness

    @Test func aPingFollowsASilenceAndThenADrop() {
        var script = SignalScript()
        script.connect { $0.ping = .seconds(4) }
        #expect(script.wait(.milliseconds(3999)) == [])
        #expect(script.wait(.milliseconds(1)).said == [Envelope(message: .ping)])
        #expect(script.wait(.milliseconds(3999)) == [])
        let effects = script.wait(.milliseconds(1))
        #expect(effects.closes(.dropped))
        #expect(effects.contains(.reconnecting))
    }

    @Test func anyFrameEndsTheSilence() throws {
        var script = SignalScript()
        script.connect()
        script.wait(.seconds(15))
        #expect(script.hear(.pong) == [])
        #expect(script.wait(.seconds(9)) == [])
        script.handle(.heard(try #require(script.socket)))
        #expect(script.wait(.seconds(9)) == [])
        #expect(script.wait(.seconds(1)).said == [Envelope(message: .ping)])
    }

    @Test func aTimeoutThatComesLatePingsFirst() {
        var script = SignalScript()
        script.connect()
        script.now = script.now + .seconds(3600)
        #expect(script.line.handleTimeout(now: script.now).said == [Envelope(message: .ping)])
    }

    @Test func aDeviceThatSleptBetweenPingAndPongPingsAgain() {
        var script = SignalScript()
        script.connect()
        #expect(script.wait(.seconds(10)).said == [Envelope(message: .ping)])
        // While the device sleeps, no timer fires and nothing is read.
        script.now = script.now + .seconds(3600)
        let woken = script.line.handleTimeout(now: script.now)
        #expect(woken.said == [Envelope(message: .ping)])
        #expect(!woken.closes(.dropped))
        #expect(script.wait(.milliseconds(9999)) == [])
        #expect(script.hear(.pong) == [])
        #expect(script.wait(.milliseconds(9999)) == [])
        #expect(script.wait(.milliseconds(1)).said == [Envelope(message: .ping)], "the connection lives")
        #expect(script.wait(.seconds(10)).closes(.dropped), "without a sleep one silence is enough")
    }

    @Test func aConnectionThatIsDeadAfterASleepIsGivenUp() {
        var script = SignalScript()
        script.connect()
        script.wait(.seconds(10))
        script.now = script.now + .seconds(3600)
        #expect(script.line.handleTimeout(now: script.now).said == [Envelope(message: .ping)])
        #expect(script.wait(.seconds(10)).closes(.dropped))
    }

    @Test func timersThatAlwaysComeLateDoNotKeepADeadConnection() {
        var script = SignalScript()
        script.connect()
        var checks = 0
        while !script.line.handleTimeout(now: script.now).closes(.dropped), checks < 100 {
            script.now = script.now + .seconds(60)
            checks += 1
        }
        #expect(checks <= 5)
    }

    @Test func aNetworkChangeReconnectsImmediately() {
        var script = SignalScript()
        script.connect()
        #expect(script.handle(.networkChanged).said == [Envelope(message: .ping)])
        #expect(script.handle(.networkChanged) == [], "the first ping has no answer yet")
        script.close()
        #expect(script.handle(.networkChanged).hasOpen)
        script.hear(.error(ServerMessage.Failure(WireError(.rateLimited, "Wait."))))
        script.close(.tooMany)
        #expect(script.handle(.networkChanged) == [], "the server asked for a pause")
    }

    // MARK: The end

    @Test func leavingSendsByeClosesAndFailsOpenRequests() {
        var script = SignalScript()
        script.connect()
        let id = script.ask()
        let effects = script.handle(.leave)
        #expect(effects.said == [Envelope(message: .bye)])
        #expect(effects.closes(.normal))
        #expect(effects.failures == [id: .left])
        #expect(effects.ending == SignalClient.Ending(code: .normal, error: nil))
        #expect(script.request(.roulette(.count)).effects.failures.values.first == .left)
        #expect(script.handle(.leave) == [])
        #expect(script.handle(.connect) == [])
    }

    @Test func aClosingErrorAnswersTheLastRequest() {
        var script = SignalScript()
        script.connect()
        let (first, second) = (script.ask(), script.ask())
        let error = ServerMessage.Failure(WireError(.rateLimited, "Too many."), re: 2)
        #expect(script.hear(.error(error)) == [.answered(second, .error(error))])
        #expect(script.close(.forbidden).failures == [first: .rateLimited])
    }

    @Test func withoutReconnectingTheConnectionEndsWithItsSocket() {
        var script = SignalScript { $0.reconnects = false }
        script.connect()
        let id = script.ask()
        let effects = script.close()
        #expect(effects.failures == [id: .connectionLost])
        #expect(effects.ending?.code == .abnormal)
        script = SignalScript { $0.reconnects = false }
        script.connect()
        let silent = script.wait(.seconds(20))
        #expect(silent.closes(.dropped))
        #expect(silent.ending?.error?.code == .connectionLost)
    }

    @Test func eventsOfOlderSocketsAreIgnored() throws {
        var script = SignalScript()
        script.connect()
        let old = try #require(script.socket)
        script.reconnect()
        #expect(script.handle(.closed(old, .abnormal)) == [])
        #expect(script.handle(.received(someEvent.encode(seq: 1), on: old)) == [])
        #expect(script.handle(.opened(old)) == [])
    }
}
