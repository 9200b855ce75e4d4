// Expect: must be written 'any RTCVideoRenderer'
import WebRTC

func show(_ track: RTCVideoTrack, in renderer: RTCVideoRenderer) { track.add(renderer) }
