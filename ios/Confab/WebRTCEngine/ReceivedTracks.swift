import Foundation
import WebRTC

/// What a peer connection receives. It keeps WebRTC's objects alive, because these are wrappers, and the end of a wrapper has
/// effects: that of a receiver ends the reports of first packets, and that of a track removes its renderers. For the same reason
/// `RTCPeerConnection.transceivers` is not read: it makes new wrappers.
struct ReceivedTracks {
    struct Arrival {
        var transceiver: RTCRtpTransceiver
        var streamID: String?
    }

    /// Each renegotiation can add one. The oldest have had their first packet long ago.
    private static let maxKept = 256

    private(set) var transceivers: [RTCRtpTransceiver] = []
    private var receivers: [(receiver: RTCRtpReceiver, streamID: String?)] = []
    private var firstFrames: [String: (track: RTCVideoTrack, renderer: FirstFrame)] = [:]

    /// WebRTC says that a transceiver receives. The arrival is complete with its receiver, which comes before or after this.
    mutating func start(_ transceiver: RTCRtpTransceiver) -> Arrival? {
        transceivers.append(transceiver)
        if transceivers.count > Self.maxKept { transceivers.removeFirst() }
        guard let known = receivers.last(where: { $0.receiver.isEqual(transceiver.receiver) }) else { return nil }
        return Arrival(transceiver: transceiver, streamID: known.streamID)
    }

    mutating func add(_ receiver: RTCRtpReceiver, _ streamID: String?) -> Arrival? {
        receivers.append((receiver, streamID))
        if receivers.count > Self.maxKept { receivers.removeFirst() }
        return transceiver(of: receiver).map { Arrival(transceiver: $0, streamID: streamID) }
    }

    func transceiver(of receiver: RTCRtpReceiver) -> RTCRtpTransceiver? {
        transceivers.last { $0.receiver.isEqual(receiver) }
    }

    mutating func watchFirstFrame(of transceiver: RTCRtpTransceiver, _ mid: String, _ observer: PeerObserver) {
        guard firstFrames[mid] == nil, let track = transceiver.receiver.track as? RTCVideoTrack else { return }
        let renderer = FirstFrame(mid: mid, observer: observer)
        firstFrames[mid] = (track, renderer)
        track.add(renderer)
    }

    /// Another stream will arrive over this transceiver, whose first frame is to be reported.
    func expectFrame(_ mid: String) { firstFrames[mid]?.renderer.expectFrame() }
}
