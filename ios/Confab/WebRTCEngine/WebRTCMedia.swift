import AppModel
import Confab
import Foundation
import WebRTC

/// The camera, the screen or the microphone as WebRTC tracks. ``CapturedMedia`` defines what turning them off does.
final class WebRTCMedia: LocalMedia {
    let captured: CapturedMedia<RTCMediaStreamTrack>
    let video: (any VideoSource)?

    init(audio: RTCAudioTrack?, video track: RTCVideoTrack?, capture: (any VideoCapture)?) {
        captured = CapturedMedia(audio: audio, video: track, capture: capture)
        video = track.map(TrackSource.init)
    }

    var hasAudio: Bool { captured.audio != nil }
    var size: VideoSize? { captured.size }
    func setEnabled(audio: Bool?, video: Bool?) async { await captured.setEnabled(audio: audio, video: video) }
    func stop() async { await captured.stop() }
}

extension RTCMediaStreamTrack: @retroactive SentTrack {}

extension WebRTCMedia: WatchedMedia {
    var changes: AsyncStream<CaptureChange> { captured.changes }
}

extension WebRTCMedia: SwitchableCamera {
    func switchCamera() async throws(ConfabError) -> CameraFacing { try await captured.flip() }
    func change(to request: CameraRequest) async throws(ConfabError) { try await captured.change(to: request) }
}

/// The audio or video received over a peer connection.
final class WebRTCRemoteMedia: RemoteMedia {
    let kind: TrackKind
    let video: (any VideoSource)?
    private let track: RTCMediaStreamTrack

    init(_ track: RTCMediaStreamTrack, kind: TrackKind) {
        (self.track, self.kind) = (track, kind)
        video = (track as? RTCVideoTrack).map(TrackSource.init)
    }

    func setEnabled(_ enabled: Bool) async { track.isEnabled = enabled }

    func setVolume(_ volume: Double) async {
        (track as? RTCAudioTrack)?.source.volume = EngineRules.volume(volume)
    }
}
