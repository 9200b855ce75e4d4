import Confab
import ConfabHeadless
import Foundation
import OpenTokCompat
import Synchronization
import Testing
import Wire

/// What OpenTok's samples do, as far as it needs no views.
@Suite("Samples written for OpenTok, over sockets", .ownThreads, .timeLimit(.minutes(3)))
@MainActor struct OpenTokSampleTests {
    @Test("in a session of three, everyone receives the two others, and hears which of them left")
    func three() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let place = try OpenTokPlace(server, .routed)
            let names = ["Ada", "Bob", "Cai"]
            let members = names.map { _ in OpenTokCaller(place, film: film) }
            for (index, member) in members.enumerated() {
                member.names = true
                await member.connect(data: names[index])
                for other in members[..<index] { #expect(await other.next() == "connection created \(names[index])") }
                let present = await member.next(index)
                #expect(present == Set(names[..<index].map { "connection created \($0)" }))
            }
            var publishers: [OTPublisher] = []
            for (index, member) in members.enumerated() {
                let settings = OTPublisherSettings()
                settings.name = names[index]
                let publisher = try #require(OTPublisher(delegate: member, settings: settings))
                publishers.append(publisher)
                member.session.publish(publisher, error: nil)
                #expect(await member.next() == "published \(names[index])")
                for other in members where other !== member { #expect(await other.next() == "stream created") }
            }
            var subscribers: [OTSubscriber] = []
            for (index, member) in members.enumerated() {
                #expect(member.streams.map(\.name) == names.filter { $0 != names[index] })
                for stream in member.streams {
                    let subscriber = try #require(OTSubscriber(stream: stream, delegate: member))
                    subscribers.append(subscriber)
                    member.session.subscribe(subscriber, error: nil)
                }
                let heard = await member.next(4)
                let others = names.filter { $0 != names[index] }
                #expect(heard == Set(others.flatMap { ["receiving \($0)", "first picture of \($0)"] }))
            }
            members[2].session.disconnect(nil)
            for member in members[..<2] {
                #expect(await member.next() == "stream destroyed")
                #expect(await member.next() == "connection destroyed Cai")
                #expect(member.streams.count == 1)
            }
            #expect(await members[2].next(2) == ["disconnected", "unpublished"])
            withExtendedLifetime((publishers, subscribers)) {}
        }
    }

    @Test("a shared screen of the media engine is a stream of a screen, without audio")
    func screen() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let (ada, bob) = try await pair(server, engine: OpenTokEngine(film: film))
            let publisher = try #require(OTPublisher(delegate: ada, settings: Self.screenSettings))
            publisher.videoType = .screen
            publisher.audioFallbackEnabled = false
            publisher.videoCapture?.videoContentHint = .text
            ada.session.publish(publisher, error: nil)
            try await receive("Screen", from: ada, at: bob)
        }
    }

    @Test("the frames of a capturer arrive, and the capturer is started and released once")
    func capturer() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let engine = OpenTokEngine(film: film)
            let (ada, bob) = try await pair(server, engine: engine)
            let capturer = FrameCapturer()
            let painting = Task { for await _ in engine.requests { capturer.capture() } }
            defer { painting.cancel() }
            let publisher = try #require(OTPublisher(delegate: ada, settings: Self.screenSettings))
            publisher.videoType = .screen
            publisher.videoCapture = capturer
            publisher.videoCapture?.videoContentHint = .text
            ada.session.publish(publisher, error: nil)
            try await receive("Screen", from: ada, at: bob)
            #expect(capturer.calls == ["init", "settings", "start"])
            ada.session.unpublish(publisher, error: nil)
            #expect(await ada.next() == "unpublished")
            #expect(capturer.calls.suffix(2) == ["stop", "release"])
            #expect(capturer.videoCaptureConsumer == nil)
        }
    }

    @Test("a capturer needs an engine that sends its frames, and renderers get none")
    func unsupported() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let ada = OpenTokCaller(try OpenTokPlace(server, .routed), film: film)
            await ada.connect()
            let settings = OTPublisherSettings()
            settings.videoCapture = FrameCapturer()
            let publisher = try #require(OTPublisher(delegate: ada, settings: settings))
            ada.session.publish(publisher, error: nil)
            #expect(await ada.next() == "failed 1610")
            #expect(publisher.session == nil)
            publisher.videoCapture = nil
            publisher.videoRender = Blind()
            ada.session.publish(publisher, error: nil)
            #expect(await ada.next() == "failed 1610")
            #expect(await ada.next() == "published ")
            // The film has no camera.
            publisher.cameraPosition = .back
            #expect(await ada.next() == "failed 1610")
            #expect(publisher.cameraPosition == .front)
            publisher.cameraTorch = true
            publisher.cameraZoomFactor = 2
            #expect(await ada.next(2) == ["failed 1610"])
            #expect(!publisher.cameraTorch && publisher.cameraZoomFactor == 1)
        }
    }

    @Test("a session whose application set a secret for encryption sends and receives nothing")
    func encryption() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let (ada, bob) = try await pair(server, engine: OpenTokEngine(film: film))
            let publisher = try #require(OTPublisher(delegate: ada, settings: Self.screenSettings))
            publisher.videoType = .screen
            ada.session.publish(publisher, error: nil)
            #expect(await ada.next() == "published Screen")
            #expect(await bob.next() == "stream created")
            bob.session.setEncryptionSecret("a long secret", error: nil)
            let stream = try #require(bob.streams.first)
            let subscriber = try #require(OTSubscriber(stream: stream, delegate: bob))
            var error: OTError?
            bob.session.subscribe(subscriber, error: &error)
            #expect(error?.code == 6002 && error?.domain == OTError.subscriberDomain)
            let own = try #require(OTPublisher(delegate: bob, settings: Self.screenSettings))
            bob.session.publish(own, error: &error)
            #expect(error?.code == 6001 && error?.domain == OTError.publisherDomain)
            #expect(subscriber.session == nil)
        }
    }

    @Test("a publisher uses the camera that is asked for, also if it is asked before publishing")
    func cameras() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let ada = OpenTokCaller(try OpenTokPlace(server, .routed), engine: OpenTokEngine(film: film))
            await ada.connect()
            let publisher = try #require(OTPublisher(delegate: ada, settings: OTPublisherSettings()))
            publisher.cameraPosition = .back
            ada.session.publish(publisher, error: nil)
            #expect(await ada.next(2) == ["camera back", "published "])
            publisher.cameraPosition = publisher.cameraPosition == .front ? .back : .front
            #expect(await ada.next() == "camera front")
            #expect(EncodedMedia.cameras.withLock { $0 } == [.back, .front])
        }
    }

    @Test("delegates hear what is sent and received, as long as they are set")
    func counters() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let (ada, bob) = try await pair(server, engine: OpenTokEngine(film: film))
            let publisher = try #require(OTPublisher(delegate: ada, settings: Self.screenSettings))
            publisher.videoType = .screen
            ada.session.publish(publisher, error: nil)
            let subscriber = try await receive("Screen", from: ada, at: bob)
            (publisher.networkStatsDelegate, subscriber.networkStatsDelegate) = (ada, bob)
            #expect(await ada.next() == "sent 1 true")
            #expect(await bob.next() == "received true")
            (publisher.rtcStatsReportDelegate, subscriber.rtcStatsReportDelegate) = (ada, bob)
            publisher.getRtcStatsReport()
            subscriber.getRtcStatsReport()
            #expect(await ada.next() == #"sent report true [["video outbound-rtp"]]"#)
            #expect(await bob.next() == #"received report ["video inbound-rtp"]"#)
        }
    }

    // MARK: Parts of the samples

    private static var screenSettings: OTPublisherSettings {
        let settings = OTPublisherSettings()
        (settings.name, settings.audioTrack) = ("Screen", false)
        return settings
    }

    private func pair(
        _ server: TestServer, engine: any MediaEngine
    ) async throws -> (OpenTokCaller, OpenTokCaller) {
        let place = try OpenTokPlace(server, .routed)
        let (ada, bob) = (OpenTokCaller(place, engine: engine), OpenTokCaller(place))
        await ada.connect(data: "Ada")
        await bob.connect(data: "Bob")
        #expect(await ada.next() == "connection created Bob")
        #expect(await bob.next() == "connection created Ada")
        return (ada, bob)
    }

    /// Waits until a shared screen arrives.
    @discardableResult
    private func receive(_ name: String, from ada: OpenTokCaller, at bob: OpenTokCaller) async throws -> OTSubscriber {
        #expect(await ada.next() == "published \(name)")
        #expect(await bob.next() == "stream created")
        let stream = try #require(bob.streams.first)
        #expect(stream.videoType == .screen && stream.hasVideo && !stream.hasAudio)
        let subscriber = try #require(OTSubscriber(stream: stream, delegate: bob))
        bob.session.subscribe(subscriber, error: nil)
        #expect(await bob.next() == "receiving")
        #expect(await bob.next() == "first picture")
        return subscriber
    }
}

private final class Blind: OTVideoRender {
    func renderVideoFrame(_ frame: OTVideoFrame) {}
}
