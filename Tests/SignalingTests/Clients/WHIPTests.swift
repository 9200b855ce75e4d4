import Signaling
import TestSupport
import Testing
import Wire

/// Tests WHIP and WHEP resources, from the initial request to the end.
@Suite struct WHIPTests {
    private let stage = Stage { $0.routesMedia = true }
    private let session: SessionID
    private let ada: Guest

    init() {
        session = stage.room(.routed)
        ada = stage.arrive()
        ada.enter(session, on: stage)
        ada.take()
    }

    // MARK: Publishing

    @Test func aPostPublishesTheOfferedMediaBeforeItIsAnswered() throws {
        let client = WHIPClient(stage, session)
        try client.post()
        let offered = try #require(client.offered)
        #expect((offered.side, offered.sdp) == (.send, WHIPClient.sdp(WHIPClient.credentials)))
        #expect(client.take() == nil, "the request is not answered before the media plane answers")
        #expect(ada.take().map(\.type) == ["session.connectionCreated"], "others are not notified of a pending stream")
        client.answer()
        guard case .created("answer", let tag, let ice)? = client.take() else {
            Issue.record("no resource was created")
            return
        }
        #expect(tag.utf8.count == 16)
        #expect(ice == ICEConfiguration())
        guard case .session(.streamCreated(let created))? = ada.take().first else {
            Issue.record("the members are not notified of the stream")
            return
        }
        #expect(created.stream.connection == offered.client)
        #expect((created.stream.hasAudio, created.stream.hasVideo) == (true, true))
        #expect(created.stream.videoType == .camera)
        #expect(
            stage.media.contains(
                .publish(
                    created.stream.id, session, by: offered.client, WHIPClient.mids, audio: true, video: true)))
    }

    @Test func aDeleteEndsTheStreamAndTheConnection() throws {
        let client = WHIPClient(stage, session)
        let connection = try client.create().connection
        ada.take()
        #expect(client.ask(.delete) == .deleted(re: 1))
        #expect(client.isOver)
        #expect(ada.take().map(\.type) == ["session.streamDestroyed", "session.connectionDestroyed"])
        #expect(stage.media.last == .leave(connection))
        #expect(stage.hub.resourceCount == 0)
        #expect(client.ask(.delete) == nil, "the server finds no such resource and does not ask the hub")
    }

    @Test func aRelayedSessionIsRefused() throws {
        let client = WHIPClient(stage, stage.room(.relayed))
        try client.post()
        #expect(client.take()?.error == .sessionRelayed)
        #expect(client.isOver)
        #expect(stage.media == [])
        #expect(stage.hub.sessionCount == 1, "the hub forgets the session of the refused request")
    }

    @Test func tokensWithoutPermissionAreRefusedBeforeJoining() {
        for (role, purpose) in [(Role.subscriber, ResourcePurpose.publish), (.publisherOnly, .watch(nil))] {
            let client = WHIPClient(stage, session, purpose, token: stage.token(session, role))
            let error = #expect(throws: WireError.self) { try client.post() }
            #expect(error?.code == .notPermitted)
        }
        let other = WHIPClient(stage, session, token: stage.token(stage.room(.routed)))
        #expect(throws: WireError.self) { try other.post() }
        #expect(ada.take() == [])
    }

    @Test func withoutRoutedMediaThereAreNoResources() throws {
        let stage = Stage()
        let client = WHIPClient(stage, stage.room(.routed))
        try client.post()
        #expect(client.take()?.error == .mediaUnavailable)
        #expect(client.isOver)
    }

    @Test func aRefusedOfferLeavesNothingBehind() throws {
        let client = WHIPClient(stage, session)
        try client.post()
        client.refuse(WireError(.descriptionInvalid, "No."))
        #expect(client.take()?.error == .descriptionInvalid)
        #expect(client.isOver)
        #expect(ada.take().map(\.type) == ["session.connectionCreated", "session.connectionDestroyed"])
    }

    @Test func aMissingAnswerFromTheMediaPlaneTimesOut() throws {
        let client = WHIPClient(stage, session)
        try client.post()
        stage.pass(.seconds(5))
        #expect(client.take()?.error == .mediaUnavailable)
        #expect(client.isOver)
    }

    @Test func anInterruptedPostLeavesNothingBehind() throws {
        let client = WHIPClient(stage, session)
        try client.post()
        stage.handle(.closed(client.socket, leaving: true))
        #expect(stage.hub.resourceCount == 0)
        #expect(stage.media.count == 1, "the connection is closed")
        #expect(ada.take().map(\.type) == ["session.connectionCreated", "session.connectionDestroyed"])
    }

    @Test func aMutedResourceIsUnmutedByTheModerator() throws {
        try WHIPClient(stage, session).create()
        let moderator = stage.arrive()
        moderator.enter(session, .moderator, on: stage)
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.active) = (session, true)
        moderator.ask(.session(.forceMute(mute)))
        guard case .update(let stream, let client, audio: false, video: true)? = stage.media.last else {
            Issue.record("the resource's audio is not muted")
            return
        }
        mute.active = false
        moderator.ask(.session(.forceMute(mute)))
        #expect(stage.media.last == .update(stream, by: client, audio: true, video: true))
    }

    // MARK: Watching

    @Test func withoutAStreamThereIsNothingToWatch() throws {
        let client = WHIPClient(stage, session, .watch(nil))
        try client.post()
        #expect(client.take()?.error == .notFound)
        #expect(client.isOver)
        let named = WHIPClient(stage, session, .watch(StreamID(high: 1, low: 2)))
        try named.post()
        #expect(named.take()?.error == .notFound)
    }

    @Test func aViewerGetsTheNewestCameraAndThenTheNext() throws {
        var streams: [StreamID] = []
        for type in [VideoType.camera, .camera, .screen] {
            var verb = SessionVerb.Publish()
            (verb.session, verb.videoType, verb.mids) = (session, type, WHIPClient.mids)
            guard case .session(.published(let published))? = ada.ask(.session(.publish(verb))) else { continue }
            streams.append(published.stream.id)
            stage.pass(.seconds(1))
        }
        let client = WHIPClient(stage, session, .watch(nil))
        let connection = try client.create().connection
        func watches(_ index: Int) -> MediaCommand {
            .subscribe(
                streams[index], session, by: connection, WHIPClient.mids, audio: true, video: true)
        }
        #expect(stage.media.last == watches(1))
        ada.unpublish(session, streams[1])
        #expect(stage.media.last == watches(0))
        ada.unpublish(session, streams[0])
        #expect(!client.isOver, "a publisher may return")
        let again = try #require(ada.publish(session, mids: WHIPClient.mids))
        #expect(
            stage.media.last
                == .subscribe(again.id, session, by: connection, WHIPClient.mids, audio: true, video: true))
    }

    @Test func aViewerOfANamedStreamEndsWithIt() throws {
        let stream = try #require(ada.publish(session, mids: WHIPClient.mids))
        let client = WHIPClient(stage, session, .watch(stream.id))
        try client.create()
        ada.unpublish(session, stream.id)
        #expect(client.isOver)
    }

    // MARK: PATCH

    @Test func candidatesRequireTheCurrentTag() throws {
        let client = WHIPClient(stage, session)
        let tag = try client.create().tag
        #expect(client.ask(.patch(nil, .tags(["x", tag]))) == .accepted(re: 1))
        #expect(client.ask(.patch(WHIPClient.credentials, .any)) == .accepted(re: 2))
        #expect(client.ask(.patch(nil, .none))?.error == .preconditionRequired)
        #expect(client.ask(.patch(WHIPClient.others, .tags(["x"])))?.error == .preconditionFailed)
        #expect(stage.media == [])
    }

    @Test func newCredentialsRestartICEAndChangeTheTag() throws {
        let client = WHIPClient(stage, session)
        try client.create()
        #expect(client.ask(.patch(WHIPClient.others, .any)) == nil, "the media plane is asked first")
        #expect(client.offered?.sdp == WHIPClient.sdp(WHIPClient.others))
        #expect(client.ask(.patch(WHIPClient.others, .any))?.error == .restartPending)
    }

    @Test func theAnswerToARestartHasTheNewTag() throws {
        let client = WHIPClient(stage, session)
        let tag = try client.create().tag
        _ = client.ask(.patch(WHIPClient.others, .any))
        client.answer("new")
        guard case .restarted(re: 1, "new", let next)? = client.take() else {
            Issue.record("the request is not answered")
            return
        }
        #expect(next != tag)
        #expect(client.ask(.patch(nil, .tags([tag])))?.error == .preconditionFailed, "late candidates")
        #expect(client.ask(.patch(nil, .tags([next]))) == .accepted(re: 3))
    }

    @Test func aFailedRestartKeepsTheResource() throws {
        let client = WHIPClient(stage, session)
        let tag = try client.create().tag
        _ = client.ask(.patch(WHIPClient.others, .any))
        client.refuse(WireError(.descriptionInvalid, "No."))
        #expect(client.take()?.error == .descriptionInvalid)
        _ = client.ask(.patch(WHIPClient.others, .any))
        stage.pass(.seconds(5))
        #expect(client.take()?.error == .mediaUnavailable)
        #expect(client.ask(.patch(nil, .tags([tag]))) == .accepted(re: 3))
        #expect(!client.isOver)
        let half = ResourceCredentials(ufrag: "efgh", pwd: WHIPClient.credentials.pwd)
        #expect(client.ask(.patch(half, .any))?.error == .descriptionInvalid)
    }

    @Test func changingAResourceRequiresAPublishToken() throws {
        let client = WHIPClient(stage, session)
        try client.create()
        #expect(client.ask(.delete, token: "x")?.error == .tokenMalformed)
        #expect(client.ask(.delete, token: stage.token(session, .subscriber))?.error == .notPermitted)
        #expect(client.ask(.delete, token: stage.token(stage.room(.routed)))?.error == .tokenSession)
        #expect(!client.isOver)
        #expect(client.ask(.delete, token: stage.token(session)) == .deleted(re: 4))
    }

    @Test func anExpiredTokenCanStillDeleteItsResource() throws {
        let client = WHIPClient(stage, session, token: stage.token(session, lifetime: .seconds(60)))
        let connection = try client.create().connection
        stage.handle(.media(.connected(connection, .send, true)))
        stage.pass(.seconds(120))
        #expect(client.ask(.delete) == .deleted(re: 1))
    }

    // MARK: The end

    @Test func aResourceWithoutMediaEnds() throws {
        let client = WHIPClient(stage, session)
        try client.create()
        stage.pass(.seconds(29))
        #expect(!client.isOver)
        stage.pass(.seconds(1))
        #expect(client.isOver)
        guard case .session(.streamDestroyed(let destroyed))? = ada.take().dropFirst(2).first else {
            Issue.record("the members are not notified of the end of the stream")
            return
        }
        #expect(destroyed.reason == .networkDisconnected)
    }

    @Test func aLostPathMayRecoverInTime() throws {
        let client = WHIPClient(stage, session)
        let connection = try client.create().connection
        stage.handle(.media(.connected(connection, .send, true)))
        stage.pass(.seconds(3600))
        #expect(!client.isOver)
        stage.handle(.media(.connected(connection, .send, false)))
        stage.pass(.seconds(29))
        stage.handle(.media(.connected(connection, .send, true)))
        stage.pass(.seconds(60))
        #expect(!client.isOver)
        stage.handle(.media(.connected(connection, .send, false)))
        stage.pass(.seconds(30))
        #expect(client.isOver)
    }

    @Test func removalsAndBansEndResourcesToo() throws {
        let moderator = stage.arrive()
        moderator.enter(session, .moderator, on: stage)
        let put = WHIPClient(stage, session)
        let verb = SessionVerb.ForceDisconnect(session: session, connection: try put.create().connection)
        moderator.ask(.session(.forceDisconnect(verb)))
        #expect(put.isOver)
        let again = WHIPClient(stage, session, token: put.token)
        try again.post()
        #expect(again.take()?.error == .tokenRevoked)

        let banned = WHIPClient(stage, session)
        try banned.create()
        stage.handle(.expel(banned.socket, WireError(.banned, "Until tomorrow."), .forbidden))
        #expect(banned.isOver)

        let failed = WHIPClient(stage, session)
        let connection = try failed.create().connection
        stage.handle(.media(.closed(connection, .send, WireError(.dtlsFailed, "No."))))
        #expect(failed.isOver)
        #expect(stage.hub.resourceCount == 0)
    }

    @Test func oneOwnerCannotUseAllResources() throws {
        let stage = Stage {
            $0.routesMedia = true
            ($0.resources, $0.resourcesPerAddress, $0.resourcesPerToken) = (4, 2, 3)
        }
        let session = stage.room(.routed)
        func post(_ address: String, _ token: String) throws -> ResourceReply? {
            let client = WHIPClient(stage, session, token: token)
            try client.post(address: address)
            return client.take()
        }
        let (one, two) = (stage.token(session), stage.token(session))
        #expect(try post("a", one) == nil)
        #expect(try post("a", one) == nil)
        #expect(try post("a", two)?.error == .tooManyConnections, "two resources are open from that address")
        #expect(try post("b", one) == nil)
        #expect(try post("b", one)?.error == .tooManyConnections, "three resources are open with that token")
        #expect(try post("b", two) == nil)
        #expect(try post("c", two)?.error == .mediaUnavailable, "four resources are open in total")
        stage.pass(.seconds(5))
        #expect(stage.hub.resourceCount == 0)
        #expect(try post("c", one) == nil)
    }

    @Test func aFloodOfRequestsIsRefused() throws {
        let client = WHIPClient(stage, session)
        let tag = try client.create().tag
        var refused = 0
        for _ in 0..<200 where client.ask(.patch(nil, .tags([tag])))?.error == .rateLimited { refused += 1 }
        #expect(refused == 200 - Int(stage.rules.verbs.burst))
        #expect(!client.isOver)
    }
}
