import Confab
import ConfabHeadless
import Peers
import RTC
import Synchronization

/// The media engine of one bot. It publishes the bot's clip. If a media connection fails, it reports the reason once.
final class BotEngine: MediaEngine {
    /// The media that the bot publishes.
    let media: FileMedia
    /// The engine of all bots of the process.
    private let shared: FileEngine
    private let tell: @Sendable (String) -> Void
    private let hasReported = Mutex(false)

    init(_ shared: FileEngine, _ clip: MediaClip, tell: @escaping @Sendable (String) -> Void) {
        (self.shared, media, self.tell) = (shared, FileMedia(clip), tell)
    }

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        try await shared.makePeer(configuration) { [weak self] in self?.failed($0) }
    }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia { media }

    private func failed(_ failure: TransportFailure) {
        let isFirst = hasReported.withLock { hasReported in
            defer { hasReported = true }
            return !hasReported
        }
        guard isFirst else { return }
        switch failure {
        case .noPath: tell("No media: the server's media port cannot be reached over UDP.")
        case .dtls: tell("No media: the DTLS handshake with the server failed.")
        }
    }
}
