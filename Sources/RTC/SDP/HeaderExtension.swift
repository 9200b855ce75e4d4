/// A supported RTP header extension. The raw value is its URI.
public enum HeaderExtension: String, Hashable, Sendable, CaseIterable {
    /// The mid of the packet's section (RFC 9143 §15).
    case mid = "urn:ietf:params:rtp-hdrext:sdes:mid"
    /// The RID of the packet's simulcast layer (RFC 8852 §4.1).
    case rtpStreamID = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
    /// The RID of the simulcast layer that a retransmission belongs to (RFC 8852 §4.2).
    case repairedRtpStreamID = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
    case absSendTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    case transportWideCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
    /// The audio level (RFC 6464).
    case audioLevel = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    /// The orientation of the video (3GPP TS 26.114 §7.4.5). Answers do not accept it, because Firefox does not support
    /// it: video that relies on it for rotation would be sideways there. Without it, publishers rotate the video before
    /// they encode it.
    case videoOrientation = "urn:3gpp:video-orientation"
    /// The dependency descriptor (appendix A of the AV1 RTP specification). It is not forwarded to subscribers, because
    /// its frame numbers belong to one source, and a decoder would drop the keyframe of the next source.
    case dependencyDescriptor =
        "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
    case playoutDelay = "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay"
    case absCaptureTime = "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time"

    /// Returns whether answers accept the extension. The server adds neither RIDs nor dependency descriptors to the
    /// packets that it sends, so it accepts these extensions only from publishers.
    func isAnswered(_ role: AnswerRole) -> Bool {
        switch self {
        case .rtpStreamID, .repairedRtpStreamID, .dependencyDescriptor: role == .receive
        case .absSendTime, .transportWideCC, .mid, .audioLevel, .playoutDelay, .absCaptureTime: true
        case .videoOrientation: false
        }
    }
}
