// Expect: cannot be constructed because it has no accessible initializers
import WebRTC

func make() -> RTCPeerConnection { RTCPeerConnection() }
