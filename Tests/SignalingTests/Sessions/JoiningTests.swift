import Signaling
import TestSupport
import Testing
import Wire

@Suite struct JoiningTests {
    private let stage = Stage()
    private let session: SessionID

    init() { session = stage.room() }

    @Test func joiningReturnsAllConnectionsAndStreams() throws {
        let (ada, bob, eve) = (stage.arrive(), stage.arrive(), stage.arrive())
        let first = try #require(ada.enter(session, data: "Ada", on: stage))
        #expect(first.connections == [])
        #expect(first.streams == [])
        #expect(first.connection.id == ada.connection)
        #expect(first.connection.data == "Ada")
        #expect(first.connection.createdAt == stage.now)
        #expect(!first.muted)
        let stream = try #require(ada.publish(session, name: "camera"))
        let second = try #require(bob.enter(session, data: "Bob", on: stage))
        #expect(second.connections == [first.connection])
        #expect(second.streams == [stream])
        let screen = try #require(ada.publish(session, name: "screen"))
        let third = try #require(eve.enter(session, on: stage))
        #expect(third.connections == [first.connection, second.connection], "they are listed in the order of joining")
        #expect(third.streams == [stream, screen])
    }

    @Test func othersAreNotifiedOfANewConnection() throws {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.enter(session, on: stage)
        let joined = try #require(bob.enter(session, on: stage))
        #expect(ada.take() == [.session(.connectionCreated(.init(session: session, connection: joined.connection)))])
        #expect(bob.take() == [])
    }

    @Test(arguments: MediaMode.allCases) func joiningReturnsTheMediaMode(_ mode: MediaMode) {
        let session = stage.room(mode)
        #expect(stage.arrive().enter(session, on: stage)?.mediaMode == mode)
    }

    @Test func joiningTwiceIsRefusedAndChangesNothing() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.enter(session, on: stage)
        bob.enter(session, on: stage)
        ada.take()
        #expect(bob.join(session, token: stage.token(session, .moderator))?.errorCode == .alreadyJoined)
        #expect(ada.take() == [])
        #expect(bob.closeCode == nil)
    }

    @Test func sessionsPerConnectionAreLimited() {
        let stage = Stage { $0.sessionsPerClient = 3 }
        let ada = stage.arrive()
        let rooms = (0..<4).map { _ in stage.room() }
        for room in rooms.prefix(3) { #expect(ada.enter(room, on: stage) != nil) }
        #expect(ada.join(rooms[3], token: stage.token(rooms[3]))?.errorCode == .sessionFull)
        #expect(ada.ask(.session(.leave(.init(session: rooms[0])))) != nil)
        #expect(ada.enter(rooms[3], on: stage) != nil)
    }

    @Test func connectionsPerSessionAreLimited() {
        let stage = Stage { $0.connectionsPerSession = 2 }
        let session = stage.room()
        for _ in 0..<2 { #expect(stage.arrive().enter(session, on: stage) != nil) }
        let late = stage.arrive()
        guard case .error(let refusal)? = late.join(session, token: stage.token(session)) else {
            return #expect(Bool(false), "the third client must be refused")
        }
        #expect(refusal.error.code == .sessionFull)
        #expect(refusal.error.retryable)
        #expect(late.closeCode == nil)
    }

    @Test func anInvalidTokenClosesTheConnection() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.enter(session, on: stage)
        bob.enter(session, on: stage)
        ada.take()
        let seq = bob.say(.session(.join(.init(session: stage.room(), token: stage.token(session)))))
        #expect(bob.closeCode == .token)
        #expect(bob.refusals.map(\.code) == [.tokenSession])
        #expect(bob.openRequests == 0, "\(seq) was answered before the close")
        #expect(ada.takeTypes() == ["session.connectionDestroyed"])
        #expect(stage.hub.clientCount == 1)
    }

    @Test func anInvalidSessionIDIsRefusedWithoutClosing() throws {
        let forged = try #require(SessionID("1_forged"))
        let ada = stage.arrive()
        let claims = Forge.sessionClaims(forged, at: stage.now)
        #expect(ada.join(forged, token: Forge.token(claims))?.errorCode == .sessionInvalid)
        #expect(ada.closeCode == nil)
    }

    @Test func sessionVerbsRequireHavingJoined() {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.enter(session, on: stage)
        let stream = StreamID(high: 1, low: 1)
        for verb in SessionVerbs.all(in: session, stream: stream, connection: ada.connection) {
            #expect(bob.ask(verb)?.errorCode == .notJoined, "\(verb.type)")
        }
        #expect(ada.take() == [])
    }

    @Test func leavingIsAnsweredAndAnnounced() throws {
        let (ada, bob) = (stage.arrive(), stage.arrive())
        ada.enter(session, on: stage)
        bob.enter(session, on: stage)
        let stream = try #require(bob.publish(session))
        ada.subscribe(session, stream.id)
        ada.take()
        let seq = bob.say(.session(.leave(.init(session: session))))
        #expect(bob.take().last == .ok(ServerMessage.OK(re: seq)))
        #expect(
            ada.take() == [
                .session(.streamDestroyed(.init(session: session, stream: stream.id, reason: .clientDisconnected))),
                .session(
                    .connectionDestroyed(
                        .init(session: session, connection: bob.connection, reason: .clientDisconnected))),
            ])
        #expect(bob.signal(session)?.errorCode == .notJoined)
        #expect(bob.enter(session, on: stage) != nil, "the client may join again")
    }

    @Test func anEmptySessionIsForgottenAndCreatedAgain() {
        let ada = stage.arrive()
        ada.enter(session, on: stage)
        #expect(stage.hub.sessionCount == 1)
        ada.ask(.session(.leave(.init(session: session))))
        #expect(stage.hub.sessionCount == 0)
        #expect(ada.enter(session, on: stage) != nil)
    }
}

enum SessionVerbs {
    /// Every verb that requires a joined session.
    static func all(in session: SessionID, stream: StreamID, connection: ConnectionID) -> [ClientMessage] {
        var publish = SessionVerb.Publish()
        publish.session = session
        var update = SessionVerb.Update()
        (update.session, update.stream, update.hasAudio) = (session, stream, false)
        var negotiate = SessionVerb.Negotiate()
        (negotiate.session, negotiate.to, negotiate.candidate) = (session, connection, .null)
        var mute = SessionVerb.ForceMute()
        mute.session = session
        let ofStream = SessionVerb.StreamReference(session: session, stream: stream)
        return [
            .session(.leave(.init(session: session))), .session(.publish(publish)), .session(.unpublish(ofStream)),
            .session(.update(update)),
            .session(.subscribe(.init(session: session, stream: stream))), .session(.unsubscribe(ofStream)),
            .session(.negotiate(negotiate)),
            .session(.signal(.init(session: session, type: nil, data: nil))),
            .session(.forceDisconnect(.init(session: session, connection: connection))),
            .session(.forceUnpublish(ofStream)),
            .session(.forceMute(mute)),
        ]
    }
}
