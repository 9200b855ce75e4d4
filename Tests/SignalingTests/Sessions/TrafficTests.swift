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
}
