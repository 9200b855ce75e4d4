import Confab
import Foundation

/// A client in a session. Each connection has one object while it is in the session.
@preconcurrency @MainActor open class OTConnection: NSObject {
    /// The id of the connection, unique in its session.
    public let connectionId: String
    /// When the connection joined the session.
    public let creationTime: Date
    /// The data of the connection's token; nil if there is none.
    public let data: String?
    let id: ConnectionID

    init(_ connection: Session.Connection) {
        (id, connectionId, creationTime) = (connection.id, "\(connection.id)", connection.createdAt)
        data = connection.data.isEmpty ? nil : connection.data
    }

    /// Creates the connection of a stream whose connection was not reported.
    init(of stream: MediaStream) {
        (id, connectionId) = (stream.connection, "\(stream.connection)")
        (creationTime, data) = (stream.createdAt, nil)
    }
}

/// A stream in a session. Each stream has one object, with the current properties.
@preconcurrency @MainActor open class OTStream: NSObject {
    /// The id of the stream, unique in its session.
    public let streamId: String
    /// The connection that publishes the stream.
    public let connection: OTConnection
    /// The session of the stream; nil when the session is released.
    public private(set) weak var session: OTSession!
    private(set) var media: MediaStream

    init(_ media: MediaStream, of connection: OTConnection, in session: OTSession?) {
        (streamId, self.connection, self.session, self.media) = ("\(media.id)", connection, session, media)
    }

    func update(_ media: MediaStream) { self.media = media }

    /// When the stream was published.
    public var creationTime: Date { media.createdAt }
    /// The name that the publisher gave the stream; nil if there is none.
    public var name: String? { media.name.isEmpty ? nil : media.name }
    /// Whether the stream currently has audio.
    public var hasAudio: Bool { media.hasAudio }
    /// Whether the stream currently has video.
    public var hasVideo: Bool { media.hasVideo }
    /// Always false: captions are not supported.
    public var hasCaptions: Bool { false }
    /// The size of the video in pixels; zero if the publisher did not specify it.
    public var videoDimensions: CGSize {
        media.size.map { CGSize(width: $0.width, height: $0.height) } ?? .zero
    }
    /// What the video shows.
    public var videoType: OTStreamVideoType {
        switch media.videoKind {
        case .camera, nil: .camera
        case .screen: .screen
        case .custom: .custom
        }
    }
}

/// What a stream's video shows.
public enum OTStreamVideoType: Int, Sendable {
    /// The video of a camera.
    case camera = 1
    /// A shared screen or window.
    case screen = 2
    /// Anything else.
    case custom = 3
}

/// How a video fills its view.
public enum OTVideoViewScaleBehavior: Int, Sendable {
    /// The video fills the view and may be cropped.
    case fill
    /// The whole frame is visible.
    case fit
}

/// Runs the body of a method with an error parameter.
///
/// - Parameter pointer: receives the error that `body` throws, or nil if there is none. The pointer is nil if the
///   caller does not need the error.
@MainActor func reporting(to pointer: UnsafeMutablePointer<OTError?>?, _ body: () throws(OTError) -> Void) {
    do throws(OTError) {
        try body()
        pointer?.pointee = nil
    } catch {
        pointer?.pointee = error
    }
}

/// Runs requests one after the other, so that the last one takes effect.
@MainActor final class Requests {
    private var last: Task<Void, Never>?

    func add(_ request: @escaping @MainActor @Sendable () async -> Void) {
        let before = last
        last = Task {
            await before?.value
            await request()
        }
    }

    /// Changes a published or received stream. Errors are passed to `report`, except `not_found`: the stream has
    /// ended, which is reported separately.
    func change(
        _ change: @escaping @Sendable () async throws(ConfabError) -> Void,
        onFailure report: @escaping @MainActor @Sendable (ConfabError) -> Void
    ) {
        add {
            do throws(ConfabError) { try await change() } catch {
                if error.code != .notFound { report(error) }
            }
        }
    }
}
