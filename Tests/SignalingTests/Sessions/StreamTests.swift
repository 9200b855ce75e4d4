import Signaling
import TestSupport
import Testing
import Wire

@Suite struct StreamTests {
    private let stage = Stage { $0.streamsPerConnection = 3 }
    private let session: SessionID
    private let ada: Guest
    private let bob: Guest

    init() {
        session = stage.room()
        (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        ada.take()
    }

    private func negotiate(_ to: Guest, _ candidate: JSONValue? = .null, _ description: SessionDescription? = nil)
        -> ClientMessage
    {
        var verb = SessionVerb.Negotiate()
        (verb.session, verb.to, verb.candidate, verb.description) = (session, to.connection, candidate, description)
        return .session(.negotiate(verb))
    }

    // MARK: Publishing

    @Test func aNewStreamIsAnnouncedToOthers() throws {
        var verb = SessionVerb.Publish()
        (verb.session, verb.name, verb.hasAudio, verb.videoType, verb.width, verb.height) = (
            session, "Slides", false, .screen, 1920, 1080
        )
        (verb.initials, verb.frameRate) = ("SL", 15)
        guard case .session(.published(let published))? = ada.ask(.session(.publish(verb))) else {
            return #expect(Bool(false), "no answer")
        }
        let stream = published.stream
        #expect(stream.connection == ada.connection)
        #expect(stream.createdAt == stage.now)
        #expect((stream.name, stream.hasAudio, stream.hasVideo) == ("Slides", false, true))
        #expect((stream.videoType, stream.width, stream.height) == (.screen, 1920, 1080))
        #expect((stream.initials, stream.frameRate) == ("SL", 15))
        #expect(bob.take() == [.session(.streamCreated(.init(session: session, stream: stream)))])
        #expect(ada.take() == [])
    }

    @Test func streamsPerConnectionAreLimited() throws {
        let streams = (0..<3).compactMap { _ in ada.publish(session) }
        #expect(Set(streams.map(\.id)).count == 3)
        #expect(ada.publish(session) == nil)
        let first = try #require(streams.first)
        #expect(ada.ask(.session(.unpublish(.init(session: session, stream: first.id))))?.type == "ok")
        #expect(ada.publish(session) != nil)
    }

    @Test func onlyThePublisherCanUnpublishAStream() throws {
        let stream = try #require(ada.publish(session))
        bob.take()
        let verb = ClientMessage.session(.unpublish(.init(session: session, stream: stream.id)))
        #expect(bob.ask(verb)?.errorCode == .notFound)
        #expect(ada.take() == [])
        #expect(ada.ask(verb)?.type == "ok")
        #expect(
            bob.take() == [
                .session(.streamDestroyed(.init(session: session, stream: stream.id, reason: .clientUnpublished)))
            ])
        #expect(ada.ask(verb)?.errorCode == .notFound)
    }

    @Test func streamChangesAreAnnouncedToAllOnce() throws {
        let stream = try #require(ada.publish(session))
        bob.take()
        var verb = SessionVerb.Update()
        (verb.session, verb.stream, verb.hasVideo) = (session, stream.id, false)
        #expect(ada.ask(.session(.update(verb)))?.type == "ok")
        guard case .session(.streamChanged(let changed))? = bob.take().first else {
            return #expect(Bool(false), "Bob was not notified")
        }
        #expect((changed.stream.hasVideo, changed.stream.hasAudio) == (false, true))
        #expect(ada.take() == [.session(.streamChanged(changed))])
        #expect(ada.ask(.session(.update(verb)))?.type == "ok")
        #expect(bob.take() == [], "nothing changed")
        #expect(bob.ask(.session(.update(verb)))?.errorCode == .notFound)
        #expect(stage.arrive().enter(session, on: stage)?.streams == [changed.stream])
    }

    // MARK: Subscribing

    @Test func thePublisherIsNotifiedOfSubscribers() throws {
        let stream = try #require(ada.publish(session))
        #expect(bob.ask(.session(.subscribe(.init(session: session, stream: stream.id, video: false))))?.type == "ok")
        #expect(
            ada.take() == [
                .session(
                    .subscribed(
                        .init(
                            session: session, stream: stream.id, connection: bob.connection, audio: true, video: false))
                )
            ])
        bob.subscribe(session, stream.id)
        #expect(
            ada.take() == [
                .session(
                    .subscribed(
                        .init(
                            session: session, stream: stream.id, connection: bob.connection, audio: true, video: true)))
            ], "again, with other values")
        let verb = ClientMessage.session(.unsubscribe(.init(session: session, stream: stream.id)))
        #expect(bob.ask(verb)?.type == "ok")
        #expect(
            ada.take() == [
                .session(.unsubscribed(.init(session: session, stream: stream.id, connection: bob.connection)))
            ]
        )
        #expect(bob.ask(verb)?.errorCode == .notFound)
    }

    @Test func subscribingToAnUnknownStreamIsRefused() throws {
        #expect(bob.subscribe(session, StreamID(high: 5, low: 5))?.errorCode == .notFound)
        let stream = try #require(ada.publish(session))
        let elsewhere = stage.room()
        bob.enter(elsewhere, on: stage)
        #expect(bob.subscribe(elsewhere, stream.id)?.errorCode == .notFound, "the stream is in another session")
    }

    @Test func subscribingToOneselfIsRefusedInRelayedSessions() throws {
        let stream = try #require(ada.publish(session))
        #expect(ada.subscribe(session, stream.id)?.errorCode == .notPermitted)
    }

    @Test func thePublisherIsNotifiedWhenASubscriberLeaves() throws {
        let stream = try #require(ada.publish(session))
        bob.subscribe(session, stream.id)
        ada.take()
        bob.leave()
        #expect(ada.takeTypes() == ["session.unsubscribed", "session.connectionDestroyed"])
    }

    // MARK: Negotiating

    @Test func onlyPublisherAndSubscriberCanNegotiate() throws {
        let eve = stage.arrive()
        eve.enter(session, on: stage)
        let stream = try #require(ada.publish(session))
        #expect(bob.ask(negotiate(ada))?.errorCode == .notPermitted)
        bob.subscribe(session, stream.id)
        ada.take()
        bob.take()
        eve.take()
        #expect(bob.ask(negotiate(ada))?.type == "ok")
        #expect(ada.ask(negotiate(bob))?.type == "ok", "the subscriber may negotiate too")
        #expect(ada.takeTypes() == ["session.negotiate"])
        #expect(bob.takeTypes() == ["session.negotiate"])
        #expect(eve.ask(negotiate(ada))?.errorCode == .notPermitted)
        #expect(ada.ask(negotiate(eve))?.errorCode == .notPermitted)
        bob.ask(.session(.unsubscribe(.init(session: session, stream: stream.id))))
        #expect(bob.ask(negotiate(ada))?.errorCode == .notPermitted)
    }

    @Test func negotiationMessagesArriveUnchangedWithTheirSender() throws {
        let stream = try #require(ada.publish(session))
        bob.subscribe(session, stream.id)
        ada.take()
        let candidate = try JSONReader.parse(
            #"{"candidate":"candidate:1 1 udp 1 ::1 9 typ host","sdpMid":"0","future":[1.5]}"#.utf8)
        let offer = SessionDescription(type: .offer, sdp: "v=0\r\n")
        bob.ask(negotiate(ada, nil, offer))
        bob.ask(negotiate(ada, candidate))
        bob.ask(negotiate(ada, .null))
        let heard: [SessionNotice.Negotiate] = ada.take().compactMap {
            if case .session(.negotiate(let said)) = $0 { said } else { nil }
        }
        #expect(heard.map(\.from) == [bob.connection, bob.connection, bob.connection])
        #expect(heard.map(\.description) == [offer, nil, nil])
        #expect(heard.map(\.candidate) == [nil, candidate, .null])
    }

    @Test func negotiatingWithAnUnknownConnectionIsRefused() {
        #expect(ada.ask(negotiate(stage.arrive()))?.errorCode != nil)
    }
}
