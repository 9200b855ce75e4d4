import Confab

/// Where sessions connect to: the one thing that an application written for OpenTok has to add.
///
/// ```swift
/// OTConfab.client = ConfabClient(server: URL(string: "https://chat.example.org")!, media: WebRTCEngine())
/// ```
@preconcurrency @MainActor public enum OTConfab {
    /// The client of all sessions whose settings name none. Set it before the first session connects. Its connection stays open
    /// when a session ends, and closes with `leave()`.
    public static var client: ConfabClient?
}

/// Settings of a session.
@preconcurrency @MainActor public class OTSessionSettings {
    /// The client of the session; nil for ``OTConfab/client``. OpenTok does not have this setting.
    public var client: ConfabClient?
    /// Whether the delegate is not told of connections that come and go.
    public var connectionEventsSuppressed = false

    /// Creates the default settings.
    public init() {}
}
