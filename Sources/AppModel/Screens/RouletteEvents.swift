import Confab

/// The kind of chat with a stranger.
public enum RouletteMode: String, CaseIterable, Sendable { case video, text }

/// A request from the roulette screen to the SDK.
public enum RouletteRequest: Equatable, Sendable {
    /// Opens the devices. Without `video`, opens only the microphone.
    case preview(video: Bool)
    case closePreview
    case start(RouletteMode, interests: [String], video: Bool)
    case next, stop, keep
    case block(match: String?)
    /// Sends a message. Answered by `sent` with the same id if it fails.
    case say(String, id: Int)
    case typing(Bool)
    case mute(Bool)
    case camera(Bool)
    case switchCamera
    /// Reports a chat. `match` identifies the chat, which may have ended.
    case report(ReportReason, match: String?)
    /// Requests the number of people online.
    case count
}

/// An event of the roulette from the SDK.
public enum RouletteEvent: Sendable {
    /// The devices are open. The source is nil without the camera.
    case preview((any VideoSource)?)
    /// The devices are closed.
    case released
    case cameraFailed(CallTrouble)
    /// The search has started. After several quick skips, it continues only after `pause`.
    case waiting(pause: Duration?)
    case matched(name: String, interests: [String], hasChat: Bool, match: String? = nil)
    case video(any VideoSource)
    case firstFrame
    /// The partner's audio has arrived, and the partner currently sends no video.
    case audioOnly
    /// No audio or video arrived in time.
    case noStream
    case partner(isAway: Bool)
    case message(String)
    case sent(id: Int, Bool)
    case typing(Bool)
    case ended(RouletteEnding)
    case keepAsked, keepAgreed
    case keepFailed(CallTrouble)
    case reported(CallTrouble?)
    case online(Int)
    case stopped(CallTrouble?)
}

/// The reason for the end of a chat.
public enum RouletteEnding: Equatable, Sendable {
    case partnerLeft, partnerNext, next, blocked, connectionLost
    /// This user stopped, here or on another device.
    case stopped
    /// This user left the app.
    case leftApp
    /// The server's operators ended the chat.
    case operators
}
