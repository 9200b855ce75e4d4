import Confab
import Foundation
import Peers
import RTC
import Synchronization

/// A media engine for programs on Linux. It sends encoded files and frames, and receives encoded frames. It neither
/// encodes nor decodes.
///
/// Files are VP8 in IVF or Opus in Ogg. Several VP8 files of different sizes are the simulcast layers of one video.
/// The engine has one thread, which runs while it has a connection.
///
/// ```swift
/// let engine = FileEngine(publishing: URL(filePath: "film.ivf"))
/// let client = ConfabClient(server: url, media: engine)
/// ```
///
/// The engine connects over UDP, without STUN and TURN: the other peer must be reachable directly, as a server is, or
/// must be able to reach this host.
public final class FileEngine: MediaEngine {
    /// A weak reference to the thread that the engine's connections share.
    private struct Shared {
        weak var thread: PeerThread?
    }

    private let files: [URL]
    private let isIPv6: Bool
    private let shared = Mutex(Shared())

    /// Creates an engine.
    ///
    /// - Parameter file: the file that a capture of a camera or a microphone reads; nil for none.
    public convenience init(publishing file: URL? = nil) {
        self.init(publishing: file.map { [$0] } ?? [])
    }

    /// Creates an engine that publishes several files at the same time.
    ///
    /// - Parameters:
    ///   - files: at most one Ogg file with Opus, and at most three IVF files with VP8, which are layers of one video.
    ///   - isIPv6: whether connections use IPv6 instead of IPv4.
    public init(publishing files: [URL], isIPv6: Bool = false) {
        (self.files, self.isIPv6) = (files, isIPv6)
    }

    /// Creates a peer connection with its own UDP socket.
    ///
    /// - Throws: an error with the code `media_failed` if only TURN is allowed, or if no more sockets can be opened.
    public func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        try await makePeer(configuration, onFailure: { _ in })
    }

    /// Creates a peer connection, and reports its failures.
    ///
    /// - Parameter onFailure: called on the engine's thread whenever the connection fails.
    package func makePeer(
        _ configuration: PeerConfiguration, onFailure: @escaping @Sendable (TransportFailure) -> Void
    ) async throws(ConfabError) -> any MediaPeer {
        guard !configuration.relayOnly else { throw .needsTURN }
        do {
            return try await RobotPeer.open(on: thread(), isIPv6: isIPv6, onFailure: onFailure)
        } catch {
            throw ConfabError(ofMedia: error)
        }
    }

    /// Reads media for publishing.
    ///
    /// For a camera or a microphone, the engine reads its own files. A screen is not supported.
    ///
    /// - Throws: an error with the code `media_failed` if there is no file, if a file cannot be read or is neither VP8
    ///   in IVF nor Opus in Ogg, or if a screen is requested.
    public func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        switch request {
        case .file(let file): return try FileMedia([file])
        case .screen: throw ConfabError(.mediaFailed, "This engine cannot capture a screen. Publish a file instead.")
        case .camera(_, let withMicrophone):
            guard !files.isEmpty else { throw .noFile }
            return try FileMedia(files, withAudio: withMicrophone)
        case .microphone:
            guard !files.isEmpty else { throw .noFile }
            let media = try FileMedia(files, withVideo: false)
            guard media.hasAudio else {
                throw ConfabError(.mediaFailed, "The engine's files have no audio. Add an Ogg file with Opus.")
            }
            return media
        }
    }

    private func thread() throws -> PeerThread {
        try shared.withLock { shared in
            if let thread = shared.thread { return thread }
            let thread = try PeerThread()
            shared.thread = thread
            return thread
        }
    }
}

/// The thread of an engine's connections. It ends when the last connection releases it.
final class PeerThread: Sendable {
    let loop: RobotLoop

    init() throws { loop = try RobotLoop() }

    deinit { loop.stop() }
}

extension ConfabError {
    static let needsTURN = ConfabError(
        .mediaFailed, "This engine does not support TURN, but only TURN is allowed. Allow direct connections.")
    static let noFile = ConfabError(
        .mediaFailed, "This engine has no file to publish. Create it with FileEngine(publishing:), or capture a file.")
    static let peerClosed = ConfabError(.mediaFailed, "The peer connection is closed. Create a new one.")

    init(ofMedia error: any Error) {
        if let error = error as? ConfabError {
            self = error
        } else {
            self.init(.mediaFailed, "The media connection failed: \(error)", cause: error)
        }
    }
}
