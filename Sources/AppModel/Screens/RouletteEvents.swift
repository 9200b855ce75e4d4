import Confab

/// How to chat with a stranger.
public enum RouletteMode: String, CaseIterable, Sendable { case video, text }

/// What the roulette asks of the SDK.
public enum RouletteRequest: Equatable, Sendable {
    /// Without `video`, only the microphone is opened.
    case preview(video: Bool)
    case closePreview
    case start(RouletteMode, interests: [String], video: Bool)
    case next, stop, keep
    case block(match: String?)
    /// Answered by `sent` with the same id if it failed.
    case say(String, id: Int)
    case typing(Bool)
    case mute(Bool)
    case camera(Bool)
    case switchCamera
    /// `match` is the chat in which it happened, which may be over.
    case report(ReportReason, match: String?)
    /// How many people are there.
    case count
}

/// What the SDK says about the roulette.
public enum RouletteEvent: Sendable {
    /// The devices are open. Nil without the camera.
    case preview((any VideoSource)?)
    /// They are closed.
    case released
    case cameraFailed(CallTrouble)
    /// Searching. With a pause after several quick skips.
    case waiting(pause: Duration?)
    case matched(name: String, interests: [String], hasChat: Bool, match: String? = nil)
    case video(any VideoSource)
    case firstFrame
    /// The partner's sound is here, and the partner sends no picture now.
    case audioOnly
    /// No picture and sound arrived in time.
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

/// How a chat ended.
public enum RouletteEnding: Equatable, Sendable {
    case partnerLeft, partnerNext, next, blocked, connectionLost
    /// This person stopped, here or on another device.
    case stopped
    /// This person left the app.
    case leftApp
    /// The operators of the server ended it.
    case operators
}
