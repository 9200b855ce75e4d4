import Confab
import Synchronization
import Testing

@testable import AppModel

/// A capture without cameras, such as a screen.
private actor PlainCapture: VideoCapture {
    nonisolated let size: VideoSize? = VideoSize(width: 640, height: 480)
    nonisolated let changes: AsyncStream<CaptureChange>
    private(set) var log: [String] = []

    init() {
        changes = AsyncStream { stream in
            stream.yield(.ended)
            stream.finish()
        }
    }

    func setEnabled(_ enabled: Bool) { log.append("enabled \(enabled)") }
    func stop() { log.append("stopped") }
}

/// A device with these cameras, which are used in turn.
private final class Cameras: SwitchableCamera {
    private let facings: [CameraFacing]
    @MainActor private(set) var index = 0

    init(_ facings: [CameraFacing]) { self.facings = facings }

    let hasAudio = false
    let video: (any VideoSource)? = nil
    let size: VideoSize? = nil
    func setEnabled(audio: Bool?, video: Bool?) async {}
    func stop() async {}
    @MainActor func switchCamera() async throws(ConfabError) -> CameraFacing {
        index = (index + 1) % facings.count
        return facings[index]
    }
    func change(to request: CameraRequest) async throws(ConfabError) {}
}

/// A track that only remembers whether it is on.
private final class FakeTrack: SentTrack {
    private let state = Mutex(true)
    var isEnabled: Bool {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

private final class ForeignMedia: LocalMedia {
    let hasAudio = true
    let video: (any VideoSource)? = nil
    let size: VideoSize? = nil
    func setEnabled(audio: Bool?, video: Bool?) async {}
    func stop() async {}
}

@Suite(.timeLimit(.minutes(3))) struct EngineRulesTests {
    @Test func vp8IsPreferredBecauseItHasLayers() {
        #expect(EngineRules.preferredCodec(among: ["H264", "VP8", "AV1"]) == 1)
        #expect(EngineRules.preferredCodec(among: ["H264"]) == nil)
    }

    @Test(arguments: [(0.5, 0.5), (-1, 0), (3, 1), (Double.infinity, 1), (.nan, 1)])
    func aVolumeIsFromZeroToOne(wanted: Double, volume: Double) {
        #expect(EngineRules.volume(wanted) == volume)
    }

    @Test(arguments: [(4.0, 4.0), (1, 1), (0.5, 1), (0, 1), (.infinity, 1), (.nan, 1)])
    func aLayerIsNeverEnlarged(wanted: Double, scale: Double) {
        #expect(EngineRules.scale(wanted) == scale)
    }

    @Test func theWantedLayersAreSent() {
        #expect(EngineRules.sends(rid: "h", of: nil) && EngineRules.sends(rid: nil, of: nil))
        #expect(EngineRules.sends(rid: "h", of: ["h", "l"]) && !EngineRules.sends(rid: "m", of: ["h", "l"]))
        #expect(!EngineRules.sends(rid: nil, of: []), "none at all stops a video without layers")
    }

    @Test func theEndOfCandidatesIsNotPassedOn() {
        #expect(RemoteCandidate(nil) == nil)
        #expect(RemoteCandidate(PeerCandidate("", mid: "0")) == nil)
        let candidate = RemoteCandidate(PeerCandidate("candidate:1", mid: "0", lineIndex: 2))
        #expect(candidate?.text == "candidate:1" && candidate?.mid == "0" && candidate?.lineIndex == 2)
        #expect(RemoteCandidate(PeerCandidate("candidate:1"))?.lineIndex == 0)
        #expect(RemoteCandidate(PeerCandidate("candidate:1", lineIndex: .max))?.lineIndex == .max)
    }

    @Test func mediaOfAnotherEngineIsNotSent() throws {
        #expect(try EngineRules.ownMedia(nil) as Cameras? == nil)
        let cameras = Cameras([.front])
        #expect(try EngineRules.ownMedia(cameras) as Cameras? === cameras)
        #expect(throws: ConfabError.foreignMedia) { try EngineRules.ownMedia(ForeignMedia()) as Cameras? }
    }

    @Test func whatAPersonReadsSaysWhatToDo() {
        let cause = ConfabError(.mediaFailed, "The cause.")
        let errors: [ConfabError] = [
            .foreignMedia, .tooManyConnections, .tooManyTracks, .noFiles, .noCamera, .noCameraFormat,
            .notNegotiated(cause), .cameraNotStarted(cause), .screenNotShared(cause),
        ]
        #expect(errors.allSatisfy { $0.code == .mediaFailed && $0.message.hasSuffix(".") })
        #expect(errors.suffix(3).allSatisfy { $0.cause != nil })
        #expect(errors.filter(\.isRetryable) == [.notNegotiated(cause), .cameraNotStarted(cause)])
    }

    // MARK: Cameras

    private let small = CameraFormat(width: 352, height: 288, frameRates: [1...30], isNV12: true)
    private let large = CameraFormat(width: 1280, height: 720, frameRates: [1...30], isNV12: true)
    private let request = CameraRequest(CapturePreset(size: VideoSize(width: 640, height: 480), frameRate: 20))

    @Test func aCameraAndItsFormatAreSelected() throws {
        let cameras = [
            CameraDescription(facing: .back, formats: [large]),
            CameraDescription(facing: .front, formats: [small, large]),
        ]
        let selection = CameraSelection(
            camera: 1, format: 1, frameRate: 20, size: VideoSize(width: 1280, height: 720), facing: .front)
        #expect(try request.select(.front, from: cameras) == selection)
    }

    @Test func aCameraThatIsNotAPartOfTheDeviceCountsAsTheWantedOne() throws {
        let cameras = [CameraDescription(facing: nil, formats: [large])]
        #expect(try request.select(.back, from: cameras).facing == .back)
        let only = [CameraDescription(facing: .front, formats: [large])]
        #expect(try request.select(.back, from: only).facing == .front, "the only one")
    }

    @Test func withoutACameraOrAFormatThePersonIsNotified() {
        #expect(throws: ConfabError.noCamera) { try request.select(.front, from: []) }
        let broken = [CameraDescription(facing: .front, formats: [])]
        #expect(throws: ConfabError.noCameraFormat) { try request.select(.front, from: broken) }
    }

    @Test func aCameraOfOneSideIsUsedOrRefused() async throws {
        let both = Cameras([.front, .back])
        try await both.use(.back)
        #expect(await both.index == 1)
        try await both.use(.back)
        #expect(await both.index == 1, "it is the one already")
        let one = Cameras([.front])
        try await one.use(.front)
        await #expect(throws: ConfabError.self) { try await one.use(.back) }
    }

    // MARK: Captures

    @Test func aMicrophoneAloneHasNothingToCapture() async throws {
        let capture = CapturedMedia(audio: FakeTrack(), video: nil, capture: nil)
        for await change in capture.changes { Issue.record("\(change)") }
        #expect(capture.size == nil)
        #expect(try await capture.flip() == .front)
        try await capture.change(to: request)
        await capture.setEnabled(audio: nil, video: false)
        #expect(capture.track(.audio)?.isEnabled == true && capture.track(.video) == nil)
        await capture.setEnabled(audio: false, video: nil)
        #expect(capture.track(.audio)?.isEnabled == false)
        await capture.setEnabled(audio: true, video: nil)
        await capture.stop()
        #expect(capture.track(.audio)?.isEnabled == false)
    }

    @Test func aScreenHasNoCameraToSwitch() async throws {
        let screen = PlainCapture()
        let capture = CapturedMedia(audio: nil, video: FakeTrack(), capture: screen)
        #expect(capture.size == VideoSize(width: 640, height: 480))
        #expect(try await capture.flip() == .front)
        try await capture.change(to: request)
        await capture.setEnabled(audio: false, video: nil)
        #expect(await screen.log.isEmpty && capture.track(.video)?.isEnabled == true, "only the voice is muted")
        await capture.setEnabled(audio: nil, video: false)
        #expect(capture.track(.video)?.isEnabled == false)
        await capture.setEnabled(audio: nil, video: true)
        #expect(capture.track(.video)?.isEnabled == true)
        await capture.stop()
        #expect(capture.track(.video)?.isEnabled == false)
        #expect(await screen.log == ["enabled false", "enabled true", "stopped"])
        for await change in capture.changes { #expect(change == .ended) }
    }
}
