import RTC

/// The playback position in a clip. The clip is played in a loop, but timestamps keep increasing.
///
/// If video and audio are about equally long, they start each round together. Otherwise each loops independently.
struct Playback {
    /// Whether an item is video or audio.
    enum Kind { case video, audio }

    /// An item to send now.
    struct Due: Equatable {
        var kind: Kind
        var item: MediaClip.Item
        /// The time when the item was due, from which its RTP timestamp is computed.
        var at: MediaTime
    }

    /// The maximum time by which a requested keyframe is sent early. The video then freezes until the keyframe's
    /// regular time, so it stays in sync with the audio. If the next keyframe is further away, playback skips ahead to
    /// it.
    static let maxHold = MediaInterval.seconds(2)
    /// The minimum interval between two requested keyframes. If several subscribers request a keyframe at the same
    /// time, they share one. Regular keyframes in the file do not start this interval, because the first subscriber
    /// often joins just after the beginning and needs a keyframe immediately.
    static let keyframeInterval = MediaInterval.milliseconds(300)
    /// The maximum difference between the lengths of video and audio that start each round together.
    static let maxDifference = MediaInterval.seconds(1)
    /// The maximum delay that playback makes up for. A longer delay, for example after the computer slept, is
    /// skipped.
    static let maxLate = MediaInterval.milliseconds(500)

    /// How far one track has been played.
    private struct Position {
        let track: MediaClip.Track
        let period: MediaInterval
        /// The start time of the current round.
        var began: MediaTime
        var index = 0

        var next: MediaClip.Item { track.items[index] }
        var due: MediaTime { began + next.at }

        mutating func put(off interval: MediaInterval) { began = began + interval }

        mutating func advance() {
            index += 1
            guard index >= track.items.count else { return }
            index = 0
            began = began + period
        }
    }

    private var video: Position?
    private var audio: Position?
    /// The index of the keyframe that was sent last; nil before the first.
    private var lastKeyframe: Int?
    /// When the most recent requested keyframe was sent.
    private var answeredAt: MediaTime?
    /// The time at which to send the requested keyframe; nil if none is requested.
    private var keyframeDue: MediaTime?
    /// Whether video and audio belong together, because they are about equally long.
    private let isFilm: Bool
    private let maxHold: MediaInterval

    /// - Parameter maxHold: the maximum time for which the video freezes after a requested keyframe. It must be zero
    ///   for a simulcast layer: a server treats a layer that pauses as ended, and requests a keyframe of another
    ///   layer.
    init(_ clip: MediaClip, beginning now: MediaTime, maxHold: MediaInterval = Self.maxHold) {
        self.maxHold = maxHold
        let lengths = [clip.video?.length, clip.audio?.length].compactMap(\.self)
        let longest = lengths.max() ?? .zero
        let shortest = lengths.min() ?? .zero
        let isFilm = lengths.count == 2 && longest - shortest <= Self.maxDifference
        self.isFilm = isFilm
        func position(_ track: MediaClip.Track) -> Position {
            Position(track: track, period: isFilm ? longest : track.length, began: now)
        }
        video = clip.video.map(position)
        audio = clip.audio.map(position)
    }

    /// The time of the next item; nil if there is nothing to play.
    var nextDue: MediaTime? {
        [video?.due, audio?.due, keyframeDue].compactMap(\.self).min()
    }

    /// Returns the earliest item that is due, or nil if none is. Callers repeat the call until it returns nil.
    mutating func next(now: MediaTime) -> Due? {
        if let keyframeDue, keyframeDue <= now { return takeKeyframe(at: now) }
        guard let due = nextDue, due <= now else { return nil }
        if now - due > Self.maxLate {
            video?.put(off: now - due)
            audio?.put(off: now - due)
        }
        if let video, video.due <= (audio?.due ?? video.due) {
            let due = Due(kind: .video, item: video.next, at: video.due)
            if due.item.isKeyframe { (lastKeyframe, keyframeDue) = (video.index, nil) }
            self.video?.advance()
            return due
        }
        guard let audio else { return nil }
        let item = Due(kind: .audio, item: audio.next, at: audio.due)
        self.audio?.advance()
        return item
    }

    /// Requests a keyframe, which `next` then returns. If no frame was played since the most recent keyframe, that keyframe is
    /// returned again. Otherwise it is the next keyframe in the file, which may be the first one, because the clip is played in
    /// a loop.
    mutating func showKeyframe(now: MediaTime) {
        guard video != nil, keyframeDue == nil else { return }
        let soonest = answeredAt.map { $0 + Self.keyframeInterval } ?? now
        keyframeDue = max(now, soonest)
    }

    private mutating func takeKeyframe(at now: MediaTime) -> Due? {
        keyframeDue = nil
        guard var position = video else { return nil }
        if let lastKeyframe, (lastKeyframe + 1) % position.track.items.count == position.index {
            return show(lastKeyframe, of: position, now)
        }
        while !position.next.isKeyframe { position.advance() }
        let ahead = position.due - now
        if ahead > maxHold { seek(&position, by: ahead) }
        let index = position.index
        position.advance()
        video = position
        return show(index, of: position, now)
    }

    private mutating func show(_ index: Int, of position: Position, _ now: MediaTime) -> Due {
        (lastKeyframe, answeredAt) = (index, now)
        return Due(kind: .video, item: position.track.items[index], at: now)
    }

    /// Skips ahead to the keyframe. If video and audio belong together, skips the audio by the same interval.
    private mutating func seek(_ position: inout Position, by ahead: MediaInterval) {
        position.began = position.began - ahead
        guard isFilm, var sound = audio else { return }
        let before = sound.due
        sound.began = sound.began - ahead
        // One round is enough: the next keyframe is at most one round away.
        for _ in 0..<sound.track.items.count where sound.due < before { sound.advance() }
        audio = sound
    }
}
