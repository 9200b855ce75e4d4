import Foundation
import Wire

/// A connection to a Confab server, and the entry point to all its features.
///
/// After the first connection the client reconnects automatically. ``states`` always shows the actual state of the
/// connection.
///
/// ```swift
/// let client = ConfabClient(server: URL(string: "https://chat.example.org")!)
/// try await client.connect()
/// let session = try await client.join(id, token: token)
/// try await session.signal("chat", "Hello")
/// ```
///
/// The connection closes when the application calls ``leave()``, or releases the client and all its features.
public actor ConfabClient {
    /// The connection to the server, which all features of the client share.
    nonisolated let core: ClientCore
    /// The client's features besides sessions: the roulette, presence, people nearby, calls, contacts, rooms and push.
    nonisolated let features: ConfabFeatures

    /// Creates a client. It does not connect yet.
    ///
    /// - Parameters:
    ///   - server: the server's address, such as `https://chat.example.org`. If it has a path, the server must be
    ///     reachable under that path.
    ///   - credential: how the client identifies itself.
    ///   - name: the name shown to others if the person has not chosen one, at most 256 bytes; nil for none.
    ///   - media: the engine that captures media and creates peer connections; nil for a client without media.
    ///   - options: the connect timeout, the application's name for the server's log, whether it shows warnings, and a log
    ///     callback.
    public init(
        server: URL, credential: Credential = .anonymous, name: String? = nil, media: (any MediaEngine)? = nil,
        options: Options = Options()
    ) {
        self.init(
            server: server, credential: credential, name: name, media: media, options: options, in: .system)
    }

    init(
        server: URL, credential: Credential, name: String? = nil, media: (any MediaEngine)? = nil,
        options: Options = Options(), in dependencies: Dependencies
    ) {
        var hello = Hello()
        hello.name = name
        hello.client = options.clientName ?? "confab-swift"
        if options.showsWarnings { hello.warnings = true }
        core = ClientCore(
            url: Self.socketURL(server), credential: credential, hello: hello, media: media, options: options,
            dependencies: dependencies)
        features = ConfabFeatures(core)
    }

    /// Returns the URL of the server's WebSocket; nil if `server` has no host or a scheme other than HTTP or WebSocket.
    package static func socketURL(_ server: URL) -> URL? {
        let schemes = ["http": "ws", "ws": "ws", "https": "wss", "wss": "wss"]
        guard var parts = URLComponents(url: server, resolvingAgainstBaseURL: true), parts.host?.isEmpty == false,
            let scheme = parts.scheme.flatMap({ schemes[$0.lowercased()] })
        else { return nil }
        parts.scheme = scheme
        parts.path = (parts.path.hasSuffix("/") ? String(parts.path.dropLast()) : parts.path) + ClientCore.socketPath
        (parts.query, parts.fragment) = (nil, nil)
        return parts.url
    }

    // MARK: Connecting

    /// The states of the connection. An iteration begins with the current state and keeps only the newest unread one.
    nonisolated public var states: Events<State> { core.states.events }

    /// Events of the connection that are not part of its state.
    nonisolated public var notices: Events<Notice> { core.notices.events }

    /// The current state of the connection.
    nonisolated public var state: State { core.connectionState }

    /// Connects, and returns when the server has accepted the client. Afterwards the client reconnects automatically.
    /// If the client is offline, this starts the next attempt immediately. If it is already online or reconnecting,
    /// this returns immediately.
    ///
    /// - Throws: the reason why the server cannot be reached or rejects the client; `server_url_invalid` for an
    ///   unusable address.
    public func connect() async throws(ConfabError) { try await core.connect() }

    /// Disconnects from the server and closes the client permanently. Sessions, calls and searches end immediately.
    public func leave() async { core.leave() }

    /// Notifies the client that the network has changed, or that the application is in the foreground again. The client
    /// then checks its connection immediately or, if it has no connection, tries to reconnect immediately.
    ///
    /// - Parameter isAvailable: false if the device has no network at all. The client then checks nothing, and the
    ///   state `offline` has the reason `noNetwork`.
    nonisolated public func networkChanged(isAvailable: Bool = true) { core.networkChanged(isAvailable: isAvailable) }

    // MARK: Media

    /// Captures media for publishing, with the client's media engine.
    ///
    /// - Throws: `no_media_engine`, or `media_failed` if the device or file is missing, in use or not permitted.
    nonisolated public func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        guard let engine = core.media else { throw .noMediaEngine }
        return try await engine.capture(request)
    }
}
