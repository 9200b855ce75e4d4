// Expect: sending 'self.connection' risks causing data races
import Foundation
import WebRTC

final class Statistics {
    func read(_ connection: RTCPeerConnection) async {}
}

actor Peer {
    let connection: RTCPeerConnection
    let statistics = Statistics()

    init(connection: sending RTCPeerConnection) { self.connection = connection }

    func report() async { await read(connection) }

    @concurrent nonisolated func read(_ connection: RTCPeerConnection) async {}
}
