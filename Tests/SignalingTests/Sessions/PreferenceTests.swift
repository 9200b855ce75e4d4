import Signaling
import TestSupport
import Testing
import Wire

/// Tests subscribers' preferences for a video, and the layers that its publisher is asked to send.
@Suite struct PreferenceTests: InRoutedRoom {
    let room = RoutedRoom()

    private func subscribe(_ stream: StreamID, preferring preference: VideoPreference) -> ServerMessage? {
        bob.ask(.session(.subscribe(.init(session: session, stream: stream, mids: mids, preference: preference))))
    }

    private func reported(_ stream: StreamID, preferring preference: VideoPreference) -> MediaCommand {
        .subscribe(stream, session, by: bob.connection, mids, audio: true, video: true, preferring: preference)
    }

    @Test func preferencesReachTheMediaPlaneAndCanChange() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        var small = VideoPreference()
        (small.width, small.height) = (320, 180)
        #expect(subscribe(stream.id, preferring: small)?.type == "ok")
        #expect(stage.media == [reported(stream.id, preferring: small)])
        var slow = small
        slow.frameRate = 7
        #expect(subscribe(stream.id, preferring: slow)?.type == "ok")
        #expect(stage.media == [reported(stream.id, preferring: slow)], "a changed preference is sent again")
        var pinned = slow
        pinned.priority = 1
        #expect(subscribe(stream.id, preferring: pinned)?.type == "ok")
        #expect(stage.media == [reported(stream.id, preferring: pinned)])
        #expect(subscribe(stream.id, preferring: VideoPreference())?.type == "ok")
        #expect(
            stage.media == [reported(stream.id, preferring: VideoPreference())],
            "without a preference, the largest layer is selected again")
        #expect(ada.takeTypes() == ["session.subscribed"], "publishers are notified of subscribers only")
    }

    @Test func onlyThePublisherLearnsTheWantedLayers() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        bob.take()
        let news: [SessionNotice.LayersWanted] = [
            .init(session: session, stream: stream.id, rids: ["q", "h"]),
            .init(session: session, stream: stream.id, rids: [], video: true, codec: 96),
        ]
        for wanted in news { stage.handle(.media(.layersWanted(wanted, publisher: ada.connection))) }
        let wanted = ada.take().compactMap { message -> SessionNotice.LayersWanted? in
            if case .session(.layersWanted(let wanted)) = message { wanted } else { nil }
        }
        #expect(wanted == news)
        #expect(bob.take() == [])
    }

    @Test func layersOfUnknownStreamsAreNotAnnounced() throws {
        let stream = try #require(ada.publish(session, mids: mids))
        bob.take()
        let wanted = SessionNotice.LayersWanted(session: session, stream: stream.id, rids: ["f"])
        stage.handle(.media(.layersWanted(wanted, publisher: bob.connection)))
        #expect(bob.take() == [], "Bob does not publish this stream")
        ada.unpublish(session, stream.id)
        ada.take()
        bob.take()
        stage.handle(.media(.layersWanted(wanted, publisher: ada.connection)))
        #expect(ada.take() == [], "the end of the stream crossed the announcement")
    }
}
