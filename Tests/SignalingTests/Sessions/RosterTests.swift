import Signaling
import TestSupport
import Testing
import Wire

@Suite("The roster of a session") struct RosterTests {
    /// About four members fit on a page.
    private let stage = Stage { ($0.rosterPage, $0.largeSession) = (500, 5) }
    private let session: SessionID

    init() { session = stage.room() }

    private func crowd(_ count: Int) -> [Guest] {
        (0..<count).map { number in
            let guest = stage.arrive()
            guest.enter(session, data: "member \(number)", on: stage)
            guest.acknowledge()
            return guest
        }
    }

    private func pages(_ guest: Guest) -> [SessionNotice.Roster] {
        guest.take().compactMap { if case .session(.roster(let page)) = $0 { page } else { nil } }
    }

    @Test("fits in the answer to the join if the session is small")
    func small() throws {
        _ = crowd(3)
        let joined = try #require(stage.arrive().enter(session, on: stage))
        #expect(joined.connections.map(\.data) == ["member 0", "member 1", "member 2"])
        #expect(joined.more == nil)
    }

    @Test("comes in pages, each after the acknowledgement of the one before")
    func pages() throws {
        _ = crowd(12)
        let late = stage.arrive()
        let joined = try #require(late.enter(session, on: stage))
        #expect(joined.more == true)
        #expect(joined.encodedSize < 500 + 500, "a page is not much larger than the limit")
        var names = joined.connections.map(\.data)
        #expect(!names.isEmpty)
        stage.pass(.seconds(60))
        #expect(pages(late).isEmpty, "the client has not acknowledged the first page")
        var more = true
        while more {
            late.acknowledge()
            let received = pages(late)
            try #require(received.count == 1)
            #expect(received[0].session == session)
            names += received[0].connections.map(\.data)
            more = received[0].more == true
        }
        #expect(names == (0..<12).map { "member \($0)" })
        late.acknowledge()
        #expect(pages(late).isEmpty)
    }

    @Test("does not keep from publishers whose pages are outstanding that their own stream was removed")
    func ownStream() throws {
        let moderator = stage.arrive()
        moderator.enter(session, .moderator, on: stage)
        _ = crowd(12)
        let late = stage.arrive()
        #expect(try #require(late.enter(session, on: stage)).more == true)
        let stream = try #require(late.publish(session))
        late.take()
        #expect(moderator.ask(.session(.forceUnpublish(.init(session: session, stream: stream.id))))?.type == "ok")
        let event = SessionNotice.StreamDestroyed(session: session, stream: stream.id, reason: .forceUnpublished)
        #expect(late.take().contains(.session(.streamDestroyed(event))))
    }

    @Test("has no one who left before their page, and everyone who joined before the last page")
    func changes() throws {
        var others = crowd(12)
        let late = stage.arrive()
        let joined = try #require(late.enter(session, on: stage))
        var view = RosterView(joined)
        others.removeLast().leave()
        let new = stage.arrive()
        new.enter(session, data: "new", on: stage)
        let stream = try #require(others[11 - 1].publish(session))
        #expect(late.take().isEmpty, "nothing is sent about members who are on a later page")
        while !view.isComplete {
            late.acknowledge()
            view.apply(late.take())
        }
        #expect(Set(view.connections.keys) == Set(others.map(\.connection) + [new.connection]))
        #expect(view.streams[stream.id] == stream)
        new.leave()
        view.apply(late.take())
        #expect(view.connections[new.connection] == nil)
    }

    @Test("ends with a page even if all other members have left")
    func alone() throws {
        let others = crowd(12)
        let late = stage.arrive()
        var view = RosterView(try #require(late.enter(session, on: stage)))
        for other in others { other.leave() }
        view.apply(late.take())
        #expect(view.connections.isEmpty)
        #expect(!view.isComplete)
        late.acknowledge()
        view.apply(late.take())
        #expect(view.isComplete)
    }

    @Test("continues after a resume, without a loss")
    func resuming() throws {
        let others = crowd(12)
        let late = stage.arrive()
        var view = RosterView(try #require(late.enter(session, on: stage)))
        late.drop()
        others[0].leave()
        late.resume()
        while !view.isComplete {
            view.apply(late.take())
            late.acknowledge()
        }
        #expect(Set(view.connections.keys) == Set(others.dropFirst().map(\.connection)))
    }

    @Test("is forgotten when the client leaves the session, and starts again when it joins again")
    func rejoining() throws {
        _ = crowd(12)
        let late = stage.arrive()
        late.enter(session, on: stage)
        late.say(.session(.leave(.init(session: session))))
        #expect(pages(late).isEmpty)
        var view = RosterView(try #require(late.enter(session, on: stage)))
        while !view.isComplete {
            late.acknowledge()
            view.apply(late.take())
        }
        #expect(view.connections.count == 12)
    }

    @Test("of a member who lags behind grows in pages, but only in a large session")
    func lagging() throws {
        let stage = Stage { ($0.rosterPage, $0.largeSession) = (3000, 12) }
        let session = stage.room()
        let idle = stage.arrive()
        var view = RosterView(try #require(idle.enter(session, on: stage)))
        let data = String(repeating: "x", count: 1000)
        func join(_ count: Int) {
            for _ in 0..<count { stage.arrive().enter(session, data: data, on: stage) }
        }
        join(11)
        let first = idle.take()
        #expect(first.map(\.type) == Array(repeating: "session.connectionCreated", count: 11))
        join(16)
        #expect(idle.take().isEmpty, "the joins wait until the client has acknowledged the earlier ones")
        view.apply(first)
        idle.acknowledge()
        while case let messages = idle.take(), !messages.isEmpty {
            #expect(messages.map(\.type) == ["session.roster"])
            view.apply(messages)
            idle.acknowledge()
        }
        #expect(view.isComplete)
        #expect(view.connections.count == 27)
        join(1)
        #expect(idle.takeTypes() == ["session.connectionCreated"], "the client has caught up")
    }

    @Test("is complete for a viewer of the newest camera, who watches it although it is on the last page")
    func watching() throws {
        let stage = Stage { ($0.rosterPage, $0.routesMedia) = (500, true) }
        let session = stage.room(.routed)
        var newest: StreamID?
        for _ in 0..<12 {
            let guest = stage.arrive()
            guest.enter(session, on: stage)
            newest = guest.publish(session, mids: MediaMids(video: "0"))?.id
            stage.pass(.milliseconds(10))
        }
        let viewer = WHIPClient(stage, session, .watch(nil))
        try viewer.create()
        let watched = stage.media.compactMap { command -> StreamID? in
            if case .subscribe(let stream, _, _, _, _, _, _) = command { stream } else { nil }
        }
        #expect(watched == [try #require(newest)])
    }
}
