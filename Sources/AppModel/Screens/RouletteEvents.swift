import Confab

/// A request from the roulette screen to the SDK.
public enum RouletteRequest: Equatable, Sendable {
    /// Opens the devices. Without `video`, opens only the microphone.
    case preview(video: Bool)
    case closePreview
    case start(Roulette.Mode, interests: [String], video: Bool)
    case next, stop, keep
    case block(match: MatchID?)
    /// Sends a message. Answered by `sent` with the same id if it fails.
    case say(String, id: Int)
    case typing(Bool)
    case mute(Bool)
    case camera(Bool)
    case switchCamera
    /// Reports a chat. `match` identifies the chat, which may have ended.
    case report(ReportReason, match: MatchID?)
    /// Requests the number of people online.
    case count
}

/// What the SDK and this device report to the screen for chats with strangers.
public enum RouletteEvent: Sendable {
    case happened(Roulette.Event)
    /// The devices are open. The source is nil without the camera.
    case preview((any VideoSource)?)
    /// The devices are closed.
    case released
    case cameraFailed(ConfabError)
    case firstFrame
    case sent(id: Int, Bool)
    case keepFailed(ConfabError)
    case reported(ConfabError?)
    case online(Int)
    /// A request failed, and no search or chat continues.
    case stopped(ConfabError)
}
