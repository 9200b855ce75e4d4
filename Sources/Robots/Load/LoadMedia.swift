import Peers
import RTC

/// The sizes of the packets that publishers in a load test send, and when they send them.
public enum LoadPackets: String, CaseIterable, Sendable {
    /// Every packet of video has the same size, and every packet of audio, and each frame is sent at once (`LoadSource`).
    case uniform
    /// As libwebrtc packetizes and paces them (`LibwebrtcPackets`).
    case libwebrtc
}

/// What one publisher in a load test sends.
struct LoadMedia: Sendable {
    var packets = LoadPackets.uniform
    /// An offset of the sending times, so that the publishers do not all send at the same time.
    var phase = MediaInterval.zero
    /// Determines the sizes of the packets, unless they are uniform.
    var seed: UInt64 = 0

    /// Creates the source of a connection that has already offered the sections "a" and "v".
    func source(of connection: RobotConnection, now: MediaTime) -> any CountedSource {
        switch packets {
        case .uniform: LoadSource(of: connection, now: now, phase: phase)
        case .libwebrtc: LibwebrtcSource(of: connection, packets: LibwebrtcPackets(seed: seed, from: now + phase))
        }
    }
}

/// A source whose keyframes and pauses a load test counts.
protocol CountedSource: RobotSource {
    /// The number of times that the source was too late and had to skip time.
    var pauses: Int { get }
    var keyframes: Int { get }
}
