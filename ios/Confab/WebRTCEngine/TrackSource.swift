import AppModel
import Confab
import ConfabUI
import WebRTC

/// A video track that views can show.
final class TrackSource: SurfaceSource {
    let track: RTCVideoTrack
    private let renderer = WebRTCEngine.renderer.value

    init(_ track: RTCVideoTrack) { self.track = track }

    @MainActor func makeSurface(inBackground: Bool) -> any VideoSurface {
        switch renderer.forSurface(inBackground: inBackground) {
        case .sampleBuffer: SampleBufferSurface(track)
        case .metal: MetalSurface(track)
        }
    }
}
