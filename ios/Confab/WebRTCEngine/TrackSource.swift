import Confab
import ConfabUI
import WebRTC

/// A video track that views can show.
final class TrackSource: SurfaceSource {
    let track: RTCVideoTrack

    init(_ track: RTCVideoTrack) { self.track = track }

    @MainActor func makeSurface() -> any VideoSurface { SampleBufferSurface(track) }
}
