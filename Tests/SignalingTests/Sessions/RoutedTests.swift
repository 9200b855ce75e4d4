import Signaling
import TestSupport
import Testing
import Wire

/// Tests sessions with routed media: the commands to the media plane, and what members receive.
@Suite struct RoutedTests: InRoutedRoom {
    let room = RoutedRoom()

    private func published(_ stream: StreamID, _ mids: MediaMids, audio: Bool = true, video: Bool = true)
        -> MediaCommand
    {
        .publish(stream, session, by: ada.connection, mids, audio: audio, video: video)
    }

    private func subscribed(_ stream: StreamID, by guest: Guest, _ mids: MediaMids, video: Bool = true) -> MediaCommand
    {
        .subscribe(stream, session, by: guest.connection, mids, audio: true, video: video)
    }

    // MARK: Streams

    @Test func aStreamIsPublishedWithItsTransceiversAndEndsOnce() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        #expect(stage.media == [published(stream.id, mids)])
        ada.unpublish(session, stream.id)
        #expect(stage.media == [.unpublish(stream.id, by: stream.connection)])
        ada.leave()
        #expect(stage.media == [])
    }

    @Test func forwardingFollowsTheStreamsMedia() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        ada.update(session, stream.id, video: false)
        #expect(stage.media == [.update(stream.id, by: stream.connection, audio: true, video: false)])
        ada.update(session, stream.id, video: false)
        #expect(stage.media == [], "nothing changed")
        var size = SessionVerb.Update()
        (size.session, size.stream, size.width) = (session, stream.id, 320)
        ada.ask(.session(.update(size)))
        #expect(stage.media == [], "the media plane ignores other properties")
    }

    @Test func newTransceiversAreAnnouncedEvenWithTheSameMids() throws {
        let stream = try #require(ada.publish(session, mids: MediaMids(audio: "0")))
        bob.take()
        ada.update(session, stream.id, mids: MediaMids(video: "1"))
        #expect(stage.media == [published(stream.id, mids)], "a mid that is omitted stays the same")
        ada.update(session, stream.id, mids: mids)
        #expect(stage.media == [published(stream.id, mids)], "the same mids may belong to a new peer connection")
        #expect(bob.take() == [], "others are not notified")
        ada.update(session, stream.id, audio: false, mids: MediaMids(audio: "4"))
        #expect(stage.media == [published(stream.id, MediaMids(audio: "4", video: "1"), audio: false)])
        #expect(bob.takeTypes() == ["session.streamChanged"])
    }

    @Test func aSubscriptionHasTransceiversAndEndsOnce() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        #expect(bob.subscribe(session, stream.id, mids: mids)?.type == "ok")
        #expect(stage.media == [subscribed(stream.id, by: bob, mids)])
        #expect(ada.takeTypes() == ["session.subscribed"], "the publisher is notified of its viewers")
        bob.subscribe(session, stream.id, video: false, mids: MediaMids(audio: "2"))
        #expect(stage.media == [subscribed(stream.id, by: bob, MediaMids(audio: "2"), video: false)])
        bob.unsubscribe(session, stream.id)
        #expect(stage.media == [.unsubscribe(stream.id, by: bob.connection)])
        bob.leave()
        #expect(stage.media == [])
    }

    @Test func withoutTransceiversThereIsNoSubscriptionOnTheMediaPlane() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        #expect(bob.subscribe(session, stream.id)?.type == "ok")
        #expect(stage.media == [])
        bob.subscribe(session, stream.id, mids: mids)
        bob.subscribe(session, stream.id)
        #expect(stage.media == [.unsubscribe(stream.id, by: bob.connection)])
        bob.unsubscribe(session, stream.id)
        #expect(stage.media == [])
    }

    @Test func oneMaySubscribeToOneself() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        #expect(ada.subscribe(session, stream.id, mids: mids)?.type == "ok")
        #expect(stage.media == [subscribed(stream.id, by: ada, mids)])
        ada.leave()
        #expect(stage.media == [.unpublish(stream.id, by: stream.connection)])
    }

    @Test func leavingEndsStreamsAndSubscriptionsFirst() throws {
        let (own, other) = (try #require(ada.publish(session, mids: mids)), try #require(bob.publish(session)))
        for guest in [ada, bob] {
            guest.say(.media(.offer(.init(side: .send, sdp: "v"))))
            guest.subscribe(session, own.id, mids: mids)
            guest.subscribe(session, other.id, mids: mids)
        }
        ada.leave()
        #expect(
            stage.media == [
                .unpublish(own.id, by: own.connection), .unsubscribe(other.id, by: ada.connection),
                .leave(ada.connection),
            ])
        #expect(stage.ledger.subscriptionCount == 1, "only the subscription to the client's own stream is left")
        bob.ask(.session(.leave(.init(session: session))))
        #expect(stage.media == [.unpublish(other.id, by: other.connection)], "the client has left only the session")
    }

    @Test func aModeratorEndsStreamsAndConnectionsOnTheMediaPlaneToo() throws {
        let eve = stage.arrive()
        eve.enter(session, .moderator, on: stage)
        let (first, second) = (
            try #require(ada.publish(session, mids: mids)), try #require(ada.publish(session, mids: mids))
        )
        let other = try #require(bob.publish(session, mids: mids))
        ada.subscribe(session, other.id, mids: mids)
        eve.ask(.session(.forceUnpublish(.init(session: session, stream: first.id))))
        #expect(stage.media == [.unpublish(first.id, by: first.connection)])
        eve.ask(.session(.forceDisconnect(.init(session: session, connection: ada.connection))))
        #expect(
            stage.media == [.unpublish(second.id, by: second.connection), .unsubscribe(other.id, by: ada.connection)])
        #expect(ada.subscribe(session, other.id, mids: mids)?.errorCode == .notJoined)
    }

    @Test func forwardingStopsWhenAMatchEnds() throws {
        let stage = Stage {
            $0.routesMedia = true
            $0.rouletteMediaMode = .routed
        }
        let (one, two, matched) = stage.pair()
        for guest in [one, two] { guest.join(matched.publish.session, token: guest.match?.publish.token ?? "") }
        let streams = [one, two].compactMap { $0.publish(matched.publish.session, mids: mids)?.id }
        try #require(streams.count == 2)
        one.subscribe(matched.publish.session, streams[1], mids: mids)
        two.subscribe(matched.publish.session, streams[0], mids: mids)
        #expect(stage.ledger.subscriptionCount == 2)
        one.next()
        #expect(stage.media == zip(streams, [one, two]).map { .unpublish($0, by: $1.connection) })
    }

    // MARK: Muting

    @Test func aMutedPublisherIsSilentUntilTheyUnmute() throws {
        let eve = stage.arrive()
        eve.enter(session, .moderator, on: stage)
        let stream = try #require(ada.publish(session, mids: mids))
        ada.take()
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.stream) = (session, stream.id)
        eve.ask(.session(.forceMute(mute)))
        #expect(stage.media == [.update(stream.id, by: stream.connection, audio: false, video: true)])
        #expect(ada.takeTypes() == ["session.muted", "session.streamChanged"])
        ada.update(session, stream.id, audio: true)
        #expect(stage.media == [.update(stream.id, by: stream.connection, audio: true, video: true)])
    }

    @Test func mutingAllAppliesToLaterStreams() throws {
        let eve = stage.arrive()
        eve.enter(session, .moderator, on: stage)
        let (first, second) = (
            try #require(ada.publish(session, mids: mids)), try #require(ada.publish(session, mids: mids))
        )
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.excluded) = (session, [second.id])
        eve.ask(.session(.forceMute(mute)))
        #expect(stage.media == [.update(first.id, by: first.connection, audio: false, video: true)])
        let third = try #require(ada.publish(session, mids: mids))
        #expect(third.hasAudio == false)
        #expect(stage.media == [published(third.id, mids, audio: false)])
        mute.active = false
        eve.ask(.session(.forceMute(mute)))
        #expect(stage.media == [], "no one is unmuted by others")
    }

    @Test func relayedStreamsAreMutedByTheirPublisher() throws {
        let relayed = stage.room()
        let eve = stage.arrive()
        for guest in [ada, bob] { guest.enter(relayed, on: stage) }
        eve.enter(relayed, .moderator, on: stage)
        let stream = try #require(ada.publish(relayed, mids: mids))
        bob.subscribe(relayed, stream.id, mids: mids)
        bob.take()
        var mute = SessionVerb.ForceMute()
        (mute.session, mute.stream) = (relayed, stream.id)
        eve.ask(.session(.forceMute(mute)))
        #expect(bob.take() == [])
        #expect(stage.ledger.streams.isEmpty, "the media plane does not know relayed sessions")
    }

    // MARK: Errors and notifications

    @Test func peersInRoutedSessionsCannotNegotiate() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        bob.subscribe(session, stream.id, mids: mids)
        var verb = SessionVerb.Negotiate()
        (verb.session, verb.to, verb.candidate) = (session, ada.connection, .null)
        #expect(bob.ask(.session(.negotiate(verb)))?.errorCode == .notPermitted)
    }

    @Test func withoutRoutedMediaOnlyStreamsAreRefused() {
        let stage = Stage()
        let session = stage.room(.routed)
        let ada = stage.arrive()
        #expect(ada.enter(session, on: stage)?.mediaMode == .routed)
        var verb = SessionVerb.Publish()
        verb.session = session
        #expect(ada.ask(.session(.publish(verb)))?.errorCode == .mediaUnavailable)
        #expect(ada.subscribe(session, StreamID(high: 1, low: 1))?.errorCode == .mediaUnavailable)
        #expect(ada.signal(session)?.type == "ok")
    }

    @Test func aSubscriberIsNotifiedOfPausesAndResumes() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        bob.subscribe(session, stream.id, mids: mids)
        bob.take()
        for isPaused in [true, false] {
            var changed = SessionNotice.SubscriptionChanged(
                session: session, stream: stream.id, videoPaused: isPaused, reason: .slow)
            changed.rid = isPaused ? nil : "q"
            stage.handle(.media(.subscriptionChanged(changed, subscriber: bob.connection)))
            #expect(bob.take() == [.session(.subscriptionChanged(changed))])
        }
        bob.unsubscribe(session, stream.id)
        let late = SessionNotice.SubscriptionChanged(
            session: session, stream: stream.id, videoPaused: true, reason: .codec)
        stage.handle(.media(.subscriptionChanged(late, subscriber: bob.connection)))
        #expect(bob.take() == [], "the pause crossed the unsubscribe")
    }

    @Test("at the bandwidth limit new video is refused, audio is not, and what exists continues")
    func full() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        bob.subscribe(session, stream.id, mids: mids)
        for _ in 0..<2 { stage.handle(.media(.full(session, true))) }
        func code(_ answer: ServerMessage?) -> WireError.Code? {
            guard case .error(let failure)? = answer else { return nil }
            let error = failure.error
            #expect(error.retryable && error.retryAfter != nil && error.message.hasSuffix("."))
            return error.code
        }
        var verb = SessionVerb.Publish()
        (verb.session, verb.mids) = (session, mids)
        #expect(code(bob.ask(.session(.publish(verb)))) == .bandwidthExceeded)
        verb.hasVideo = false
        let voice = try #require(bob.ask(.session(.publish(verb)))?.published)
        #expect(ada.subscribe(session, voice.id, mids: mids)?.type == "ok", "it has no video")
        #expect(bob.subscribe(session, stream.id, mids: MediaMids(audio: "2", video: "3"))?.type == "ok", "it exists")
        #expect(code(ada.subscribe(session, stream.id, mids: mids)) == .bandwidthExceeded)
        #expect(ada.subscribe(session, stream.id, video: false, mids: mids)?.type == "ok")
        stage.handle(.media(.full(session, false)))
        verb.hasVideo = true
        #expect(bob.ask(.session(.publish(verb)))?.type == "session.published")
        stage.handle(.media(.full(stage.room(.routed), true)))
        for code in [WireError.Code.bandwidthExceeded, .descriptionInvalid] {
            let re = ada.say(.media(.offer(.init(side: .send, sdp: "v"))))
            stage.handle(.media(.refused(ada.connection, re: re, WireError(code, "No."))))
        }
        let refusals = stage.hub.bandwidthRefusals
        #expect([refusals.streams, refusals.subscriptions, refusals.connections] == [1, 1, 1])
    }

    @Test("at the bandwidth limit a stream gets no video that it never had, and its video may be turned off and on")
    func fullStream() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        var verb = SessionVerb.Publish()
        (verb.session, verb.mids, verb.hasVideo) = (session, mids, false)
        let voice = try #require(bob.ask(.session(.publish(verb)))?.published)
        stage.handle(.media(.full(session, true)))
        func turn(_ guest: Guest, _ stream: StreamID, on hasVideo: Bool?) -> ServerMessage? {
            var update = SessionVerb.Update()
            (update.session, update.stream) = (session, stream)
            (update.hasVideo, update.hasAudio) = (hasVideo, true)
            return guest.ask(.session(.update(update)))
        }
        for isOn in [false, true] { #expect(turn(ada, stream.id, on: isOn)?.type == "ok") }
        for hasVideo in [nil, false] { #expect(turn(bob, voice.id, on: hasVideo)?.type == "ok") }
        guard case .error(let failure)? = turn(bob, voice.id, on: true) else {
            return #expect(Bool(false), "refused")
        }
        #expect(failure.error.code == .bandwidthExceeded && failure.error.retryAfter != nil)
        #expect(stage.hub.bandwidthRefusals.streams == 1)
        stage.handle(.media(.full(session, false)))
        #expect(turn(bob, voice.id, on: true)?.type == "ok")
        stage.handle(.media(.full(session, true)))
        for isOn in [false, true] { #expect(turn(bob, voice.id, on: isOn)?.type == "ok", "it was accepted") }
    }

    @Test func theQualityOfAStreamIsReportedToItsPublisherAndItsSubscribers() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        let poor = SessionNotice.StreamQuality(session: session, stream: stream.id, level: .poor, reason: .loss)
        (_, _) = (ada.take(), bob.take())
        stage.handle(.media(.streamQuality(poor)))
        #expect(ada.take() == [.session(.streamQuality(poor))])
        #expect(bob.take() == [], "bob has not subscribed")
        bob.subscribe(session, stream.id, mids: mids)
        (_, _) = (ada.take(), bob.take())
        stage.handle(.media(.streamQuality(poor)))
        #expect(ada.take() == [.session(.streamQuality(poor))])
        #expect(bob.take() == [.session(.streamQuality(poor))])
        ada.unpublish(session, stream.id)
        (_, _) = (ada.take(), bob.take())
        stage.handle(.media(.streamQuality(poor)))
        #expect(ada.take() + bob.take() == [], "the stream has ended")
    }

    @Test func activeSpeakersAreAnnouncedToAll() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        ada.take()
        bob.take()
        for speaker in [stream.id, nil] {
            stage.handle(.media(.speaking(session, speaker)))
            for guest in [ada, bob] {
                #expect(guest.take() == [.session(.speaking(.init(session: session, stream: speaker)))])
            }
        }
        ada.unpublish(session, stream.id)
        bob.take()
        stage.handle(.media(.speaking(session, stream.id)))
        stage.handle(.media(.speaking(stage.room(.routed), nil)))
        #expect(bob.take() == [])
    }
}
