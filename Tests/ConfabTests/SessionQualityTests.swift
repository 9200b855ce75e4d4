import Foundation
import TestSupport
import Testing
import Wire

@testable import Confab

/// Adaptivity, quality events and statistics of routed media.
@Suite("The quality of media", .timeLimit(.minutes(3)))
struct SessionQualityTests {
    private let id = SessionID("session")!

    /// Someone who publishes and someone who receives, on a clock that the test advances.
    private struct Pair {
        let server = LoopbackServer(.routed)
        let clock = ManualClock()
        let engines = (FakeEngine(), FakeEngine())
        let client: ConfabClient
        let session: Session
        let publisher: MediaPublisher
        let subscriber: MediaSubscriber

        init(
            _ id: SessionID, publishing: Session.PublishOptions = .init(),
            subscribing: Session.SubscribeOptions = .init()
        ) async throws {
            let dependencies = Dependencies(
                transport: server, clock: clock, random: SystemRandomNumberGenerator())
            func join(_ engine: FakeEngine) async throws -> (ConfabClient, Session) {
                let client = ConfabClient(
                    server: URL(string: "http://simulated")!, credential: .anonymous(MemoryIdentity()), media: engine,
                    in: dependencies)
                try await client.connect()
                return (client, try await client.join(id, token: "token"))
            }
            let sender = try await join(engines.0).1
            (client, session) = try await join(engines.1)
            publisher = try await sender.publish(FakeMedia(), as: publishing)
            let streams = session.events.makeAsyncIterator()
            var stream: MediaStream?
            while stream == nil, let event = await streams.next() {
                if case .streamCreated(let created) = event { stream = created }
            }
            subscriber = try await session.subscribe(to: try #require(stream), subscribing)
        }

        /// The most recent request about the subscription.
        var preference: VideoPreference? {
            server.requests.compactMap { request in
                if case .session(.subscribe(let verb)) = request { verb.preference } else { nil }
            }.last
        }

        /// What was reported to the server about the video of the stream, in order.
        var reported: [Bool] {
            server.requests.compactMap { request in
                if case .session(.update(let update)) = request { update.hasVideo } else { nil }
            }
        }

        func judge(_ level: QualityLevel, _ reason: QualityReason?) {
            let stream = publisher.stream.id
            server.post(.tell(.streamQuality(.init(session: session.id, stream: stream, level: level, reason: reason))))
        }

        func tell(_ reason: SubscriptionReason, isPaused: Bool = false, limited: Bool? = nil) {
            var change = SessionNotice.SubscriptionChanged(
                session: session.id, stream: subscriber.stream.id, videoPaused: isPaused, reason: reason)
            change.limited = limited
            server.post(.tell(.subscriptionChanged(change)))
        }
    }

    @Test("the priority of a video is sent with the subscription, within its limits, and can be changed")
    func priority() async throws {
        let pair = try await Pair(id, subscribing: .init(priority: 7))
        defer { pair.server.finish() }
        #expect(pair.preference == VideoPreference(priority: 7))
        try await pair.subscriber.setPriority(1000)
        #expect(pair.preference == VideoPreference(priority: VideoPreference.maxPriority))
        try await pair.subscriber.prefer(width: 320, height: 240)
        #expect(pair.preference == VideoPreference(width: 320, height: 240, priority: VideoPreference.maxPriority))
        try await pair.subscriber.setPriority(0)
        #expect(pair.preference == VideoPreference(width: 320, height: 240))
    }

    @Test("a changed quality is reported with its reason, at the publisher, at the subscriber and in the session")
    func reasons() async throws {
        let pair = try await Pair(id)
        defer { pair.server.finish() }
        let (atPublisher, atSubscriber) = (
            pair.publisher.events.makeAsyncIterator(), pair.subscriber.events.makeAsyncIterator()
        )
        let inSession = pair.session.events.makeAsyncIterator()
        pair.judge(.poor, .loss)
        pair.judge(.good, nil)
        #expect(await atPublisher.next() == .quality(.poor, .loss))
        #expect(await atPublisher.next() == .quality(.good, nil))
        var seen: [MediaSubscriber.Event] = []
        while seen.last != .quality(.good, nil), let event = await atSubscriber.next() { seen.append(event) }
        #expect(seen.contains(.quality(.poor, .loss)))
        var heard: [Session.Event] = []
        while heard.count < 2, let event = await inSession.next() {
            if case .streamQuality = event { heard.append(event) }
        }
        let stream = pair.subscriber.stream
        #expect(heard == [.streamQuality(stream, .poor, .loss), .streamQuality(stream, .good, nil)])
    }

    @Test("a video that the network limits is reported, and its statistics say why it is limited")
    func limitation() async throws {
        let pair = try await Pair(id)
        defer { pair.server.finish() }
        let events = pair.subscriber.events.makeAsyncIterator()
        func hear(_ wanted: MediaSubscriber.Event) async {
            while let event = await events.next(), event != wanted {}
        }
        func limitation() async -> Statistic.Limitation? {
            await pair.subscriber.statistics().first { $0.kind == .video }?.limitation
        }
        #expect(await limitation() == .unlimited)
        pair.tell(.bandwidth, limited: true)
        await hear(.limited(true))
        #expect(await limitation() == .bandwidth)
        pair.tell(.slow, isPaused: true)
        await hear(.videoPaused(.slow))
        #expect(await limitation() == .slow)
        // Still limited, although the change has another reason.
        pair.tell(.size)
        await hear(.layer(nil))
        #expect(await limitation() == .bandwidth)
        pair.tell(.size, limited: false)
        await hear(.limited(false))
        #expect(await limitation() == .size)
    }

    @Test("statistics have the server's estimate and their time, and many subscribers cost one request")
    func estimate() async throws {
        let pair = try await Pair(id)
        defer { pair.server.finish() }
        #expect(try await pair.client.estimate() == LoopbackServer.estimate)
        for _ in 0..<3 {
            let statistics = await pair.subscriber.statistics()
            #expect(!statistics.isEmpty)
            #expect(statistics.allSatisfy { $0.availableBitrate == LoopbackServer.estimate && $0.timestamp != nil })
        }
        #expect(pair.server.requests.count { $0 == .media(.estimate) } == 2)
        pair.clock.advance(by: DownlinkEstimate.freshFor)
        _ = await pair.subscriber.statistics()
        #expect(pair.server.requests.count { $0 == .media(.estimate) } == 3)
    }

    @Test("the level of the audio is reported while the application asks for it")
    func levels() async throws {
        let pair = try await Pair(id)
        defer { pair.server.finish() }
        let events = pair.subscriber.events.makeAsyncIterator()
        while let event = await events.next(), event != .connected {}
        pair.engines.1.setAudioLevel(0.25)
        await pair.subscriber.reportAudioLevel(every: .milliseconds(130))
        for _ in 0..<2 {
            // The next measurement is planned when the one before has ended.
            try await until("a measurement is planned") { pair.clock.isWaiting(for: .milliseconds(130)) }
            pair.clock.advance(by: .milliseconds(130))
            var level: MediaSubscriber.Event?
            while level != .audioLevel(0.25), let event = await events.next() { level = event }
        }
        await pair.subscriber.reportAudioLevel(every: nil)
        #expect(!pair.clock.isWaiting(for: .milliseconds(130)))
    }

    // MARK: Audio fallback

    @Test("a publisher stops its video on a network that is too slow, and sends it again")
    func fallback() async throws {
        let pair = try await Pair(id, publishing: .init(audioFallback: true))
        defer { pair.server.finish() }
        let events = pair.publisher.events.makeAsyncIterator()
        pair.judge(.poor, .loss)
        #expect(await events.next() == .quality(.poor, .loss))
        #expect(await events.next() == .videoWarning(true))
        pair.clock.advance(by: .milliseconds(4999))
        #expect(pair.reported.isEmpty && pair.engines.0.open[0].sources.count == 2)
        pair.clock.advance(by: .milliseconds(1))
        #expect(await events.next() == .videoStopped)
        try await until("only audio is sent") { pair.engines.0.open[0].sources.count == 1 && pair.reported == [false] }
        // What replaces the video waits too.
        try await pair.publisher.replaceVideo(with: FakeMedia())
        pair.judge(.good, nil)
        #expect(await events.next() == .quality(.good, nil))
        #expect(pair.engines.0.open[0].sources.count == 1)
        pair.clock.advance(by: AudioFallback.shortestPause)
        #expect(await events.next() == .videoResumed)
        try await until("video is sent") {
            pair.engines.0.open[0].sources.count == 2 && pair.reported == [false, true]
        }
        #expect(pair.publisher.hasVideo)
    }

    @Test("without audio fallback, or when media is only late, a publisher continues", arguments: [true, false])
    func noFallback(isAsked: Bool) async throws {
        let pair = try await Pair(id, publishing: .init(audioFallback: isAsked))
        defer { pair.server.finish() }
        let events = pair.publisher.events.makeAsyncIterator()
        pair.judge(.poor, isAsked ? .delay : .loss)
        #expect(await events.next() == .quality(.poor, isAsked ? .delay : .loss))
        pair.clock.advance(by: AudioFallback.warning)
        pair.judge(.good, nil)
        #expect(await events.next() == .quality(.good, nil))
        #expect(pair.reported.isEmpty)
    }

    @Test("without video, a network that is too slow for the audio warns of nothing")
    func audioOnly() async throws {
        let pair = try await Pair(id, publishing: .init(audioFallback: true))
        defer { pair.server.finish() }
        let events = pair.publisher.events.makeAsyncIterator()
        try await pair.publisher.setVideo(false)
        for (level, reason) in [(QualityLevel.poor, QualityReason.loss), (.good, nil)] as [(_, _?)] {
            pair.judge(level, reason)
            guard case .quality = await events.next() else {
                Issue.record("a warning")
                return
            }
        }
    }

    @Test("a stopped video that the application turns off and on is sent again")
    func turnedOn() async throws {
        let pair = try await Pair(id, publishing: .init(audioFallback: true))
        defer { pair.server.finish() }
        let events = pair.publisher.events.makeAsyncIterator()
        pair.judge(.poor, .bandwidth)
        while let event = await events.next(), event != .videoWarning(true) {}
        pair.clock.advance(by: AudioFallback.warning)
        #expect(await events.next() == .videoStopped)
        try await pair.publisher.setVideo(false)
        #expect(!pair.reported.contains(true))
        try await pair.publisher.setVideo(true)
        #expect(pair.reported.last == true)
        try await until("video is sent") { pair.engines.0.open[0].sources.count == 2 }
    }
}
