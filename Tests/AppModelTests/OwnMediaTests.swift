import Testing

@testable import AppModel
@testable import Confab

/// The camera, the microphone and the screen, with an engine whose devices do what a test says.
@Suite(.timeLimit(.minutes(3))) @MainActor struct OwnMediaTests {
    private let engine = FakeEngine()
    private let clock = FakeClock()
    private let media: OwnMedia
    private final class Heard {
        var events: [CaptureEvent] = []
        var shared: [(any LocalMedia)?] = []
    }
    private let heard = Heard()

    init() {
        media = OwnMedia(engine, clock: clock)
        media.onEvent = { [heard] in heard.events.append($0) }
        media.onShare = { [heard] in heard.shared.append($0) }
    }

    private func until(_ holds: () -> Bool) async throws {
        while !holds() {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// The camera is open, and nothing happened yet.
    private func open() async throws -> FakeDeviceMedia {
        let camera = try await media.open(for: .room, video: true)
        heard.events = []
        return try #require(camera as? FakeDeviceMedia)
    }

    // MARK: The screen

    @Test func aShareIsPublishedAndReported() async throws {
        media.share(true)
        try await until { !heard.events.isEmpty }
        #expect(heard.events == [.shareStarted])
        #expect(heard.shared.map { $0 === engine.media.last } == [true])
        media.share(false)
        #expect(heard.shared.count == 2 && heard.shared[1] == nil && media.screen == nil)
        try await until { engine.media[0].isStopped }
        #expect(heard.events == [.shareStarted], "the person ended it")
    }

    @Test func aShareThatIsNotAllowedIsReported() async throws {
        let trouble = ConfabError(.mediaFailed, "The screen is not shared.")
        engine.failure = trouble
        media.share(true)
        try await until { !heard.events.isEmpty }
        #expect(heard.events == [.shareEnded(trouble)] && heard.shared.isEmpty)
    }

    @Test func aShareThatTheSystemEndsIsReportedBeforeTheCameraIsPublished() async throws {
        media.share(true)
        try await until { media.screen != nil }
        media.onShare = { [heard] in
            #expect(heard.events.last == .shareEnded(.screenEnded))
            heard.shared.append($0)
        }
        engine.media[0].happens(.ended)
        try await until { heard.shared.count == 2 }
        #expect(media.screen == nil)
        engine.media[0].happens(.ended)
        media.endShare(.shareStopped)
        #expect(heard.events.count == 2, "once")
    }

    @Test func aShareThatIsEndedBeforeItBeginsIsStopped() async throws {
        engine.isHeld = true
        media.share(true)
        try await until { engine.isWaiting }
        media.share(false)
        engine.isHeld = false
        try await until { engine.media.first?.isStopped == true }
        #expect(media.screen == nil && heard.events.isEmpty && heard.shared.isEmpty)
    }

    @Test func aShareThatBeginsAgainWaitsForTheEndOfTheOneBefore() async throws {
        media.share(true)
        try await until { media.screen != nil }
        media.share(false)
        media.share(true)
        try await until { heard.events == [.shareStarted, .shareStarted] }
        #expect(!engine.recordsTwice, "the system has one recorder, whose stop would end the new share")
        #expect(engine.media.map(\.isStopped) == [true, false])
        #expect(media.watchedCount == 1, "the one before is not held")
    }

    @Test func aShareThatBeginsAgainDuringThePromptBeginsOnce() async throws {
        engine.isHeld = true
        media.share(true)
        try await until { engine.isWaiting }
        media.share(false)
        media.share(true)
        media.share(false)
        media.share(true)
        engine.isHeld = false
        try await until { heard.events == [.shareStarted] }
        #expect(!engine.recordsTwice && engine.media.map(\.isStopped) == [true, false], "it asks twice at most")
        #expect(heard.shared.map { $0 === engine.media[1] } == [true])
    }

    @Test func aShareDuringTheEndOfAnotherConversationWaits() async throws {
        _ = try await open()
        media.share(true)
        try await until { media.screen != nil }
        media.release(.room)
        media.share(true)
        try await until { engine.media.count == 3 }
        #expect(!engine.recordsTwice)
    }

    @Test func aShareThatTheSystemDoesNotAnswerEndsAfterAMinuteAndCanBeTriedAgain() async throws {
        engine.isHeld = true
        media.share(true)
        try await until { engine.isWaiting }
        clock.pass(59)
        #expect(heard.events.isEmpty, "the person may still think about it")
        clock.pass(1)
        #expect(heard.events == [.shareEnded(.screenSilent)])
        engine.isHeld = false
        try await until { engine.media.first?.isStopped == true }
        #expect(media.screen == nil && heard.shared.isEmpty, "the answer came too late")
        media.share(true)
        try await until { media.screen != nil }
        #expect(heard.events.last == .shareStarted && !engine.recordsTwice)
    }

    @Test func aShareThatBeginsWhileTheOneBeforeIsNotAnsweredBegins() async throws {
        engine.isHeld = true
        media.share(true)
        try await until { engine.isWaiting }
        media.share(false)
        media.share(true)
        clock.pass(60)
        engine.holds = false
        try await until { media.screen != nil }
        #expect(heard.events == [.shareStarted])
        engine.isHeld = false
    }

    @Test func aRecordingThatTheSystemDoesNotEndHoldsUpNoLaterOne() async throws {
        media.share(true)
        try await until { media.screen != nil }
        engine.media[0].isStopHeld = true
        media.share(false)
        media.share(true)
        try await until { engine.media[0].isStopping }
        clock.pass(10)
        try await until { engine.media.count == 2 && media.screen != nil }
        #expect(heard.events == [.shareStarted, .shareStarted])
        engine.media[0].isStopHeld = false
    }

    @Test func theEndOfAConversationEndsTheShare() async throws {
        let camera = try await open()
        media.share(true)
        try await until { media.screen != nil }
        media.release(.room)
        try await until { camera.isStopped && engine.media[1].isStopped }
        #expect(media.screen == nil && media.local == nil && media.watchedCount == 0)
    }

    // MARK: The camera

    @Test func aCameraThatTheSystemTakesAwayIsReportedUntilAnotherIsOpened() async throws {
        let camera = try await open()
        camera.happens(.interrupted(true))
        try await until { heard.events == [.cameraInterrupted(true)] }
        media.release(.room)
        #expect(heard.events.suffix(2) == [.cameraInterrupted(false), .cameraFaces(.front)])
        _ = try await open()
        camera.happens(.interrupted(true))
        for _ in 0..<100 { await Task.yield() }
        #expect(heard.events.isEmpty, "it is not used any more")
    }

    @Test func devicesThatAreOpenedTwiceAtOnceAreCapturedOnce() async throws {
        engine.isHeld = true
        let opened = (0..<2).map { _ in
            Task { [media] in
                let camera = try await media.open(for: .room, video: true)
                return ObjectIdentifier(camera)
            }
        }
        try await until { engine.isWaiting }
        for _ in 0..<100 { await Task.yield() }
        engine.isHeld = false
        #expect(try await opened[0].value == opened[1].value)
        #expect(engine.captured.count == 1 && engine.media.allSatisfy { !$0.isStopped })
    }

    @Test func devicesThatFailToOpenAreTriedAgain() async throws {
        let trouble = ConfabError(.mediaFailed, "The camera is not allowed.")
        engine.failure = trouble
        await #expect(throws: trouble) { _ = try await media.open(for: .room, video: true) }
        engine.failure = nil
        _ = try await open()
    }

    @Test func theOtherCameraIsReported() async throws {
        let camera = try await open()
        media.switchCamera()
        try await until { heard.events == [.cameraFaces(.back)] }
        camera.failure = ConfabError(.mediaFailed, "This device has one camera.")
        media.switchCamera()
        try await until { camera.switches == 2 }
        for _ in 0..<100 { await Task.yield() }
        #expect(heard.events == [.cameraFaces(.back)], "it is still used")
    }

    @Test func theCameraFollowsTheDeviceTheRoomAndThePerson() async throws {
        let camera = try await open()
        media.conditions.thermal = .serious
        try await until { camera.requests.last == CameraRequest(width: 640, height: 480, frameRate: 20) }
        media.conditions.remotes = 2
        try await until { camera.requests.last == CameraRequest(width: 352, height: 288, frameRate: 20) }
        media.conditions.hasLayers = true
        media.size = .size1280x720
        try await until { camera.requests.last == CameraRequest(width: 1280, height: 720, frameRate: 20) }
        let count = camera.requests.count
        media.size = .size1280x720
        media.release(.room)
        #expect(media.conditions.remotes == 1 && camera.requests.count == count)
        _ = try await media.open(for: .call, video: true)
        #expect(
            engine.captured.last
                == .camera(CapturePreset(size: VideoSize(width: 1280, height: 720), frameRate: 20)))
    }

    // MARK: A screen with a voice

    @Test func aSharedScreenIsSentWithTheMicrophone() async throws {
        let camera = try await open()
        let screen = FakeDeviceMedia(isScreen: true)
        let shared = SharedScreen(sound: camera, picture: screen)
        #expect(shared.hasAudio && shared.video === screen.video)
        await shared.setEnabled(audio: false, video: nil)
        await shared.setEnabled(audio: nil, video: true)
        #expect(camera.enabled.last?.audio == false && screen.enabled.last?.video == true)
        await shared.stop()
        #expect(screen.isStopped && !camera.isStopped, "the voice continues")

        let peer = try await ConfiguredEngine(engine).makePeer(PeerConfiguration(servers: [], relayOnly: false))
        let audio = try await peer.add(TransceiverSetup(.audio, .sendOnly, source: shared))
        let video = try await peer.add(TransceiverSetup(.video, .sendOnly, source: camera))
        try await peer.replace(video, with: shared)
        try await peer.replace(audio, with: shared)
        #expect(engine.peer.sources.map { $0 === camera } == [true, true, false, true])
        #expect(engine.peer.sources[2] === screen)
    }
}

/// Devices that a test holds in its hand.
@MainActor private final class FakeDeviceMedia: SwitchableCamera, WatchedMedia {
    nonisolated let hasAudio: Bool
    nonisolated let video: (any VideoSource)? = FakeVideo()
    nonisolated let size: VideoSize? = nil
    nonisolated let changes: AsyncStream<CaptureChange>
    private let change: AsyncStream<CaptureChange>.Continuation
    var failure: ConfabError?
    private(set) var isStopped = false
    private(set) var switches = 0
    private(set) var requests: [CameraRequest] = []
    private(set) var enabled: [(audio: Bool?, video: Bool?)] = []

    init(isScreen: Bool) {
        hasAudio = !isScreen
        (changes, change) = AsyncStream.makeStream()
    }

    func happens(_ event: CaptureChange) { change.yield(event) }
    func setEnabled(audio: Bool?, video: Bool?) async { enabled.append((audio, video)) }
    /// Whether the end waits.
    var isStopHeld = false
    private(set) var isStopping = false
    func stop() async {
        isStopping = true
        while isStopHeld { await Task.yield() }
        // The system takes its time.
        for _ in 0..<10 { await Task.yield() }
        isStopped = true
    }
    func switchCamera() async throws(ConfabError) -> CameraFacing {
        switches += 1
        if let failure { throw failure }
        return .back
    }
    func change(to request: CameraRequest) async throws(ConfabError) { requests.append(request) }
}

@MainActor private final class FakeEngine: MediaEngine {
    let peer = FakePeer()
    var failure: ConfabError?
    /// Whether captures wait.
    var isHeld = false
    /// Whether captures that begin now wait.
    var holds = true
    private(set) var isWaiting = false
    private(set) var media: [FakeDeviceMedia] = []
    private(set) var captured: [CaptureRequest] = []
    /// Whether a recording began before the one before it was stopped.
    private(set) var recordsTwice = false

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer { peer }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        if let failure { throw failure }
        isWaiting = true
        let holds = holds
        while isHeld, holds, !Task.isCancelled { await Task.yield() }
        isWaiting = false
        if request == .screen, media.contains(where: { !$0.hasAudio && !$0.isStopped }) { recordsTwice = true }
        captured.append(request)
        let new = FakeDeviceMedia(isScreen: request == .screen)
        media.append(new)
        return new
    }
}

/// A connection that records what it is given to send.
@MainActor private final class FakePeer: MediaPeer {
    nonisolated let events = AsyncStream<PeerEvent> { $0.finish() }
    private(set) var sources: [(any LocalMedia)?] = []

    func add(_ transceiver: TransceiverSetup) async throws(ConfabError) -> TransceiverHandle {
        sources.append(transceiver.source)
        return TransceiverHandle(number: sources.count)
    }
    func replace(
        _ transceiver: TransceiverHandle, with source: (any LocalMedia)?
    ) async throws(ConfabError) { sources.append(source) }
    func setDirection(_ direction: MediaDirection, of transceiver: TransceiverHandle) async {}
    func activate(_ rids: [String]?, on transceiver: TransceiverHandle) async {}
    func mid(of transceiver: TransceiverHandle) async -> String? { nil }
    func offer(restartingICE: Bool) async throws(ConfabError) -> PeerDescription { PeerDescription(.offer, sdp: "") }
    func answer() async throws(ConfabError) -> PeerDescription { PeerDescription(.answer, sdp: "") }
    func accept(_ description: PeerDescription) async throws(ConfabError) {}
    func rollback() async throws(ConfabError) {}
    func addCandidate(_ candidate: PeerCandidate?) async {}
    func setServers(_ servers: [PeerConfiguration.Server], relayOnly: Bool) async {}
    func remote(_ mid: String) async -> (any RemoteMedia)? { nil }
    func expectFrame(_ mid: String) async {}
    func statistics() async -> [Statistic] { [] }
    func close() async {}
}
