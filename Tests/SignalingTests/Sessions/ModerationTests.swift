import Signaling
import TestSupport
import Testing
import Wire

@Suite struct ModerationTests {
    private let stage = Stage()
    private let session: SessionID
    private let moderator: Guest
    private let ada: Guest
    private let bob: Guest

    init() {
        session = stage.room()
        (moderator, ada, bob) = (stage.arrive(), stage.arrive(), stage.arrive())
        moderator.enter(session, .moderator, on: stage)
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        for guest in [moderator, ada, bob] { guest.take() }
    }

    private func mute(_ stream: StreamID? = nil, active: Bool = true, excluded: [StreamID]? = nil) -> ClientMessage {
        var verb = SessionVerb.ForceMute()
        (verb.session, verb.stream, verb.active, verb.excluded) = (session, stream, active, excluded)
        return .session(.forceMute(verb))
    }

    @Test func aRemovalIsAnnouncedToAll() throws {
        let stream = try #require(ada.publish(session))
        bob.subscribe(session, stream.id)
        for guest in [moderator, ada, bob] { guest.take() }
        let force = SessionVerb.ForceDisconnect(session: session, connection: ada.connection)
        #expect(moderator.ask(.session(.forceDisconnect(force)))?.type == "ok")
        #expect(ada.take() == [.session(.left(.init(session: session, reason: .forceDisconnected)))])
        let gone: [ServerMessage] = [
            .session(.streamDestroyed(.init(session: session, stream: stream.id, reason: .forceDisconnected))),
            .session(
                .connectionDestroyed(
                    .init(session: session, connection: ada.connection, reason: .forceDisconnected))),
        ]
        #expect(bob.take() == gone)
        #expect(moderator.take() == gone)
        #expect(ada.signal(session)?.errorCode == .notJoined)
        #expect(ada.closeCode == nil, "the connection stays and may join again")
        #expect(ada.enter(session, on: stage) != nil)
    }

    @Test func aRemovedStreamIsAnnouncedToItsPublisherToo() throws {
        let stream = try #require(ada.publish(session))
        bob.take()
        moderator.take()
        #expect(moderator.ask(.session(.forceUnpublish(.init(session: session, stream: stream.id))))?.type == "ok")
        let event = ServerMessage.session(
            .streamDestroyed(
                .init(session: session, stream: stream.id, reason: .forceUnpublished)))
        for guest in [moderator, ada, bob] { #expect(guest.take() == [event]) }
        #expect(ada.publish(session) != nil, "he may publish again")
    }

    @Test func mutingAStreamNotifiesOnlyItsPublisher() throws {
        let stream = try #require(ada.publish(session))
        bob.take()
        moderator.take()
        #expect(moderator.ask(mute(stream.id))?.type == "ok")
        #expect(ada.take() == [.session(.muted(.init(session: session, active: true, stream: stream.id)))])
        #expect(bob.take() == [])
        #expect(stage.arrive().enter(session, on: stage)?.muted == false, "the session is not muted by it")
    }

    @Test func mutingASessionAppliesToFutureStreamsButNotToExcludedOnes() throws {
        let hers = try #require(ada.publish(session))
        let his = try #require(bob.publish(session))
        for guest in [moderator, ada, bob] { guest.take() }
        #expect(moderator.ask(mute(excluded: [his.id]))?.type == "ok")
        let all = ServerMessage.session(.muted(.init(session: session, active: true)))
        #expect(ada.take() == [all, .session(.muted(.init(session: session, active: true, stream: hers.id)))])
        #expect(bob.take() == [all])
        let late = stage.arrive()
        #expect(late.enter(session, on: stage)?.muted == true)
        let later = try #require(late.publish(session))
        #expect(late.take() == [.session(.muted(.init(session: session, active: true, stream: later.id)))])
        ada.take()
        #expect(moderator.ask(mute(active: false))?.type == "ok")
        #expect(late.take() == [.session(.muted(.init(session: session, active: false)))])
        #expect(late.publish(session) != nil)
        #expect(late.take() == [], "later streams are not muted")
    }

    @Test func mutingASessionIncludesTheModerator() throws {
        let stream = try #require(moderator.publish(session))
        moderator.ask(mute())
        #expect(moderator.take().contains(.session(.muted(.init(session: session, active: true, stream: stream.id)))))
    }

    @Test func moderatingUnknownTargetsIsRefused() {
        let stranger = stage.arrive()
        let force = SessionVerb.ForceDisconnect(session: session, connection: stranger.connection)
        #expect(moderator.ask(.session(.forceDisconnect(force)))?.errorCode == .notFound)
        let nothing = StreamID(high: 3, low: 3)
        #expect(
            moderator.ask(.session(.forceUnpublish(.init(session: session, stream: nothing))))?.errorCode == .notFound)
        #expect(moderator.ask(mute(nothing))?.errorCode == .notFound)
    }

    /// A viewer who watches a match with a separate token stays when it ends, and must be notified that both members
    /// left.
    @Test func aViewerOfAMatchIsNotifiedThatBothLeft() throws {
        let (first, second, matched) = stage.pair()
        let session = matched.publish.session
        let watcher = stage.arrive()
        watcher.enter(session, .moderator, on: stage)
        for guest in [first, second] { guest.join(session, token: guest.match?.publish.token ?? "") }
        let stream = try #require(first.publish(session))
        watcher.subscribe(session, stream.id)
        let own = try #require(watcher.publish(session))
        second.subscribe(session, own.id)
        watcher.take()
        first.stop()
        let heard = watcher.takeTypes()
        #expect(heard.filter { $0 == "session.connectionDestroyed" }.count == 2)
        #expect(heard.filter { $0 == "session.streamDestroyed" }.count == 1)
        #expect(heard.filter { $0 == "session.unsubscribed" }.count == 1)
        #expect(watcher.signal(session)?.type == "ok")
    }
}
