import RTC

/// Chooses the audio to forward in a session with many publishers: the loudest. Listeners cannot follow more voices at
/// once, and each voice adds to the bitrate of every subscriber.
enum LoudestAudio {
    /// The time between choices. A new speaker who is loud enough is heard after this time at the latest.
    static let interval = MediaInterval.milliseconds(100)
    /// The number of decibels by which a voice must be louder than a forwarded one to take its place.
    static let margin = ActiveSpeaker.margin

    /// Returns whether to forward each voice.
    /// - Parameters:
    ///   - voices: the voices of one session. Of equally loud voices, the earlier ones are forwarded.
    ///   - limit: the maximum number of forwarded voices.
    static func choose(_ voices: [Voice], limit: Int) -> [Bool] {
        guard voices.count > limit else { return voices.map { _ in true } }
        let ranks = voices.map { $0.loudness + ($0.isForwarded ? margin : 0) }
        let loudest = ranks.indices.sorted { (ranks[$1], $0) < (ranks[$0], $1) }.prefix(max(0, limit))
        var chosen = voices.map { _ in false }
        for index in loudest { chosen[index] = true }
        return chosen
    }
}

/// The sessions with more publishers of audio than can be forwarded.
final class Crowds {
    /// The maximum number of publishers in a session whose audio is forwarded.
    private let limit: Int
    /// The audio tracks of each of these sessions.
    private var crowds: [[FeedTrack]] = []
    private var chosenAt: MediaTime?
    /// Whether `crowds` must be collected again.
    private var isOutdated = false

    init(limit: Int) { self.limit = limit }

    /// Must be called whenever the audio tracks of streams may have changed.
    func audioChanged() { isOutdated = true }

    /// Chooses the audio to forward in each session. Every router chooses among the publishers of all routers, and
    /// applies the choice to its own.
    func update(_ streams: Streams, now: MediaTime) {
        if let chosenAt, now - chosenAt < LoudestAudio.interval { return }
        chosenAt = now
        if isOutdated { collect(streams) }
        for crowd in crowds {
            for track in crowd where track.loop == nil { track.fadeVoice(now: now) }
            let chosen = LoudestAudio.choose(crowd.map(\.voice), limit: limit)
            for (track, isForwarded) in zip(crowd, chosen) where track.loop == nil { track.setForwarded(isForwarded) }
        }
    }

    /// Collects the audio tracks of each session that has more of them than can be forwarded. In all other sessions,
    /// all audio is forwarded again.
    private func collect(_ streams: Streams) {
        isOutdated = false
        let former = crowds.joined()
        crowds = streams.audioTracks(ofSessionsWithMoreThan: limit)
        // Stop limiting tracks that are now muted or whose session has become small.
        let remaining = Set(crowds.joined().map(ObjectIdentifier.init))
        for track in former where track.loop == nil && !remaining.contains(ObjectIdentifier(track)) {
            track.setForwarded(true)
        }
    }
}
