import Wire

/// OpenTok's audio fallback for a publisher. Decides when to stop the video, so that the network can carry the audio,
/// and when to resume it. The rules are those of the browser SDK, `web/lib/media/audio-fallback.js`.
struct AudioFallback: Equatable, Sendable {
    /// What happens to the video. Legal transitions: `sending` ⇄ `warned` → `stopped` → `sending`.
    enum Phase: Equatable, Sendable {
        case sending
        case warned(stopAt: Timestamp)
        /// The video resumes at `resumeAt` if the network stays good enough; nil while the network is too slow even
        /// for the audio.
        case stopped(resumeAt: Timestamp?)
    }

    /// An event that can change the phase.
    enum Input: Equatable, Sendable {
        /// The server judged whether the network is too slow for the sent media.
        case judged(isTooSlow: Bool)
        /// The application turned the video on or off. This resets the state, except that the latest judgment still
        /// applies if the video is on and audio fallback had not stopped it.
        case videoTurned(isOn: Bool)
    }

    /// A consequence for the video, to be carried out and reported.
    enum Effect: Equatable, Sendable {
        case warned
        case warningLifted
        case stopped
        case resumed
        /// The video is no longer withheld, but the application has turned it off.
        case forgotten
    }

    /// How long the network must stay too slow after the warning before the video stops. This gives congestion control
    /// time to adapt.
    static let warning = Duration.seconds(5)
    /// The shortest time for which the network must be good enough before the video resumes.
    static let shortestPause = Duration.seconds(5)
    /// A video that stops within this time after resuming was resumed too early, so the next pause is twice as long.
    static let trial = Duration.seconds(30)
    /// The longest pause. Without it, a network that carries just the audio would be tested less and less often, and an
    /// improvement would be noticed too late.
    static let longestPause = Duration.seconds(60)

    private(set) var phase = Phase.sending
    /// The length of the latest pause: how long the network must be good enough before the video resumes.
    private(set) var pause = Self.shortestPause
    /// When audio fallback last resumed the video; nil if it has not done so yet.
    private var resumedAt: Timestamp?
    private var isTooSlow = false

    /// When ``handleTimeout(now:)`` is due; nil if only another input can change the phase.
    var nextTimeout: Timestamp? {
        switch phase {
        case .sending: nil
        case .warned(let stopAt): stopAt
        case .stopped(let resumeAt): resumeAt
        }
    }

    mutating func handle(_ input: Input, now: Timestamp) -> [Effect] {
        switch input {
        case .judged(let isTooSlow):
            self.isTooSlow = isTooSlow
            return advance(now)
        case .videoTurned(let isOn):
            let before = self
            self = Self()
            if case .stopped = before.phase { return [isOn ? .resumed : .forgotten] }
            // Keep the judgment if the video is on, because the server reports it only when it changes. A judgment
            // from a time without video is about the audio, so it is discarded.
            isTooSlow = isOn && before.isTooSlow
            return (before.phase == .sending ? [] : [.warningLifted]) + advance(now)
        }
    }

    mutating func handleTimeout(now: Timestamp) -> [Effect] { advance(now) }

    private mutating func advance(_ now: Timestamp) -> [Effect] {
        switch phase {
        case .sending:
            guard isTooSlow else { return [] }
            phase = .warned(stopAt: now + Self.warning)
            return [.warned]
        case .warned(let stopAt):
            guard isTooSlow else {
                phase = .sending
                return [.warningLifted]
            }
            guard now >= stopAt else { return [] }
            let isSoon = resumedAt.map { now - $0 < Self.trial } ?? false
            pause = isSoon ? min(Self.longestPause, pause * 2) : Self.shortestPause
            phase = .stopped(resumeAt: nil)
            return [.stopped]
        case .stopped(let resumeAt):
            guard !isTooSlow else {
                phase = .stopped(resumeAt: nil)
                return []
            }
            guard let resumeAt else {
                phase = .stopped(resumeAt: now + pause)
                return []
            }
            guard now >= resumeAt else { return [] }
            (phase, resumedAt) = (.sending, now)
            return [.resumed]
        }
    }
}
