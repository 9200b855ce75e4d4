// Expect: missing return
import WebRTC

func angle(_ rotation: RTCVideoRotation) -> Int {
    if rotation == ._90 { return 90 }
}
