import Confab

/// Settings for all sessions. Setting the client is the one thing that an application written for OpenTok has to add.
///
/// ```swift
/// OTConfab.client = ConfabClient(server: URL(string: "https://chat.example.org")!, media: WebRTCEngine())
/// ```
@preconcurrency @MainActor public enum OTConfab {
    /// The client of all sessions whose settings do not specify one. Set it before the first session connects. Its
    /// connection stays open when a session ends, and closes with `leave()`.
    public static var client: ConfabClient?
    /// The engine that sends the frames of publishers with a `videoCapture`; nil if there are no such publishers. Use
    /// the engine that the client has as its media engine.
    public static var frameEngine: (any OTFrameEngine)?
}
