import WebRTC

// WebRTC's objects are proxies that dispatch to its own threads, so they can be used from any thread.
extension RTCMediaStreamTrack: @retroactive @unchecked Sendable {}
extension RTCPeerConnection: @retroactive @unchecked Sendable {}
extension RTCPeerConnectionFactory: @retroactive @unchecked Sendable {}
extension RTCRtpReceiver: @retroactive @unchecked Sendable {}
extension RTCRtpTransceiver: @retroactive @unchecked Sendable {}
extension RTCVideoSource: @retroactive @unchecked Sendable {}

// These objects do not change after their creation.
extension RTCIceCandidate: @retroactive @unchecked Sendable {}
extension RTCSessionDescription: @retroactive @unchecked Sendable {}
extension RTCStatisticsReport: @retroactive @unchecked Sendable {}
extension RTCVideoFrame: @retroactive @unchecked Sendable {}
