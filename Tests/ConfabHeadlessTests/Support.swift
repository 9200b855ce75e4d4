import Confab
import Testing

@testable import ConfabHeadless

/// Two peers of two engines, connected over UDP sockets of this host.
struct Pair {
    let one: any MediaPeer
    let other: any MediaPeer

    init() async throws {
        one = try await FileEngine().makePeer(PeerConfiguration())
        other = try await FileEngine().makePeer(PeerConfiguration())
    }

    /// Carries an offer of `from` to `to`, and the answer back.
    static func negotiate(
        _ from: any MediaPeer, _ to: any MediaPeer, restartingICE: Bool = false
    ) async throws -> (offer: String, answer: String) {
        let offer = try await from.offer(restartingICE: restartingICE)
        try await to.accept(offer)
        let answer = try await to.answer()
        try await from.accept(answer)
        return (offer.sdp, answer.sdp)
    }

    func connect() async throws {
        _ = try await Self.negotiate(one, other)
        try await connected()
    }

    func connected() async throws {
        for peer in [one, other] {
            let isConnected = await peer.events.contains(.state(.connected))
            try #require(isConnected)
        }
    }

    func close() async {
        await one.close()
        await other.close()
    }
}

extension MediaPeer {
    func add(
        _ kind: TrackKind, _ direction: MediaDirection, _ source: (any LocalMedia)? = nil
    ) async throws -> TransceiverHandle {
        try await add(TransceiverSetup(kind, direction, source: source))
    }

    /// The mid of a transceiver that a description has named.
    func described(_ handle: TransceiverHandle) async throws -> String { try #require(await mid(of: handle)) }

    func source(_ mid: String) async throws -> EncodedSource {
        try #require(await remote(mid) as? EncodedTrack).source
    }
}
