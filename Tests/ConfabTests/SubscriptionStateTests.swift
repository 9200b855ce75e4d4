import Foundation
import Testing
import Wire

@testable import Confab

@Suite("What is reported to a subscriber about its tracks") struct SubscriptionStateTests {
    private let audio = RemoteTrack(media: FakeRemote(.audio))
    private let video = RemoteTrack(media: FakeRemote(.video))

    private func stream(audio: Bool = true, video: Bool = true) -> MediaStream {
        var info = StreamInfo()
        (info.hasAudio, info.hasVideo) = (audio, video)
        return MediaStream(info)
    }

    @Test("a stream with audio and video is connected when both are found, in any order", arguments: TrackKind.allCases)
    func both(first: TrackKind) {
        var state = Subscription.State(options: .init())
        state.tracks[first] = first == .audio ? audio : video
        #expect(state.update(.connected, of: stream()) == nil)
        state.tracks = [.audio: audio, .video: video]
        #expect(state.update(.connected, of: stream()) == .connected)
        #expect(state.update(.connected, of: stream()) == nil)
    }

    @Test("tracks that are found before the connection is there are reported with it")
    func tracksFirst() {
        var state = Subscription.State(options: .init())
        state.tracks = [.audio: audio, .video: video]
        #expect(state.update(.connecting, of: stream()) == nil)
        #expect(state.update(.connected, of: stream()) == .connected)
    }

    @Test("only what the stream has and the subscriber wants is waited for")
    func audioOnly() {
        var quiet = Subscription.State(options: .init())
        quiet.tracks[.audio] = audio
        #expect(quiet.update(.connected, of: stream(video: false)) == .connected)
        var uninterested = Subscription.State(options: .init(video: false))
        uninterested.tracks[.audio] = audio
        #expect(uninterested.update(.connected, of: stream()) == .connected)
    }

    @Test("video that a stream has later is reported once")
    func videoLater() {
        let stream = stream(video: false)
        var state = Subscription.State(options: .init())
        state.tracks[.audio] = audio
        #expect(state.update(.connected, of: stream) == .connected)
        state.tracks[.video] = video
        #expect(state.update(.connected, of: stream) == .tracksChanged)
        #expect(state.update(.connected, of: stream) == nil)
    }

    @Test("a lost connection is reported once, and again when media arrives")
    func lost() {
        var state = Subscription.State(options: .init())
        state.tracks = [.audio: audio, .video: video]
        #expect(state.update(.connected, of: stream()) == .connected)
        #expect(state.update(.disconnected, of: stream()) == .dropped)
        #expect(state.update(.disconnected, of: stream()) == nil)
        state.tracks = [.audio: RemoteTrack(media: FakeRemote(.audio)), .video: RemoteTrack(media: FakeRemote(.video))]
        #expect(state.update(.connected, of: stream()) == .resumed)
        #expect(state.update(.connected, of: stream()) == nil)
    }

    @Test("an application that asks late gets media and its first frame, in any order", arguments: [true, false])
    func late(frameFirst: Bool) async {
        let subscription = Subscription(stream(), .init())
        subscription.state.withLock { $0.tracks = [.audio: audio, .video: video] }
        if frameFirst { subscription.frameArrived() }
        subscription.update(.connected)
        if !frameFirst { subscription.frameArrived() }
        let events = subscription.events.events.makeAsyncIterator()
        #expect(await events.next() == .connected)
        #expect(await events.next() == .firstFrame)
        // A new connection has a first frame again, but the stream does not.
        subscription.update(.disconnected)
        subscription.update(.connected)
        subscription.frameArrived()
        #expect(await events.next() == .dropped)
        #expect(await events.next() == .resumed)
        _ = subscription.end(.clientDisconnected)
        #expect(await events.next() == .ended(.clientDisconnected))
    }
}
