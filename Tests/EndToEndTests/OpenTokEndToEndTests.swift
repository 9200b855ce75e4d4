import Confab
import Foundation
import OpenTokCompat
import Testing
import Wire

@Suite("Delegates written for OpenTok, over sockets", .ownThreads, .timeLimit(.minutes(3)))
@MainActor struct OpenTokEndToEndTests {
    @Test(
        "a stream is published, received and ended, and each delegate hears it in order",
        arguments: [
            MediaMode.relayed, .routed,
        ])
    func streams(_ mode: MediaMode) async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let place = try OpenTokPlace(server, mode)
            let (ada, bob) = (OpenTokCaller(place, film: film), OpenTokCaller(place))
            await ada.connect(data: "Ada")
            await bob.connect(data: "Bob")
            #expect(await ada.next() == "connection created Bob")
            #expect(await bob.next() == "connection created Ada")

            let settings = OTPublisherSettings()
            settings.name = "Film"
            let publisher = try #require(OTPublisher(delegate: ada, settings: settings))
            ada.session.publish(publisher, error: nil)
            #expect(await ada.next() == "published Film")
            #expect(publisher.stream?.connection === ada.session.connection)
            #expect(await bob.next() == "stream created")
            let stream = try #require(bob.streams.first)
            #expect(bob.session.streams[stream.streamId] === stream)
            #expect(stream.streamId == publisher.stream?.streamId)
            #expect(stream.connection.data == "Ada")
            #expect(stream.hasVideo)

            let subscriber = try #require(OTSubscriber(stream: stream, delegate: bob))
            bob.session.subscribe(subscriber, error: nil)
            #expect(await bob.next() == "receiving")
            #expect(await bob.next() == "first picture")
            publisher.publishVideo = false
            #expect(await ada.next() == "own video off 1")
            #expect(await bob.next() == "video off 1")
            publisher.publishVideo = true
            #expect(await ada.next() == "own video on 1")
            #expect(await bob.next() == "video on 1")
            subscriber.subscribeToVideo = false
            #expect(await bob.next() == "video off 2")

            ada.session.unpublish(publisher, error: nil)
            #expect(await ada.next() == "unpublished")
            #expect(publisher.stream == nil && publisher.session == nil)
            #expect(await bob.next() == "stream destroyed")
            ada.session.disconnect(nil)
            #expect(await ada.next() == "disconnected")
            #expect(ada.session.sessionConnectionStatus == .notConnected)
            #expect(await bob.next() == "connection destroyed Ada")
        }
    }

    @Test("signals arrive in the order of the calls, also at their sender, who is the session's own connection")
    func signals() async throws {
        try await TestServer.run { @MainActor server in
            let place = try OpenTokPlace(server, .routed)
            let (ada, bob) = (OpenTokCaller(place), OpenTokCaller(place))
            await ada.connect(data: "Ada")
            await bob.connect(data: "Bob")
            #expect(await ada.next() == "connection created Bob")
            #expect(await bob.next() == "connection created Ada")
            for number in 1...10 {
                ada.session.signal(withType: "chat", string: "\(number)", connection: nil, error: nil)
            }
            for number in 1...10 {
                #expect(await ada.next() == "signal chat \(number)")
                #expect(await bob.next() == "signal chat \(number)")
            }
            #expect(ada.senders.allSatisfy { $0 === ada.session.connection })
            let sender = try #require(bob.senders.first ?? nil)
            bob.session.signal(
                withType: nil, string: "for you", connection: sender, retryAfterReconnect: false, error: nil)
            #expect(await ada.next() == "signal  for you")
        }
    }

    @Test("what the server refuses is reported with OpenTok's numbers, and the session continues")
    func refusals() async throws {
        try await TestServer.run { @MainActor server in
            let place = try OpenTokPlace(server, .routed)
            let (ada, bob) = (OpenTokCaller(place), OpenTokCaller(place))
            await ada.connect(.subscriber, data: "Ada")
            await bob.connect(data: "Bob")
            #expect(await ada.next() == "connection created Bob")
            #expect(await bob.next() == "connection created Ada")
            bob.session.signal(withType: "not allowed", string: nil, connection: nil, error: nil)
            #expect(await bob.next() == "failed 1461")
            let long = String(repeating: "x", count: 9000)
            bob.session.signal(withType: nil, string: long, connection: nil, error: nil)
            #expect(await bob.next() == "failed 1413")
            ada.session.signal(withType: nil, string: "Hello", connection: nil, error: nil)
            #expect(await ada.next() == "failed 1550")
            #expect(ada.errors.first?.cause?.code == .notPermitted)
            bob.session.forceMuteAll(nil, error: nil)
            #expect(await bob.next() == "failed 1540")
            let other = try #require(ada.session.connection)
            bob.session.forceDisconnect(other, error: nil)
            #expect(await bob.next() == "failed 1520")
            // The engine has no file to publish.
            let publisher = try #require(OTPublisher(delegate: bob, settings: OTPublisherSettings()))
            bob.session.publish(publisher, error: nil)
            #expect(await bob.next() == "failed 1610")
            #expect(publisher.session == nil)
            #expect(bob.session.sessionConnectionStatus == .connected)
        }
    }

    @Test("a session that cannot be connected fails once, and can be connected afterwards")
    func connecting() async throws {
        try await TestServer.run { @MainActor server in
            let ada = OpenTokCaller(try OpenTokPlace(server, .routed))
            ada.session.connect(withToken: ada.place.token(lifetime: .seconds(-60)), error: nil)
            #expect(ada.session.sessionConnectionStatus == .connecting)
            #expect(await ada.next() == "failed 1004")
            #expect(ada.session.sessionConnectionStatus == .notConnected)
            // Leaves before it has connected.
            ada.session.connect(withToken: ada.place.token(), error: nil)
            ada.session.disconnect(nil)
            #expect(await ada.next() == "disconnected")
            await ada.connect()
            #expect(ada.session.capabilities?.canPublish == true)
            var error: OTError?
            ada.session.connect(withToken: ada.place.token(), error: &error)
            #expect(error?.code == OTSessionErrorCode.sessionIllegalState.rawValue)
        }
    }

    @Test("a moderator mutes a stream and removes its publisher")
    func moderation() async throws {
        let film = try Frames.file(Frames.ivf(), "ivf")
        try await TestServer.run { @MainActor server in
            let place = try OpenTokPlace(server, .routed)
            let (ada, bob) = (OpenTokCaller(place, film: film), OpenTokCaller(place))
            await ada.connect(data: "Ada")
            await bob.connect(.moderator, data: "Bob")
            #expect(await ada.next() == "connection created Bob")
            #expect(await bob.next() == "connection created Ada")
            let publisher = try #require(OTPublisher(delegate: ada, settings: OTPublisherSettings()))
            ada.session.publish(publisher, error: nil)
            #expect(await ada.next() == "published ")
            #expect(await bob.next() == "stream created")
            let stream = try #require(bob.streams.first)
            bob.session.forceMuteStream(stream, error: nil)
            #expect(await ada.next() == "muted")
            #expect(!publisher.publishAudio)
            bob.session.forceDisconnect(stream.connection, error: nil)
            // The session and its publisher have their own order.
            #expect(Set([await ada.next(), await ada.next()]) == ["disconnected", "unpublished"])
            #expect(await bob.next() == "stream destroyed")
            #expect(await bob.next() == "connection destroyed Ada")
        }
    }

    @Test("a session whose application releases it is left")
    func release() async throws {
        try await TestServer.run { @MainActor server in
            let place = try OpenTokPlace(server, .routed)
            let bob = OpenTokCaller(place)
            await bob.connect(data: "Bob")
            var ada: OpenTokCaller? = OpenTokCaller(place)
            await ada?.connect(data: "Ada")
            #expect(await bob.next() == "connection created Ada")
            ada = nil
            #expect(await bob.next() == "connection destroyed Ada")
        }
    }

    @Test("a lost connection is reported as reconnecting")
    func reconnecting() async throws {
        try await TestServer.run { @MainActor server in
            let ada = OpenTokCaller(try OpenTokPlace(server, .routed))
            await ada.connect()
            server.stop()
            #expect(await ada.next() == "reconnecting")
            #expect(ada.session.sessionConnectionStatus == .reconnecting)
            var error: OTError?
            ada.session.signal(
                withType: nil, string: "now or never", connection: nil, retryAfterReconnect: false, error: &error)
            #expect(error?.code == OTSessionErrorCode.sessionUnableToSendSignal.rawValue)
        }
    }
}
