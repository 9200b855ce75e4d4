import Signaling
import TestSupport
import Testing
import Wire

/// Tests that a relayed session whose media cannot connect becomes routed for all its members, and stays so.
@Suite struct FallbackTests {
    private let stage = Stage { $0.routesMedia = true }
    private let session: SessionID
    private let ada: Guest
    private let bob: Guest
    private let stream: StreamID
    private let mids = MediaMids(audio: "0", video: "1")

    init() throws {
        session = stage.room()
        (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        stream = try #require(ada.publish(session, mids: mids)).id
        for guest in [ada, bob] { guest.take() }
    }

    private var hasFallenBack: Bool {
        bob.take().contains(.session(.mediaModeChanged(.init(session: session, mediaMode: .routed))))
    }

    private func published(_ mids: MediaMids) -> MediaCommand {
        .publish(stream, session, by: ada.connection, mids, audio: true, video: true)
    }

    @Test func aFailedPairMakesTheSessionRouted() {
        stage.pass(.seconds(100))
        bob.subscribe(session, stream)
        ada.take()
        stage.pass(.milliseconds(7999))
        #expect(!hasFallenBack)
        #expect(stage.ledger.streams.isEmpty)
        stage.pass(.milliseconds(1))
        #expect(stage.media == [published(MediaMids())], "the stream has no transceivers yet")
        let changed = ServerMessage.session(.mediaModeChanged(.init(session: session, mediaMode: .routed)))
        #expect((ada.take(), bob.take()) == ([changed], [changed]))
        stage.pass(.seconds(60))
        #expect((ada.take(), bob.take()) == ([], []), "only once")
    }

    @Test func afterTheFallbackStreamsKeepTheirIds() {
        bob.subscribe(session, stream)
        stage.pass(.seconds(8))
        bob.subscribe(session, stream, mids: mids)
        #expect(
            stage.media == [.subscribe(stream, session, by: bob.connection, mids, audio: true, video: true)],
            "the subscriber may be quicker than the publisher")
        ada.update(session, stream, mids: mids)
        #expect(stage.media == [published(mids)])
        #expect(stage.ledger.subscriptionCount == 1)
        let eve = stage.arrive()
        #expect(eve.enter(session, on: stage)?.mediaMode == .routed, "the session is routed for later members too")
        #expect(eve.subscribe(session, stream, mids: mids)?.type == "ok")
        bob.leave()
        #expect(stage.media == [.unsubscribe(stream, by: bob.connection)])
    }

    @Test(arguments: [true, false]) func eitherSideCanReportThatAPairWorks(_ isPublisher: Bool) {
        bob.subscribe(session, stream)
        stage.pass(.seconds(7))
        let answer = isPublisher ? ada.connected(session, bob) : bob.connected(session, ada)
        #expect(answer?.type == "ok")
        stage.pass(.seconds(60))
        #expect(!hasFallenBack)
    }

    @Test func aPairThatWorkedOnceNeverFallsBack() {
        bob.subscribe(session, stream)
        bob.connected(session, ada)
        #expect(bob.connected(session, ada, false)?.type == "ok")
        bob.unsubscribe(session, stream)
        bob.subscribe(session, stream)
        stage.pass(.seconds(60))
        #expect(!hasFallenBack)
    }

    @Test func aReportedFailureAloneDoesNotFallBack() {
        bob.subscribe(session, stream)
        stage.pass(.seconds(4))
        bob.connected(session, ada, false)
        stage.pass(.milliseconds(3999))
        #expect(!hasFallenBack)
        stage.pass(.milliseconds(1))
        #expect(hasFallenBack)
    }

    /// The first report may arrive before any subscription, and no other report follows.
    @Test func reportsCountForPairsWithoutSubscriptions() {
        bob.subscribe(session, stream)
        bob.unsubscribe(session, stream)
        #expect(ada.connected(session, bob)?.type == "ok")
        bob.subscribe(session, stream)
        stage.pass(.seconds(60))
        #expect(!hasFallenBack)
    }

    @Test func reportsAboutStrangersAreIgnored() {
        let eve = stage.arrive()
        #expect(ada.connected(session, eve)?.errorCode == .notFound)
        eve.enter(session, on: stage)
        #expect(ada.connected(session, eve)?.type == "ok")
        eve.subscribe(session, stream)
        bob.take()
        stage.pass(.seconds(8))
        #expect(hasFallenBack)
    }

    @Test func oneFailedPairIsEnough() {
        let eve = stage.arrive()
        eve.enter(session, on: stage)
        bob.subscribe(session, stream)
        bob.connected(session, ada)
        stage.pass(.seconds(30))
        eve.subscribe(session, stream)
        stage.pass(.seconds(8))
        #expect(hasFallenBack)
    }

    @Test func pairsWithoutSubscriptionsDoNotFallBack() {
        let ends: [() -> Void] = [
            { bob.unsubscribe(session, stream) },
            { bob.subscribe(session, stream, audio: false, video: false) },
        ]
        for end in ends {
            bob.subscribe(session, stream)
            stage.pass(.seconds(5))
            end()
            stage.pass(.seconds(60))
            #expect(!hasFallenBack)
            bob.subscribe(session, stream)
            stage.pass(.seconds(5))
            #expect(!hasFallenBack, "the full timeout starts again")
            end()
        }
        bob.subscribe(session, stream)
        ada.unpublish(session, stream)
        stage.pass(.seconds(60))
        #expect(!hasFallenBack)
    }

    @Test func pairsThatHaveLeftDoNotFallBack() {
        bob.subscribe(session, stream)
        ada.leave()
        stage.pass(.seconds(60))
        #expect(!hasFallenBack)
        #expect(stage.hub.nextTimeout == nil)
    }

    /// While a connection is down, its client can neither negotiate nor report success.
    @Test func aDroppedConnectionDelaysTheFallback() {
        bob.subscribe(session, stream)
        stage.pass(.seconds(1))
        ada.drop()
        stage.pass(.seconds(20))
        #expect(!hasFallenBack)
        ada.resume()
        stage.pass(.milliseconds(7999))
        #expect(!hasFallenBack)
        stage.pass(.milliseconds(1))
        #expect(hasFallenBack)
    }

    @Test func relayedOnlySessionsStayRelayed() throws {
        let only = stage.room(relayedOnly: true)
        for guest in [ada, bob] { guest.enter(only, on: stage) }
        let stream = try #require(ada.publish(only)).id
        bob.subscribe(only, stream)
        bob.take()
        stage.pass(.seconds(60))
        #expect(bob.take() == [])
    }

    @Test func withoutRoutedMediaSessionsStayRelayed() throws {
        let stage = Stage()
        let session = stage.room()
        let (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        let stream = try #require(ada.publish(session)).id
        bob.subscribe(session, stream)
        bob.take()
        stage.pass(.seconds(60))
        #expect(bob.take() == [])
        #expect(bob.connected(session, ada)?.type == "ok")
    }

    @Test func anEmptySessionReturnsToTheModeOfItsID() {
        bob.subscribe(session, stream)
        stage.pass(.seconds(8))
        for guest in [ada, bob] { guest.leave() }
        #expect(stage.ledger.streams.isEmpty)
        #expect(stage.arrive().enter(session, on: stage)?.mediaMode == .relayed)
    }
}
