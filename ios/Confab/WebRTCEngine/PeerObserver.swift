import AppModel
import Confab
import Foundation
import WebRTC

/// Receives the events of a peer connection on WebRTC's threads, and forwards them in order. It never calls back into
/// WebRTC.
final class PeerObserver: NSObject, Sendable {
    /// An event of the peer connection or of one of its receivers.
    enum Observation: Sendable {
        case state(RTCPeerConnectionState)
        case candidate(RTCIceCandidate)
        case negotiationNeeded
        case receiving(RTCRtpTransceiver)
        case added(RTCRtpReceiver, streamID: String?)
        case firstPacket(RTCRtpReceiver)
        case firstFrame(mid: String)
    }

    let observations: AsyncStream<Observation>
    private let continuation: AsyncStream<Observation>.Continuation

    override init() {
        (observations, continuation) = AsyncStream.makeStream(
            bufferingPolicy: .bufferingOldest(EngineRules.maxUnreadEvents))
        super.init()
    }

    func observe(_ observation: Observation) { continuation.yield(observation) }
    func finish() { continuation.finish() }
}

extension PeerObserver: RTCPeerConnectionDelegate {
    func peerConnection(_ peerConnection: RTCPeerConnection, didChange stateChanged: RTCSignalingState) {}
    func peerConnection(_ peerConnection: RTCPeerConnection, didAdd stream: RTCMediaStream) {}
    func peerConnection(_ peerConnection: RTCPeerConnection, didRemove stream: RTCMediaStream) {}
    func peerConnectionShouldNegotiate(_ peerConnection: RTCPeerConnection) { observe(.negotiationNeeded) }
    func peerConnection(_ peerConnection: RTCPeerConnection, didChange newState: RTCIceConnectionState) {}
    func peerConnection(_ peerConnection: RTCPeerConnection, didChange newState: RTCIceGatheringState) {}
    func peerConnection(_ peerConnection: RTCPeerConnection, didGenerate candidate: RTCIceCandidate) {
        observe(.candidate(candidate))
    }
    func peerConnection(_ peerConnection: RTCPeerConnection, didRemove candidates: [RTCIceCandidate]) {}
    func peerConnection(_ peerConnection: RTCPeerConnection, didOpen dataChannel: RTCDataChannel) {}
    func peerConnection(_ peerConnection: RTCPeerConnection, didChange newState: RTCPeerConnectionState) {
        observe(.state(newState))
    }
    func peerConnection(_ peerConnection: RTCPeerConnection, didStartReceivingOn transceiver: RTCRtpTransceiver) {
        observe(.receiving(transceiver))
    }
    func peerConnection(
        _ peerConnection: RTCPeerConnection, didAdd rtpReceiver: RTCRtpReceiver, streams mediaStreams: [RTCMediaStream]
    ) {
        // Set the delegate here, before any packet can arrive. The peer retains the receiver, because releasing it
        // would stop the reports.
        rtpReceiver.delegate = self
        observe(.added(rtpReceiver, streamID: mediaStreams.first?.streamId))
    }
}

extension PeerObserver: RTCRtpReceiverDelegate {
    func rtpReceiver(_ rtpReceiver: RTCRtpReceiver, didReceiveFirstPacketFor mediaType: RTCRtpMediaType) {
        observe(.firstPacket(rtpReceiver))
    }
}

/// Reports the first frame of a track. It stays attached afterwards, because detaching it would call WebRTC from a
/// decoder's thread.
final class FirstFrame: NSObject, Sendable {
    private let mid: String
    private let observer: PeerObserver
    private let news = Locked(FrameSizeChange())

    init(mid: String, observer: PeerObserver) {
        (self.mid, self.observer) = (mid, observer)
        super.init()
    }

    /// Makes the next frame count as the first one, so that it is reported too.
    func expectFrame() { news.withValue { $0.expectFirst() } }
}

extension FirstFrame: RTCVideoRenderer {
    func setSize(_ size: CGSize) {}

    func renderFrame(_ frame: RTCVideoFrame?) {
        guard let size = frame?.uprightSize else { return }
        if news.withValue({ $0.shown(size).isFirst }) { observer.observe(.firstFrame(mid: mid)) }
    }
}
