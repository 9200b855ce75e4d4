import AppModel
import Confab
import Foundation
import WebRTC

/// The camera, the screen or the microphone, as tracks of WebRTC.
final class WebRTCMedia: LocalMedia {
    private let audio: RTCAudioTrack?
    private let videoTrack: RTCVideoTrack?
    let capture: MediaCapture
    let video: (any VideoSource)?

    init(audio: RTCAudioTrack?, video track: RTCVideoTrack?, capture: (any VideoCapture)?) {
        (self.audio, videoTrack, self.capture) = (audio, track, MediaCapture(capture))
        video = track.map(TrackSource.init)
    }

    var hasAudio: Bool { audio != nil }
    var size: VideoSize? { capture.size }

    func track(_ kind: TrackKind) -> RTCMediaStreamTrack? {
        switch kind {
        case .audio: audio
        case .video: videoTrack
        }
    }

    func setEnabled(audio isAudioOn: Bool?, video isVideoOn: Bool?) async {
        if let isAudioOn { audio?.isEnabled = isAudioOn }
        guard let isVideoOn else { return }
        videoTrack?.isEnabled = isVideoOn
        await capture.setEnabled(isVideoOn)
    }

    func stop() async {
        audio?.isEnabled = false
        videoTrack?.isEnabled = false
        await capture.stop()
    }
}

extension WebRTCMedia: WatchedMedia {
    var changes: AsyncStream<CaptureChange> { capture.changes }
}

extension WebRTCMedia: SwitchableCamera {
    func switchCamera() async throws(ConfabError) -> CameraFacing { try await capture.flip() }
    func change(to request: CameraRequest) async throws(ConfabError) { try await capture.change(to: request) }
}

/// The audio or video that a peer connection receives.
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
