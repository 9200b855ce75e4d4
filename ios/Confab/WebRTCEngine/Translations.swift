import AppModel
import Confab
import Foundation
import WebRTC

extension RTCMediaConstraints {
    static var none: RTCMediaConstraints {
        RTCMediaConstraints(mandatoryConstraints: nil, optionalConstraints: nil)
    }
}

extension RTCRtpTransceiver {
    /// The `mid`; nil before the first description, when WebRTC leaves it empty.
    var knownMid: String? { mid.isEmpty ? nil : mid }
    var kind: TrackKind { mediaType == .audio ? .audio : .video }
}

extension PeerConfiguration {
    var native: RTCConfiguration {
        let configuration = RTCConfiguration()
        configuration.use(servers, relayOnly: relayOnly)
        // The server uses one port for audio, video and RTCP (RFC 9143, RFC 5761).
        configuration.bundlePolicy = .maxBundle
        configuration.rtcpMuxPolicy = .require
        // Also use TCP, because some networks block UDP.
        configuration.tcpCandidatePolicy = .enabled
        // The device may change networks during a call. With this policy, WebRTC never reports the end of gathering.
        configuration.continualGatheringPolicy = .gatherContinually
        configuration.sdpSemantics = .unifiedPlan
        return configuration
    }
}

extension RTCConfiguration {
    func use(_ servers: [PeerConfiguration.Server], relayOnly: Bool) {
        iceServers = servers.map(\.native)
        iceTransportPolicy = relayOnly ? .relay : .all
    }
}

extension PeerConfiguration.Server {
    var native: RTCIceServer { RTCIceServer(urlStrings: urls, username: username, credential: credential) }
}

extension Layer {
    var native: RTCRtpEncodingParameters {
        let encoding = RTCRtpEncodingParameters()
        encoding.rid = rid
        encoding.scaleResolutionDownBy = NSNumber(value: EngineRules.scale(scale))
        encoding.maxBitrateBps = maxBitrate.map { NSNumber(value: $0) }
        encoding.maxFramerate = maxFrameRate.map { NSNumber(value: $0) }
        return encoding
    }
}

extension MediaDirection {
    var native: RTCRtpTransceiverDirection {
        switch self {
        case .sendOnly: .sendOnly
        case .receiveOnly: .recvOnly
        case .sendAndReceive: .sendRecv
        case .inactive: .inactive
        }
    }
}

extension TrackKind {
    var native: RTCRtpMediaType {
        switch self {
        case .audio: .audio
        case .video: .video
        }
    }
}

extension PeerDescription.Kind {
    var native: RTCSdpType {
        switch self {
        case .offer: .offer
        case .answer: .answer
        }
    }
}

extension PeerState {
    init(_ state: RTCPeerConnectionState) {
        switch state {
        case .new: self = .new
        case .connecting: self = .connecting
        case .connected: self = .connected
        case .disconnected: self = .disconnected
        case .failed: self = .failed
        case .closed: self = .closed
        @unknown default: self = .failed
        }
    }
}

extension PeerCandidate {
    init(_ candidate: RTCIceCandidate) {
        self.init(candidate.sdp, mid: candidate.sdpMid, lineIndex: Int(candidate.sdpMLineIndex))
    }
}
