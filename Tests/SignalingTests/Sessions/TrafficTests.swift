import Signaling
import TestSupport
import Testing
import Wire

@Suite("What the members of a session send to all") struct TrafficTests {
    private let stage = Stage {
        $0.sessionTraffic = Budget.Rate(perSecond: 5000, burst: 20_000)
        $0.verbs = Budget.Rate(perSecond: 1000, burst: 1000)
    }
    private let session: SessionID
    private let guests: [Guest]

    init() {
        let (stage, session) = (stage, stage.room(.routed))
        self.session = session
        guests = (0..<5).map { _ in
            let guest = stage.arrive()
            guest.enter(session, on: stage)
            return guest
        }
        for guest in guests { guest.take() }
    }

    @Test("has a budget: signals beyond it are refused until it has grown again")
    func signals() {
        let text = String(repeating: "x", count: 1000)
        let answers = (0..<6).map { guests[$0 % 2].signal(session, "chat", text) }
        #expect(answers.count { $0?.type == "ok" } == 3, "each signal costs about 1.3 kB for each of the five members")
        #expect(answers.last??.errorCode == .rateLimited)
        guard case .error(let failure)?? = answers.last else { return }
        #expect(failure.error.retryable)
        #expect(failure.error.retryAfter ?? .zero > .zero)
        #expect(guests[2].takeTypes().count == 3)
        #expect(guests[0].signal(session, "chat", "to one", to: guests[1].connection)?.type == "ok")
        stage.pass(failure.error.retryAfter ?? .zero)
        #expect(guests[0].signal(session, "chat", text)?.type == "ok")
    }

    @Test("counts in the size in which it is sent")
    func escapedText() {
        // JSON writes a control character in six bytes.
        let text = String(repeating: "\u{1}", count: 1000)
        let answers = (0..<2).map { _ in guests[0].signal(session, "chat", text)?.type }
        #expect(answers == ["ok", "error"])
    }

    @Test("does not limit another session")
    func others() {
        for _ in 0..<6 { guests[0].signal(session, "chat", String(repeating: "x", count: 1000)) }
        let other = stage.room()
        guests[0].enter(other, on: stage)
        #expect(guests[0].signal(other)?.type == "ok")
    }

    @Test("delays the news of changed streams, and then has only the latest properties")
    func changes() throws {
        let stage = Stage {
            $0.routesMedia = true
            $0.sessionTraffic = Budget.Rate(perSecond: 1000, burst: 1000)
            $0.verbs = Budget.Rate(perSecond: 1000, burst: 1000)
        }
        let session = stage.room(.routed)
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        let stream = try #require(ada.publish(session, mids: MediaMids(audio: "0", video: "1")))
        bob.take()
        for number in 1...20 { #expect(ada.update(session, stream.id, audio: number.isMultiple(of: 2))?.type == "ok") }
        func changes() -> [Bool] {
            bob.take().compactMap {
                if case .session(.streamChanged(let news)) = $0 { news.stream.hasAudio } else { nil }
            }
        }
        let first = changes()
        #expect(first.count < 5)
        stage.pass(.seconds(10))
        let later = changes()
        #expect((first + later).last == true, "the last change is announced")
        #expect(later.count == 1)
    }

    @Test("limits a member who publishes again and again, but not the first streams of anyone")
    func publishing() throws {
        let stage = Stage {
            $0.routesMedia = true
            $0.sessionTraffic = Budget.Rate(perSecond: 100, burst: 2000)
            $0.verbs = Budget.Rate(perSecond: 1000, burst: 1000)
        }
        let session = stage.room()
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        var published = 0
        while let stream = ada.publish(session), published < 100 {
            published += 1
            ada.unpublish(session, stream.id)
        }
        #expect((8..<20).contains(published))
        #expect(bob.publish(session) != nil)
    }

    @Test("includes joins: a client that joins and leaves again and again must wait")
    func churn() {
        let stage = Stage { $0.verbs = Budget.Rate(perSecond: 1000, burst: 1000) }
        let session = stage.room()
        let other = stage.arrive()
        other.enter(session, on: stage)
        let guest = stage.arrive()
        var joins = 0
        while guest.enter(session, on: stage) != nil, joins < 1000 {
            joins += 1
            guest.ask(.session(.leave(.init(session: session))))
        }
        #expect(joins == 100)
        #expect(guest.closeCode == nil)
        stage.pass(.seconds(1))
        #expect(guest.enter(session, on: stage) != nil)
    }

    @Test("includes joins after departures, also of other people")
    func replacing() throws {
        var answers: [ServerMessage?] = []
        for _ in 0..<20 {
            guests[4].ask(.session(.leave(.init(session: session))))
            let guest = stage.arrive()
            answers.append(guest.join(session, token: stage.token(session)))
            guest.leave()
            guests[4].enter(session, on: stage)
        }
        guard case .error(let refusal)?? = answers.last else {
            return #expect(Bool(false), "the last join must be refused")
        }
        #expect(refusal.error.code == .rateLimited)
        #expect(refusal.error.retryable)
        let wait = try #require(refusal.error.retryAfter)
        #expect(guests[0].signal(session)?.type == "ok", "the budget for signals is another one")
        stage.pass(wait + .milliseconds(1))
        #expect(stage.arrive().enter(session, on: stage) != nil)
    }

    @Test("does not include the joins of a session that grows, also after a restart and after all have left")
    func growth() {
        let stage = Stage { $0.sessionTraffic = Budget.Rate(perSecond: 1, burst: 1) }
        let session = stage.room()
        let crowd = (0..<60).map { _ in stage.arrive() }
        for guest in crowd { #expect(guest.enter(session, on: stage) != nil) }
        stage.restart()
        for guest in crowd {
            guest.arrive()
            #expect(guest.enter(session, on: stage) != nil)
        }
        for guest in crowd { guest.ask(.session(.leave(.init(session: session)))) }
        for guest in crowd { #expect(guest.enter(session, on: stage) != nil) }
    }

    @Test("forgets after a while how large the session was, so that many can return from a break")
    func afterBreak() {
        let stage = Stage { $0.sessionTraffic = Budget.Rate(perSecond: 0.001, burst: 1) }
        let session = stage.room()
        let crowd = (0..<20).map { _ in stage.arrive() }
        for guest in crowd { guest.enter(session, on: stage) }
        func leaveAndReturn(after pause: Duration) -> Int {
            for guest in crowd.dropFirst() { guest.ask(.session(.leave(.init(session: session)))) }
            stage.pass(pause)
            return crowd.dropFirst().count { $0.enter(session, on: stage) != nil }
        }
        #expect(leaveAndReturn(after: .seconds(900)) == 19)
        #expect(leaveAndReturn(after: .seconds(10)) == 1, "the budget pays for one")
    }

    @Test("includes the streams of a member who joined after a departure, from the first on")
    func returningPublisher() {
        let stage = Stage {
            $0.routesMedia = true
            $0.sessionTraffic = Budget.Rate(perSecond: 1, burst: 2100)
        }
        let session = stage.room()
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        ada.ask(.session(.leave(.init(session: session))))
        #expect(ada.enter(session, on: stage) != nil)
        let published = (0..<4).count { _ in ada.publish(session) != nil }
        #expect(published == 2, "each stream and its end cost about 1 kB")
        let others = (0..<4).count { _ in bob.publish(session) != nil }
        #expect(others == 4)
    }

    @Test("includes interruptions: a member who drops and returns again and again is not announced each time")
    func interruptions() {
        let events = (0..<20).flatMap { _ -> [String] in
            guests[0].drop()
            guests[0].resume()
            return guests[1].takeTypes()
        }
        let dropped = events.count { $0 == "session.connectionReconnecting" }
        #expect((1..<20).contains(dropped))
        #expect(events.count { $0 == "session.connectionReconnected" } == dropped)
        stage.pass(.seconds(10))
        guests[0].drop()
        #expect(guests[1].takeTypes() == ["session.connectionReconnecting"])
    }
}
